# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels, a module that they lack, and the busybox that starts them. apt downloads them, and they are unpacked
into a cache, never installed.

The cache is ${XDG_CACHE_HOME:-~/.cache}/rocinante/kernels, with one directory per package version. It may be deleted.
"""
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile

CACHE = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'rocinante', 'kernels')

# The packages that depend on the newest kernel of each series.
META = {'6.1': 'linux-image-amd64', '6.12': 'linux-image-6.12-amd64'}

SIW = 'drivers/infiniband/sw/siw'
# LC_ALL, because the output of programs is parsed.
ENVIRONMENT = dict(os.environ, PATH=os.environ.get('PATH', os.defpath) + ':/sbin:/usr/sbin', LC_ALL='C')
# Without a network: fail soon, and use the cache.
APT_GET = ['apt-get', '-qq', '-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=15']
# Otherwise apt warns root that apt's own user cannot write into our directory.
AS_ROOT = ['-o', 'APT::Sandbox::User=root']


class Unavailable(Exception):
    """Something cannot be obtained; the text says what was tried."""


def command(argv, cwd=None):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=cwd,
                              env=ENVIRONMENT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from None
    if done.returncode:
        lines = done.stdout.splitlines()
        if len(lines) > 6:  # tar prints a line for each file that it could not write
            lines[3:-3] = ['...']
        raise Unavailable('\n'.join([f'{" ".join(argv)}: exit status {done.returncode}', *lines]))
    return done.stdout


def candidate(package):
    """The version that apt would install."""
    found = re.search(r'Candidate: (\S+)', command(['apt-cache', 'policy', package]))
    if not found or found[1] == '(none)':
        raise Unavailable(f'apt knows no package {package}; are its lists fresh?')
    return found[1]


def dependency(meta, prefix):
    """The package with this prefix that a meta package depends on."""
    packages = re.findall(r'^\s*Depends: (\S+)', command(['apt-cache', 'depends', meta]), re.MULTILINE)
    for package in packages:
        if package.startswith(prefix):
            return package
    raise Unavailable(f'{meta} depends on {" ".join(packages) or "nothing"}, and on no {prefix}*: is this not Debian 12?')


def unpack(packages, root, options=()):
    """Downloads packages, named as for apt-get(8) (name=version, name/suite), and unpacks them over a directory."""
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        command([*APT_GET, *AS_ROOT, *options, 'download', *packages], cwd=work)
        for deb in os.listdir(work):
            command(['dpkg-deb', '-x', os.path.join(work, deb), root])


def in_cache(kind):
    """The names in the cache with this prefix, the newest version first."""
    try:
        names = [name for name in os.listdir(CACHE) if name.startswith(kind)]
    except OSError:
        return []
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r'\d+', name)], reverse=True)


def cached(kind, name, make):
    """The cache's directory of this name; make(directory) fills it if it does not exist yet. One older directory of its kind
    stays, because another run may be using it; the others are deleted."""
    target = os.path.join(CACHE, name)
    if os.path.isdir(target):
        return target
    # Made elsewhere and renamed, so that a stopped run leaves nothing incomplete.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        root = os.path.join(work, 'root')
        os.mkdir(root)
        make(root)
        try:
            os.rename(root, target)
        except OSError:  # another run was first
            if not os.path.isdir(target):
                raise
    names = in_cache(kind)
    for old in names[names.index(name) + 2:]:
        shutil.rmtree(os.path.join(CACHE, old), ignore_errors=True)
    return target


def refresh():
    """Updates apt's lists, if that is possible."""
    try:
        command([*APT_GET, 'update'])
    except Unavailable:
        pass  # the old lists may be good enough


@contextlib.contextmanager
def locked_cache():
    """Locks the cache: one run at a time fills it. The others wait, and then find what they need."""
    if not os.path.isabs(CACHE):
        raise Unavailable('XDG_CACHE_HOME or HOME must be an absolute path')
    try:
        os.makedirs(CACHE, exist_ok=True)
        lock = os.open(os.path.join(CACHE, 'lock'), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f'no cache for downloads: {error}') from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def obtain(kind, make, file):
    """What make() returns: a directory of the cache, of this kind, that has this file. When make() fails even with fresh
    lists, the newest such directory in the cache."""
    with locked_cache():
        return obtain_locked(kind, make, file)


def obtain_locked(kind, make, file):
    try:
        return make()
    except (Unavailable, OSError):
        refresh()
    try:
        return make()
    except (Unavailable, OSError) as error:
        reason = ' '.join(str(error).split())
    for name in in_cache(kind):
        if os.path.exists(os.path.join(CACHE, name, file)):
            print(f'# {name} is taken from the cache, there may be newer ones: {reason}', flush=True)
            return os.path.join(CACHE, name)
    raise Unavailable(f"no {kind}*/{file} from Debian's packages, nor in the cache {CACHE} (XDG_CACHE_HOME can name a "
                      f'directory for another): {reason}')


def busybox():
    """The path of a busybox that needs no libraries. Its package conflicts with Debian's usual one, so it is not installed."""
    name = 'busybox-static'

    def make():
        version = candidate(name)
        return cached(f'{name}_', f'{name}_{version}', lambda root: unpack([f'{name}={version}'], root))
    return os.path.join(obtain(f'{name}_', make, 'bin/busybox'), 'bin', 'busybox')


def build_siw(release, version, target):
    """Builds the module siw (iWARP over TCP) for a kernel of series 6.1, from Debian's source. Debian's packages lack it."""
    headers = f'linux-headers-{release}'
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        names = headers, headers.replace('-amd64', '-common'), 'linux-kbuild-6.1', 'linux-source-6.1'
        unpack([f'{name}={version}' for name in names], work)
        tree = f'{work}/usr/src/{headers}'
        with open(f'{tree}/Makefile') as f:
            text = f.read()
        with open(f'{tree}/Makefile', 'w') as f:
            f.write(text.replace(' /usr/src/', f' {work}/usr/src/'))
        command(['tar', '-xf', f'{work}/usr/src/linux-source-6.1.tar.xz', '-C', work, f'linux-source-6.1/{SIW}'])
        source = f'{work}/linux-source-6.1/{SIW}'
        command(['make', '-C', tree, f'M={source}', 'CONFIG_RDMA_SIW=m', 'modules'])
        os.rename(f'{source}/siw.ko', target)


def image(series, with_siw):
    """The directory in the cache with the newest kernel of a series."""
    kind = f'linux-image-{series}.'
    name = dependency(META[series], kind)
    release, version = name[len('linux-image-'):], candidate(name)

    def make(root):
        unpack([f'{name}={version}'], root)
        command(['depmod', '-b', root, release])
    root = cached(kind, f'{name}_{version}', make)
    if with_siw and not os.path.exists(f'{root}/siw.ko'):
        build_siw(release, version, f'{root}/siw.ko')
    return root


class Kernel:
    """A kernel of a series ('6.1', '6.12') in the cache; with_siw: with siw.ko in its directory."""

    def __init__(self, series, with_siw=False):
        self.root = obtain(f'linux-image-{series}.', lambda: image(series, with_siw), 'siw.ko' if with_siw else 'boot')
        self.release = os.path.basename(self.root).split('_')[0][len('linux-image-'):]
        self.image = f'{self.root}/boot/vmlinuz-{self.release}'

    def modules(self, *names):
        """The files of these modules and their dependencies, in the order of loading."""
        files = []
        for name in names:
            text = command(['modprobe', '-d', self.root, '-S', self.release, '--show-depends', name])
            for file in re.findall(r'^insmod (\S+)', text, re.MULTILINE):
                if file not in files:
                    files.append(file)
        return files
