# SPDX-License-Identifier: BSD-2-Clause
"""The libibverbs of Debian 13, whose provider for Soft-RoCE has FLUSH; that of Debian 12, on which the tests run otherwise, has
no call for it. In the cache beside the kernels, never installed."""
import tempfile

import kernels
from kernels import APT_GET, AS_ROOT, command

KIND = 'libibverbs-trixie'
PACKAGES = ['libc6', 'libibverbs1', 'ibverbs-providers', 'libnl-3-200', 'libnl-route-3-200']
LIBRARIES = 'usr/lib/x86_64-linux-gnu'


def archive():
    """Where apt finds Debian 12, which is where Debian 13 is as well."""
    uris = command(['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Codename: bookworm',
                    'Component: main']).split()
    if not uris:
        raise kernels.Unavailable('apt has no list of Debian 12 (bookworm)')
    return uris[0]


def unpack(root):
    """With lists for apt that are its own, and are gone afterwards."""
    with tempfile.TemporaryDirectory(dir=kernels.CACHE) as state:
        options = ['-o', f'Dir::Etc::sourcelist={state}/sources.list', '-o', 'Dir::Etc::sourceparts=/dev/null',
                   '-o', f'Dir::State={state}', '-o', f'Dir::Cache={state}']
        with open(f'{state}/sources.list', 'w') as f:
            f.write('deb [arch=amd64 target=Packages signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
                    f'{archive()} trixie main\n')
        command([*APT_GET, *AS_ROOT, *options, '-o', 'APT::Update::Error-Mode=any', 'update'])
        kernels.unpack([f'{name}/trixie' for name in PACKAGES], root, options)


def launcher():
    """What has to stand before a program, named by its path, for it to run with these libraries. Once they are in the cache
    no newer version is looked for: they are the tests' tool and not their object."""
    libraries = f'{kernels.obtain(KIND, lambda: kernels.cached(KIND, KIND, unpack), LIBRARIES)}/{LIBRARIES}'
    # Else the system's providers would be taken, by the path that the library was built with.
    return ['env', f'IBV_DRIVERS={libraries}/libibverbs/librxe', f'{libraries}/ld-linux-x86-64.so.2', '--library-path', libraries]
