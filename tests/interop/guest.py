# SPDX-License-Identifier: BSD-2-Clause
"""A guest: one of Debian's kernels under QEMU. It sees the host's root file system under an overlay, so programs that are
built here run there without a disk image. It can write to the host only in the directory /report."""
import lzma
import os
import shutil
import signal
import subprocess
import tempfile
import time

import kernels

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ['virtio_pci', '9p', '9pnet_virtio', 'overlay']
MEMORY_MIB = 3072


class GuestFailure(Exception):
    """The guest failed; the text has its console."""


def need_programs():
    """Raises kernels.Unavailable where a program for guests is missing."""
    path = kernels.ENVIRONMENT['PATH']
    for name, package in ('qemu-system-x86_64', 'qemu-system-x86'), ('cpio', 'cpio'), ('modprobe', 'kmod'):
        if not shutil.which(name, path=path):
            raise kernels.Unavailable(f'no {name}: the package {package} is not installed')


def initramfs(kernel, modules, busybox, path):
    """Makes it of busybox, init.sh, and the modules that reach the host's file system."""
    with tempfile.TemporaryDirectory() as root:
        for directory in ('bin', 'dev', 'proc', 'sys'):
            os.mkdir(f'{root}/{directory}')
        shutil.copy(busybox, f'{root}/bin/busybox')
        shutil.copy(f'{HERE}/init.sh', f'{root}/init')
        os.chmod(f'{root}/init', 0o755)
        names = []
        for file in modules:
            name = os.path.basename(file)
            with open(file, 'rb') as source:
                data = source.read()
            if name.endswith('.xz'):
                name, data = name[:-3], lzma.decompress(data)
            with open(f'{root}/{name}', 'wb') as target:
                target.write(data)
            names.append(name)
        with open(f'{root}/modules', 'w') as f:
            f.write('\n'.join(names) + '\n')
        with open(f'{root}/modules.path', 'w') as f:
            f.write(f'{kernel.root}/lib/modules\n')
        files = '\n'.join(os.path.relpath(os.path.join(d, f), root) for d, ds, fs in os.walk(root) for f in ds + fs)
        with open(path, 'wb') as archive:
            subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], cwd=root, input=files.encode(), stdout=archive,
                           check=True, timeout=60)


class Guest:
    """Boots at once and runs a shell script in the overlay; `with` ends it. Raises kernels.Unavailable where something for it
    cannot be obtained."""

    def __init__(self, kernel, script, seconds):
        modules, busybox = kernel.modules(*MODULES), kernels.busybox()
        self.directory = tempfile.mkdtemp(prefix='roci-interop-')
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        with open(self.path('command'), 'w') as f:
            f.write(script)
        open(self.path('output'), 'w').close()
        initramfs(kernel, modules, busybox, self.path('initramfs'))
        argv = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none',
                '-machine', 'q35', '-m', str(MEMORY_MIB), '-smp', '2',
                # The same on every machine: nested KVM may exist and not work. A CPU without newer vector instructions,
                # because emulated ones are slower than plain code.
                '-accel', 'tcg', '-cpu', 'Nehalem,+pclmulqdq,+rdrand',
                '-serial', f'file:{self.path("console")}',
                '-kernel', kernel.image, '-initrd', self.path('initramfs'),
                '-append', 'console=ttyS0 panic=-1 mitigations=off random.trust_cpu=on quiet loglevel=5',
                '-virtfs', 'local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap',
                '-virtfs', f'local,path={self.directory},mount_tag=report,security_model=none,multidevs=remap']
        with open(self.path('qemu'), 'w') as log:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        try:
            with open(self.path(name), errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def lines(self):
        """The script's output, line by line, while it runs. Raises GuestFailure when the guest does not end by itself."""
        rest = ''
        with open(self.path('output'), errors='replace') as output:
            while True:
                ended = self.popen.poll() is not None
                rest += output.read()
                *whole, rest = rest.split('\n')
                yield from whole
                if ended:
                    break
                if time.monotonic() > self.end:
                    raise GuestFailure(f'the guest did not end within {self.seconds} seconds\n{self.report()}')
                time.sleep(0.1)
        if rest:
            yield rest
        if not self.read('status'):
            raise GuestFailure(f'the guest ended early\n{self.report()}')

    def status(self):
        """The script's exit status, after lines() has ended."""
        return int(self.read('status') or -1)

    def console(self):
        return self.read('console')

    def report(self):
        return '\n'.join(['QEMU said:', self.read('qemu'), 'last lines of the console:',
                          *self.console().splitlines()[-40:]])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
            self.popen.wait(20)
        shutil.rmtree(self.directory, ignore_errors=True)
