"""Debian's kernels: downloaded by apt and unpacked into a cache, never installed; and a module that they lack.

The cache is ${XDG_CACHE_HOME:-~/.cache}/rocinante/kernels, one directory for each package version.
"""
import os
import re
import shutil
import subprocess
import tempfile

CACHE = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'rocinante', 'kernels')

# The packages that depend on the newest kernel of each series.
META = {'6.1': 'linux-image-amd64', '6.12': 'linux-image-6.12-amd64'}


SIW = 'drivers/infiniband/sw/siw'
ENVIRONMENT = dict(os.environ, PATH=os.environ['PATH'] + ':/sbin:/usr/sbin')


class Unavailable(Exception):
    """The archive does not give what is needed; the text says what was tried."""


def command(argv, **kw):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **kw)
    except subprocess.TimeoutExpired as expired:
        raise Unavailable(str(expired)) from None
    if done.returncode:
        raise Unavailable(f'{" ".join(argv)}: exit status {done.returncode}\n{done.stdout}')
    return done.stdout


def candidate(package):
    """The version that apt would install."""
    found = re.search(r'Candidate: (\S+)', command(['apt-cache', 'policy', package]))
    if not found or found[1] == '(none)':
        raise Unavailable(f'apt knows no package {package}; are its lists fresh?')
    return found[1]


def dependency(meta, pattern):
    """The package that a meta package stands for."""
    for line in command(['apt-cache', 'depends', meta]).splitlines():
        if re.fullmatch(rf'\s*Depends: ({pattern})', line):
            return line.split()[1]
    raise Unavailable(f'{meta} depends on no {pattern}')


def unpack(name, version, root):
    """Downloads a package and unpacks it into a directory, over what is there."""
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        command(['apt-get', '-qq', 'download', f'{name}={version}'], cwd=work)
        deb, = (f for f in os.listdir(work) if f.endswith('.deb'))
        command(['dpkg-deb', '-x', os.path.join(work, deb), root])


def cached(name, make):
    """A directory of the cache, which make(directory) fills when it is not there yet."""
    target = os.path.join(CACHE, name)
    if os.path.isdir(target):
        return target
    os.makedirs(CACHE, exist_ok=True)
    # Built aside and renamed, so that a run that was stopped leaves no half of it.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        root = os.path.join(work, 'root')
        os.mkdir(root)
        make(root)
        try:
            os.rename(root, target)
        except OSError:  # another run was faster
            if not os.path.isdir(target):
                raise
    return target


def image(name):
    """The directory in the cache that holds a kernel's package."""
    version = candidate(name)

    def make(root):
        unpack(name, version, root)
        for release in os.listdir(f'{root}/lib/modules'):
            command(['depmod', '-b', root, release], env=ENVIRONMENT)
    return cached(f'{name}_{version}', make)


def siw():
    """The module siw (iWARP over TCP) for the kernel of series 6.1, which Debian leaves out: built from Debian's source
    against Debian's headers. Returns its path."""
    headers = dependency('linux-headers-amd64', r'linux-headers-\S+')
    version = candidate(headers)

    def make(root):
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            for name in headers, headers.replace('-amd64', '-common'), 'linux-kbuild-6.1', 'linux-source-6.1':
                unpack(name, version, work)
            tree = f'{work}/usr/src/{headers}'
            with open(f'{tree}/Makefile') as f:
                text = f.read()
            with open(f'{tree}/Makefile', 'w') as f:
                f.write(text.replace(' /usr/src/', f' {work}/usr/src/'))
            command(['tar', '-xf', f'{work}/usr/src/linux-source-6.1.tar.xz', '-C', work, f'linux-source-6.1/{SIW}'])
            source = f'{work}/linux-source-6.1/{SIW}'
            command(['make', '-C', tree, f'M={source}', 'CONFIG_RDMA_SIW=m', 'modules'])
            shutil.copy(f'{source}/siw.ko', root)
    return os.path.join(cached(f'siw_{version}', make), 'siw.ko')


class Kernel:
    """A kernel of a series ('6.1', '6.12'), in the cache."""

    def __init__(self, series):
        for tool in ('apt-get', 'dpkg-deb'):
            if not shutil.which(tool):
                raise Unavailable(f'no {tool}: kernels are taken from the packages of Debian 12')
        for attempt in ('as they are', 'fresh'):
            try:
                self.root = image(dependency(META[series], r'linux-image-\S+'))
                break
            except Unavailable as reason:
                if attempt == 'fresh':
                    raise Unavailable(f'no Linux {series} to test against: {reason}') from None
                command(['sh', '-c', 'apt-get -qq update || true'])
        self.release, = os.listdir(f'{self.root}/lib/modules')
        self.image = f'{self.root}/boot/vmlinuz-{self.release}'

    def modules(self, *names):
        """The files of these modules and of what they need, in the order in which they are to be loaded."""
        files = []
        for name in names:
            text = command(['modprobe', '-d', self.root, '-S', self.release, '--show-depends', name],
                           env=ENVIRONMENT)
            for file in re.findall(r'^insmod (\S+)', text, re.MULTILINE):
                if file not in files:
                    files.append(file)
        return files
