# SPDX-License-Identifier: BSD-2-Clause
"""Hostile places: filters of system calls, tight limits, no memory, no network, interfaces that come and go, a clock that is
set, processes that are stopped for long. In each the device either works, or says what is missing and what to do."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from harness import ROCI, SANITIZER, Failure, Host, Skip, check, isolate, next_port, program, tap, veth_pair, wait_until
from mover import LOST, OK, Receiver, environment, events, make_large, write

base = tempfile.TemporaryDirectory(prefix='roci-places-')
MIB = 1 << 20
GOOD = 0


class Place:
    """A host whose programs all run in a place: behind a command, or with an environment."""
    device = 'embedded'

    def __init__(self, host, prefix=(), env=None):
        self.host, self.before, self.env = host, list(prefix), env or {}
        self.address = host.address

    def start(self, *argv, env=None, plain=True):
        env = dict(env or {}, **self.env)
        if SANITIZER and 'LD_PRELOAD' in self.env and (env_of := environment()):
            env['LD_PRELOAD'] = env_of['LD_PRELOAD'] + ':' + self.env['LD_PRELOAD']
        return self.host.start(*self.before, *argv, env=env, plain=True)


def folder(name):
    path = os.path.join(base.name, name)
    os.makedirs(path, exist_ok=True)
    return path


def sample():
    path = os.path.join(folder('samples'), 'sample')
    if not os.path.exists(path):
        make_large(path, 3 * MIB)
    return path


def finish(process, seconds=60):
    status = process.wait(seconds)
    check(status == GOOD, ('did not end\n' if status is None else f'exit status {status}\n') + process.report())
    return process.text()


def smoke(place):
    """Every opcode, by two programs in this place."""
    port = str(next_port())
    argv = [ROCI, 'run', '--', program('all_ops'), '-p', port, '-g', '0']
    server = place.start(*argv, env=environment())
    wait_until('all_ops', lambda: place.host.listens(int(port)) or not server.running())
    client = place.start(*argv, place.address, env=environment())
    try:
        status = client.wait(60)
        check(status == GOOD and server.wait(20) == GOOD, f'{client.report()}\n{server.report()}')
    finally:
        server.end()
        client.end()


def serve(place):
    port = next_port()
    next_port()  # TCP's
    process = place.start(ROCI, 'serve', '--port', str(port), '--device', 'embedded', '--json', env=environment())
    wait_until('roci serve', lambda: events(process, 'listening') or not process.running())
    check(process.running(), process.report())
    return process, port


def start_ping(place, port, *options):
    return place.start(ROCI, 'ping', '--device', 'embedded', '--count', '2', *options, f'{place.address}:{port}', env=environment())


def ping(place):
    process, port = serve(place)
    try:
        finish(start_ping(place, port))
    finally:
        process.end()


def send(place, name):
    into = folder(f'in {name}')
    with Receiver(place, into) as receiver:
        receiver.take(place, sample())
    with open(sample(), 'rb') as a, open(os.path.join(into, 'sample'), 'rb') as b:
        check(a.read() == b.read(), 'another content')


def works(name, prefix=(), env=None):
    place = Place(loopback, prefix, env)
    for what, work in (('smoke', lambda: smoke(place)), ('ping', lambda: ping(place)), ('send', lambda: send(place, name))):
        try:
            work()
        except Failure as failure:
            raise Failure(f'{what}: {failure}') from None


def limits(*options):
    return ['prlimit', *options, '--']


def refuses(prefix, *words):
    """`roci ping` cannot work there; its error has these words, and it ends by itself."""
    process = Place(loopback, prefix).start(ROCI, 'ping', '--device', 'embedded', f'127.0.0.1:{next_port()}', env=environment())
    status = process.wait(30)
    check(status not in (None, GOOD) and status > 0, f'exit status {status}\n{process.report()}')
    check(all(word in process.text() for word in words), f'not {words}\n{process.report()}')


def mounted(*what):
    """A mount namespace of its own, with this mounted in it."""
    return ['unshare', '-m', 'sh', '-c', ' && '.join(f'mount -t tmpfs {mount}' for mount in what) + ' && exec "$@"', 'sh']


def devinfo(prefix, *words):
    """`ibv_devinfo` cannot open the device there. Where there is no /proc, `roci run` cannot be used either, so it comes first."""
    process = Place(loopback, ['env', 'XDG_RUNTIME_DIR=/nowhere', ROCI, 'run', '--', *prefix]).start('ibv_devinfo', env=environment())
    status = process.wait(30)
    check(status not in (None, GOOD), f'exit status {status}\n{process.report()}')
    check(all(word in process.text() for word in words), f'not {words}\n{process.report()}')


def no_proc():
    refuses(mounted('none /proc'), '/proc/self/exe cannot be read', 'mount /proc')
    demo = Place(loopback, mounted('none /proc')).start(ROCI, 'demo', env=dict(environment(), TMPDIR=base.name))
    check(demo.wait(30) not in (None, GOOD) and 'roci demo: /proc/self/exe: No such file or directory' in demo.text(), demo.report())
    devinfo(mounted('none /proc'), 'cannot open roci0: /proc/self/ns/net cannot be read; mount /proc')


def read_only():
    devinfo(mounted('-o ro none /dev/shm', '-o ro none /tmp'), 'cannot write the sysfs files', 'ROCI_RUNDIR): Read-only file system; programs',
            'set ROCI_RUNDIR to one of yours): Read-only file system')


def address_space():
    """A sanitizer needs terabytes."""
    if SANITIZER:
        raise Skip('a sanitizer needs more')
    works('v', limits('--as=400000000'))


def too_little_address_space():
    """Which part of the device finds none left depends on what the parts before it took."""
    if SANITIZER:
        raise Skip('a sanitizer needs more')
    for megabytes in 17, 18, 19, 20:
        refuses(limits(f'--as={megabytes}000000'), 'ulimit -v')


def no_memory():
    if SANITIZER:
        raise Skip('a sanitizer has an allocator of its own')
    return loopback.call(program('no_memory'), '0', seconds=120)


# Interfaces that come and go

def interfaces():
    """The server is there before its address, and stays when the interface goes and another comes."""
    here, there = host_a, host_b
    process, port = serve(Place(there))
    target = Place(here)
    target.address = there.address
    try:
        finish(start_ping(target, port))
        there.run('ip', 'link', 'set', there.link, 'down')
        gone = start_ping(target, port)
        status = gone.wait(60)
        check(status not in (None, GOOD), gone.report())
        check(there.address in gone.text(), gone.report())
        there.run('ip', 'link', 'set', there.link, 'up')
        there.run('ip', 'addr', 'flush', 'dev', there.link)
        there.run('ip', 'addr', 'add', there.address + '/24', 'dev', there.link)
        wait_until('the link', lambda: 'state UP' in there.run('ip', 'link', 'show', 'dev', there.link))
        finish(start_ping(target, port))
        check(process.running(), process.report())
    finally:
        process.end()
    return gone.text().splitlines()[0]


# Clocks

def set_clock():
    """The wall's clock is set by a day, four times a second. A namespace has no such clock of its own, so the programs see it by
    a preloaded library."""
    works('clock', env={'LD_PRELOAD': program('jumping_clock.so')})


def other_monotonic():
    """Two processes of one host whose monotonic clocks differ by a day, as containers that were moved have them."""
    probe = subprocess.run(['unshare', '-T', '--monotonic', '86400', 'true'], stderr=subprocess.PIPE, text=True)
    if probe.returncode:
        raise Skip(probe.stderr.strip())
    moved, usual = Place(loopback, ['unshare', '-T', '--monotonic', '86400', '--']), Place(loopback)
    process, port = serve(moved)
    try:
        finish(start_ping(usual, port))
    finally:
        process.end()
    with Receiver(usual, folder('in moved')) as receiver:
        receiver.take(moved, sample())


# Stopped processes

def stopped_ping(seconds):
    """The server is stopped while a client asks. The client ends with an error that names it; later clients are served."""
    process, port = serve(Place(loopback))
    try:
        finish(start_ping(Place(loopback), port))
        process.popen.send_signal(signal.SIGSTOP)
        client = start_ping(Place(loopback), port)
        status = client.wait(seconds)
        check(status not in (GOOD, None), client.report())
        process.popen.send_signal(signal.SIGCONT)
        finish(start_ping(Place(loopback), port))
    finally:
        process.end()
    return client.text().splitlines()[0]


class Stopped:
    """A transfer, in the middle of which one side is stopped."""

    def __init__(self, who, path, into):
        self.path, self.into = path, into
        self.receiver = Receiver(Place(loopback), into)
        self.sender = self.receiver.send(Place(loopback), '--limit', '40M', path)
        wait_until('the transfer', lambda: os.listdir(into) or not self.sender.running())
        self.target = self.sender if who == 'sender' else self.receiver.process
        self.target.popen.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.target.popen.send_signal(signal.SIGCONT)

    def check(self):
        """Whether it goes on or has to be sent again, all of it arrives."""
        status = self.sender.wait(90)
        check(status in (OK, LOST), f'exit status {status}\n{self.sender.report()}\n{self.receiver.process.report()}')
        said = [e.get('text') for e in events(self.sender, 'ended')]
        if status == LOST:
            check(said and said[-1], self.sender.report())
            self.receiver.take(Place(loopback), self.path)
        with open(self.path, 'rb') as a, open(os.path.join(self.into, 'large'), 'rb') as b:
            check(a.read() == b.read(), 'another content')
        return 'it went on' if status == OK else said[-1]

    def end(self):
        self.sender.end()
        self.receiver.process.end()


def stopped_send(seconds):
    path = os.path.join(folder('samples'), 'large')
    if not os.path.exists(path):
        make_large(path, 64 * MIB)
    transfers = []
    try:
        for who in ('sender', 'receiver'):
            transfers.append(Stopped(who, path, folder(f'in {who} {seconds}')))
        time.sleep(seconds)
        for transfer in transfers:  # a process that stays stopped may take connection requests of the others
            transfer.go_on()
        return '\n'.join(transfer.check() for transfer in transfers)
    finally:
        for transfer in transfers:
            transfer.end()


CASES = [
    ("the filter of Docker's default profile, no io_uring, no copies, no ptrace",
     lambda: works('docker', [program('confine'), 'docker'])),
    ('an old filter: no openat2() and epoll_pwait2() either', lambda: works('old', [program('confine'), 'old'])),
    ('64 descriptors', lambda: works('n64', limits('--nofile=64:64'))),
    ('too few descriptors', lambda: refuses(limits('--nofile=12:12'), 'Too many open files', 'ulimit -n')),
    # a run directory of its own: there is no registry yet
    ('too small files', lambda: refuses(['env', f'ROCI_RUNDIR={base.name}/rundir', *limits('--fsize=1000000')], 'File too large', 'ulimit -f')),
    ('no /proc', no_proc),
    ('nothing can be written', read_only),
    ('no locked memory', lambda: works('l0', limits('--memlock=0:0'))),
    ('400 MB of address space', address_space),
    ('too little address space', too_little_address_space),
    ('memory runs out in each call', no_memory),
    # a network namespace with nothing but lo, and lo is down
    ('no network, not even lo', lambda: refuses(['unshare', '-n'], 'there is no route to that address')),
    ('interfaces that go and come', interfaces),
    ("the wall's clock is set again and again", set_clock),
    ('another monotonic clock', other_monotonic),
    ('a server that is stopped', lambda: stopped_ping(60)),
    ('a sender and a receiver, stopped for a moment', lambda: stopped_send(2)),
    ('a sender and a receiver, stopped for a minute', lambda: stopped_send(60)),
]

if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    slow = ('old', 'address', 'interfaces', 'monotonic', 'stopped')
    sys.exit(tap(CASES, quick=lambda name: not any(word in name for word in slow)))
