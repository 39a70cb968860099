# SPDX-License-Identifier: BSD-2-Clause
"""The libibverbs of Debian 13, whose provider for Soft-RoCE has FLUSH. The tests run on Debian 12, whose libibverbs has no
call for it. It is in the cache beside the kernels, never installed."""
import tempfile

import kernels
from kernels import APT_GET, AS_ROOT, command

KIND = 'libibverbs-trixie'
PACKAGES = ['libc6', 'libibverbs1', 'ibverbs-providers', 'libnl-3-200', 'libnl-route-3-200']
LIBRARIES = 'usr/lib/x86_64-linux-gnu'


def archive():
    """The archive of Debian 12 in apt's lists; it has Debian 13, too."""
    uris = command(['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Codename: bookworm',
                    'Component: main']).split()
    if not uris:
        raise kernels.Unavailable('apt has no list of Debian 12 (bookworm)')
    return uris[0]


def unpack(root):
    """Uses lists of its own for apt, and removes them afterwards."""
    with tempfile.TemporaryDirectory(dir=kernels.CACHE) as state:
        options = ['-o', f'Dir::Etc::sourcelist={state}/sources.list', '-o', 'Dir::Etc::sourceparts=/dev/null',
                   '-o', f'Dir::State={state}', '-o', f'Dir::Cache={state}']
        with open(f'{state}/sources.list', 'w') as f:
            f.write('deb [arch=amd64 target=Packages signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
                    f'{archive()} trixie main\n')
        command([*APT_GET, *AS_ROOT, *options, '-o', 'APT::Update::Error-Mode=any', 'update'])
        kernels.unpack([f'{name}/trixie' for name in PACKAGES], root, options)


def launcher():
    """The words to put before a program's path to run it with these libraries. A version in the cache is good enough: the
    libraries are a tool of the tests, and not what is tested."""
    libraries = f'{kernels.obtain(KIND, lambda: kernels.cached(KIND, KIND, unpack), LIBRARIES)}/{LIBRARIES}'
    # Otherwise the library loads the system's providers, from the path that it was built with.
    return ['env', f'IBV_DRIVERS={libraries}/libibverbs/librxe', f'{libraries}/ld-linux-x86-64.so.2', '--library-path', libraries]
