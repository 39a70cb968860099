"""Debian's kernels: downloaded by apt and unpacked into a cache, never installed.

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


class Unavailable(Exception):
    """The archive does not give what is needed; the text says what was tried."""


def command(argv, **kw):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **kw)
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


def package(name):
    """The directory in the cache that holds the package's files."""
    version = candidate(name)
    target = os.path.join(CACHE, f'{name}_{version}')
    if os.path.isdir(target):
        return target
    os.makedirs(CACHE, exist_ok=True)
    # Built aside and renamed, so that a run that was stopped leaves no half of it.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        command(['apt-get', '-qq', 'download', f'{name}={version}'], cwd=work)
        deb, = (f for f in os.listdir(work) if f.endswith('.deb'))
        root = os.path.join(work, 'root')
        command(['dpkg-deb', '-x', os.path.join(work, deb), root])
        if os.path.isdir(f'{root}/lib/modules'):
            for release in os.listdir(f'{root}/lib/modules'):
                command(['depmod', '-b', root, release], env=dict(os.environ, PATH=os.environ['PATH'] + ':/sbin:/usr/sbin'))
        try:
            os.rename(root, target)
        except OSError:  # another run was faster
            if not os.path.isdir(target):
                raise
    return target


class Kernel:
    """A kernel of a series ('6.1', '6.12'), in the cache."""

    def __init__(self, series):
        for tool in ('apt-get', 'dpkg-deb'):
            if not shutil.which(tool):
                raise Unavailable(f'no {tool}: kernels are taken from the packages of Debian 12')
        for attempt in ('as they are', 'fresh'):
            try:
                self.root = package(dependency(META[series], r'linux-image-\S+'))
                break
            except Unavailable as reason:
                if attempt == 'fresh':
                    raise Unavailable(f'no Linux {series} to test against: {reason}') from None
                subprocess.run(['apt-get', '-qq', 'update'], stderr=subprocess.DEVNULL, timeout=300)
        self.release, = os.listdir(f'{self.root}/lib/modules')
        self.image = f'{self.root}/boot/vmlinuz-{self.release}'

    def modules(self, *names):
        """The files of these modules and of what they need, in the order in which they are to be loaded."""
        files = []
        path = os.environ['PATH'] + ':/sbin:/usr/sbin'
        for name in names:
            text = command(['modprobe', '-d', self.root, '-S', self.release, '--show-depends', name],
                           env=dict(os.environ, PATH=path))
            for file in re.findall(r'^insmod (\S+)', text, re.MULTILINE):
                if file not in files:
                    files.append(file)
        return files
