# SPDX-License-Identifier: BSD-2-Clause
"""The common parts of the file mover's tests: files to send, receivers and senders, and the comparison of folders."""
import json
import os
import random
import stat
import tempfile

from harness import SANITIZER, SANITIZER_ENVIRONMENT, ROCI, Failure, check, program, sanitizer_library, wait_until

MIB = 1 << 20
os.umask(0)  # of the receivers: copies are compared with their whole modes

# enum mover_status of mover.h
OK, FAILED, USAGE, NO_DEVICE, NO_CONNECT, NO_TRUST, PROTOCOL, LOCAL_IO, REMOTE_IO, MISMATCH, LOST, PARTLY, INTERRUPTED = range(13)


def scratch():
    return tempfile.TemporaryDirectory(prefix='roci-mover-')


# Files

def write(path, content, mode=0o644, mtime_ns=None):
    with open(path, 'wb') as f:
        f.write(content)
    os.chmod(path, mode)
    if mtime_ns is not None:
        os.utime(path, ns=(mtime_ns, mtime_ns))


def make_large(path, size):
    """Makes a file without two equal blocks, about as fast as a disk can write it."""
    block = bytearray(os.urandom(8 * MIB))
    with open(path, 'wb') as f:
        for at in range(0, size, len(block)):
            for page in range(0, len(block), 65536):
                block[page:page + 8] = (at + page).to_bytes(8, 'big')
            f.write(block[:min(len(block), size - at)])


def make_small(folder, count):
    """Makes folders of a hundred small files each, from 0 bytes to 16 KiB."""
    for number in range(count):
        sub = os.path.join(folder, f'{number // 100:03}')
        if number % 100 == 0:
            os.makedirs(sub)
        write(os.path.join(sub, f'{number}'), os.urandom(number * 7919 % 16384), 0o600 + number % 0o100)


def make_odd(folder, seed=1):
    """Makes all kinds of entries: empty files, sizes around the size of a chunk, sparse files, names with any bytes, links,
    and folders with unusual modes and times."""
    rng = random.Random(seed)
    os.makedirs(os.path.join(folder, 'deep/er/still'))
    os.makedirs(os.path.join(folder, 'empty folder'))
    for size in (0, 1, 4095, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 5 * MIB + 123):
        write(os.path.join(folder, f'size {size}'), rng.randbytes(size), rng.choice((0o400, 0o644, 0o755, 0o606)),
              rng.randrange(1 << 60))
    for number in range(60):
        write(os.path.join(folder, 'deep', f'{number}'), rng.randbytes(rng.randrange(20000)), mtime_ns=rng.randrange(1 << 60))
    raw = os.fsencode(os.path.join(folder, 'deep', 'er'))
    for name in (b'\xff\xfe not UTF-8', b'new\nline', b'"quoted" \\ $HOME `id`', b'-rf', b' ', b'~', b'.roci', b'x' * 255):
        write(os.path.join(raw, name), name)
    with open(os.path.join(folder, 'sparse'), 'wb') as f:
        f.truncate(40 * MIB)
        for at in (0, 7 * MIB + 5, 20 * MIB):
            f.seek(at)
            f.write(rng.randbytes(10000))
    with open(os.path.join(folder, 'a hole'), 'wb') as f:
        f.truncate(3 * MIB + 1)
    for name, target in (('link', 'size 1'), ('dangling', 'nowhere'), ('outside', '/etc/passwd'), (b'odd', b'\xff/\n')):
        name = os.path.join(os.fsencode(folder), os.fsencode(name))
        os.symlink(target, name)
        os.utime(name, ns=(5, 5 * 10 ** 9), follow_symlinks=False)
    os.chmod(os.path.join(folder, 'empty folder'), 0o500)
    for sub in ('deep/er/still', 'deep/er', 'deep'):
        os.utime(os.path.join(folder, sub), ns=(1, rng.randrange(1 << 60)))


def _entries(folder, temporary=True):
    """All entries of a folder. `temporary` includes the receiver's temporary files, which may vanish while it runs."""
    found = {}
    folder = os.fsencode(folder)
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            if not temporary and name.startswith(b'.roci-'):
                continue
            path = os.path.join(where, name)
            found[os.path.relpath(path, folder)] = (path, os.lstat(path))
    return found


def _same_content(a, b):
    with open(a, 'rb') as f, open(b, 'rb') as g:
        while True:
            x, y = f.read(4 * MIB), g.read(4 * MIB)
            if x != y:
                return False
            if not x:
                return True


def _difference(a, b, sparse):
    (path, here), (other, there) = a, b
    if stat.S_IFMT(here.st_mode) != stat.S_IFMT(there.st_mode):
        return 'another kind'
    if stat.S_ISLNK(here.st_mode):
        if os.readlink(path) != os.readlink(other):
            return 'another target'
    elif stat.S_IMODE(here.st_mode) != stat.S_IMODE(there.st_mode):
        return f'mode {here.st_mode:o} became {there.st_mode:o}'
    if here.st_mtime_ns != there.st_mtime_ns:
        return f'mtime {here.st_mtime_ns} became {there.st_mtime_ns}'
    if stat.S_ISREG(here.st_mode):
        if here.st_size != there.st_size or not _same_content(path, other):
            return 'another content'
        if sparse and there.st_blocks > here.st_blocks + 16:
            return f'{here.st_blocks} blocks became {there.st_blocks}'
    return None


def check_same(source, copy, sparse=True):
    """Checks that the copy equals the source: names, kinds, content, modes, times, holes, and nothing else."""
    a, b = _entries(source), _entries(copy)
    check(a.keys() == b.keys(), f'names differ: {sorted(a.keys() ^ b.keys())[:20]}')
    for name in a:
        wrong = _difference(a[name], b[name], sparse)
        check(not wrong, f'{name!r}: {wrong}')


def check_no_wrong(source, copy):
    """Checks the copy of an unfinished transfer: a file with its final name has the right content. Anything else is
    a temporary file of the receiver."""
    a = _entries(source)
    for name, (path, there) in _entries(copy, temporary=False).items():
        check(name in a, f'{name!r} does not belong there')
        if stat.S_ISREG(there.st_mode):
            check(_same_content(a[name][0], path), f'{name!r} has its final name, but wrong content')


# Programs

def environment():
    return dict(SANITIZER_ENVIRONMENT, LD_PRELOAD=sanitizer_library()) if SANITIZER else {}


def preloading(library):
    return 'LD_PRELOAD=' + ' '.join([*environment().get('LD_PRELOAD', '').split(), program(library)])


def slow_disk(gate, *variables):
    """Puts the command that follows on a disk that waits while the file `gate` exists: see slow_disk.c."""
    return ['env', 'SLOW_DISK=' + gate, preloading('slow_disk.so'), *variables]


def like_fat():
    """Puts the command that follows on a file system like FAT: see fat.c."""
    return ['env', preloading('fat.so')]


def events(process, kind):
    """The events of one kind that --json printed."""
    found = []
    for line in process.text().splitlines():
        if line.startswith('{') and line.endswith('}'):
            event = json.loads(line)
            if event['event'] == kind:
                found.append(event)
    return found


def most_memory_mib(pid):
    """The most memory that the process has used."""
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmHWM:')) // 1024


class Receiver:
    """A `roci recv` on a host, at the host's IPv4 address or at `address`. It listens when the constructor returns."""

    def __init__(self, host, folder, *options, argv_prefix=(), address=None, links=True):
        self.address = address or host.address
        self.ticket_file = tempfile.mktemp(prefix='roci-ticket-')
        trust = [] if '--open' in options else ['--ticket-file', self.ticket_file]
        self.process = host.start(*argv_prefix, ROCI, 'recv', '--device', host.device, '--dir', folder, '--port', '0', '--json',
                                  '--bind', self.address, *trust, *(['--links'] if links else []), *options, plain=True, env=environment())
        try:
            wait_until('the receiver to listen', lambda: events(self.process, 'listening') or not self.process.running())
            if trust:
                wait_until('the ticket', lambda: os.path.exists(self.ticket_file) or not self.process.running())
            check(self.process.running(), 'the receiver ended')
        except Failure as failure:
            self.process.end()
            raise Failure(f'{failure}\n{self.process.report()}') from None
        self.port = events(self.process, 'listening')[0]['port']
        self.trust = ['--ticket-file', self.ticket_file] if trust else ['--open']

    def send(self, sender, *arguments):
        """Starts `roci send` on a host. The arguments are options and paths."""
        return sender.start(ROCI, 'send', '--device', sender.device, '--json', *self.trust, *arguments,
                            f'[{self.address}]:{self.port}', plain=True, env=environment())

    def take(self, sender, *arguments, status=OK, seconds=60):
        """Sends, waits for the end, and returns the last event."""
        process = self.send(sender, *arguments)
        got = process.wait(seconds)
        check(got == status, f'send: exit status {got}, not {status}\n{process.report()}\n{self.process.report()}')
        ended = events(process, 'ended')
        return ended[-1] if ended else {}

    def end(self, sig, status=OK):
        self.process.popen.send_signal(sig)
        got = self.process.wait(20)
        check(got == status, f'recv: exit status {got}, not {status}\n{self.process.report()}')

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.end()
        if os.path.exists(self.ticket_file):
            os.unlink(self.ticket_file)
