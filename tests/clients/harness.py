# SPDX-License-Identifier: BSD-2-Clause
"""The common parts of the client tests: network namespaces, pairs of programs under `roci run`, and TAP output.

A test file calls isolate(), makes its hosts, and gives pairs of (name, function) to tap(). Everything runs in network
namespaces that the test makes, so it needs no root and uses no port of the machine. A test ends only processes that it
started, by their pid. Every wait has a limit.
"""
import atexit
import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROCI = os.environ.get('ROCI', 'roci')
PROGRAMS = os.environ.get('ROCI_CLIENTS', HERE)  # where Meson builds the programs of this directory
SANITIZER = os.environ.get('ROCI_SANITIZER', '')
SLICE = os.environ.get('ROCI_SLICE', '')
# A sanitizer makes every time limit this many times longer, and so does a busy machine: limits are for hangs.
SLOW = (8 if SANITIZER else 1) * int(os.environ.get('ROCI_PATIENCE', '1'))

SANITIZER_ENVIRONMENT = {
    'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
    'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1',
}

DEVICE = 'roci0'


class Skip(Exception):
    """The machine lacks something. The text says what."""


class Failure(Exception):
    """A check failed. The text says which one, and what the programs printed."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def isolate(users=False):
    """Executes this program again in a new user and network namespace. The second execution returns from here. With
    `users`, root stays in its user namespace, where it can start programs of other users."""
    if os.environ.get('ROCI_TEST_ISOLATED'):
        os.environ.pop('ROCI_TEST_ISOLATED')
        os.environ['PATH'] += ':/usr/sbin:/sbin'
        run('ip', 'link', 'set', 'lo', 'up')
        return
    unshare = ['unshare', '-n' if users and not os.geteuid() else '-Urn']
    probe = subprocess.run([*unshare, 'true'], stderr=subprocess.PIPE, text=True)
    if probe.returncode:
        print(f'1..0 # SKIP no network namespace: {probe.stderr.strip()}')
        sys.exit(0)
    env = dict(os.environ, ROCI_TEST_ISOLATED='1')
    os.execvpe('unshare', [*unshare, '/usr/bin/python3', *sys.argv], env)


def run(*argv, **kw):
    """Runs a command of the set-up. It must succeed."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * SLOW, **kw)
    if done.returncode:
        raise Failure(f'{" ".join(argv)}: exit status {done.returncode}\n{done.stdout}')
    return done.stdout


def wait_until(what, condition, seconds=20):
    """Polls until condition() is true, and returns its value. The limit only ends a hang; it is not a measurement."""
    end = time.monotonic() + seconds * SLOW
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failure(f'gave up waiting: {what}')
        time.sleep(0.01)


def wait_for_end(popen, seconds):
    """Returns the exit status the moment that a child ends; None: not in time. Popen.wait() with a timeout looks every 50 ms, and
    measurements would count these. It has the last word all the same: a child that LeakSanitizer still traces has ended for a
    pidfd, but its parent gets the status only once the tracer is gone too."""
    end = time.monotonic() + seconds
    fd = os.pidfd_open(popen.pid)
    try:
        select.select([fd], [], [], seconds)
        return popen.wait(max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        os.close(fd)


class Process:
    """A program on a host. Its output goes to a file."""

    def __init__(self, host, argv, env=None, stdin=None):
        self.argv = argv
        self.out = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(host.prefix + argv, stdin=stdin or subprocess.DEVNULL, stdout=self.out,
                                      stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})))
        self.pid = self.popen.pid  # nsenter and `roci run` become the program, so this is its pid

    def text(self):
        """What it has printed so far. Does not move the offset of the file, which the program shares."""
        return os.pread(self.out.fileno(), os.fstat(self.out.fileno()).st_size, 0).decode(errors='replace')

    def running(self):
        return self.popen.poll() is None

    def wait(self, seconds):
        """Returns the exit status. Kills a program that does not end in time, and returns None."""
        try:
            return wait_for_end(self.popen, seconds * SLOW) if self.running() else self.popen.returncode
        finally:
            self.end()

    def end(self, sig=signal.SIGKILL):
        if self.running():
            self.popen.send_signal(sig)
            self.popen.wait(20)

    def report(self):
        lines = self.text().splitlines()
        if len(lines) > 40:
            lines = lines[:20] + ['...'] + lines[-20:]
        return '\n'.join([f'$ {" ".join(self.argv)}   (exit status {self.popen.poll()})', *('  ' + l for l in lines)])


class Host:
    """A network namespace: that of this process (pid None), or that of a sleeping process."""
    device = DEVICE

    def __init__(self, name, pid=None, address='127.0.0.1'):
        self.name = name
        self.prefix = ['nsenter', '-t', str(pid), '-n', '--'] if pid else []
        self.pid = pid or os.getpid()
        self.address = address  # for TCP connections to this host
        self.gids = {}

    def run(self, *argv):
        return run(*self.prefix, *argv)

    def start(self, *argv, env=None, plain=False):
        """Starts a verbs program under `roci run`; with `plain`, starts any program directly."""
        if plain:
            return Process(self, list(argv), env)
        env = dict(env or {})
        if SANITIZER:
            env.update(SANITIZER_ENVIRONMENT, LD_PRELOAD=sanitizer_library())
        return Process(self, [ROCI, 'run', '--', *argv], env)

    def call(self, *argv, env=None, seconds=60, plain=False):
        """Runs a program, which must end with exit status 0. Returns what it printed."""
        process = self.start(*argv, env=env, plain=plain)
        status = process.wait(seconds)
        check(status == 0, ('did not end\n' if status is None else 'failed\n') + process.report())
        return process.text()

    def listens(self, port):
        """Whether a TCP socket listens on the port."""
        want = f':{port:04X}'
        for table in ('tcp', 'tcp6'):
            with open(f'/proc/{self.pid}/net/{table}') as f:
                for line in f.readlines()[1:]:
                    field = line.split()
                    if field[1].endswith(want) and field[3] == '0A':
                        return True
        return False

    def has_name(self, name):
        """Whether a process of the host has an abstract Unix socket of this name."""
        with open(f'/proc/{self.pid}/net/unix') as f:
            return any(line.split()[-1] == '@' + name for line in f)

    def gid_index(self, address):
        """The index of an address in the GID table, as an argument. ibv_devinfo tells it, as it tells a user."""
        if address not in self.gids:
            text = self.call('ibv_devinfo', '-v', '-d', DEVICE)
            for index, gid in re.findall(r'GID\[\s*(\d+)\]:\s*(\S+?),?(?:\s|$)', text):
                self.gids[gid.replace('::ffff:', '')] = index
            check(address in self.gids, f'no GID {address} in:\n{text}')
        return self.gids[address]


def sanitizer_library():
    """The sanitizer's runtime library. A program that was built without the sanitizer must load it first."""
    name = {'address': 'libasan.so', 'thread': 'libtsan.so'}[SANITIZER]
    return subprocess.run(['gcc', f'-print-file-name={name}'], stdout=subprocess.PIPE, text=True).stdout.strip()


_sleepers = []


def veth_pair(mtu=1500):
    """Makes two hosts (a, b) with a veth pair between them. a is the namespace of this process."""
    n = len(_sleepers) + 1
    sleeper = subprocess.Popen(['unshare', '-n', 'sleep', '1800'])
    _sleepers.append(sleeper)
    own = os.readlink('/proc/self/ns/net')

    def unshared():
        try:
            return os.readlink(f'/proc/{sleeper.pid}/ns/net') != own
        except FileNotFoundError:
            return False
    wait_until('a second network namespace', unshared)
    link = f'veth{n}'
    run('ip', 'link', 'add', link, 'mtu', str(mtu), 'type', 'veth',
        'peer', 'name', link, 'mtu', str(mtu), 'netns', str(sleeper.pid))
    a = Host('a', None, f'10.77.{n}.1')
    b = Host('b', sleeper.pid, f'10.77.{n}.2')
    for host, last in ((a, 1), (b, 2)):
        host.run('ip', 'link', 'set', 'lo', 'up')
        host.run('ip', 'addr', 'add', f'10.77.{n}.{last}/24', 'dev', link)
        host.run('ip', 'addr', 'add', f'fd77:{n}::{last}/64', 'dev', link, 'nodad')
        host.run('ip', 'link', 'set', link, 'up')
        host.ipv6 = f'fd77:{n}::{last}'
        host.link = link
    for host in (a, b):  # a link-local address works only after duplicate address detection
        wait_until('addresses', lambda: 'tentative' not in host.run('ip', '-6', 'addr', 'show', 'dev', link))
    return a, b


def hosts_with_relay():
    """Makes two hosts with a third namespace between them, for a program that relays (relay.py)."""
    here, middle = veth_pair()   # here -- middle -- there
    _, there = veth_pair()
    for host in (here, there):
        # The relay forwards frames as they are, so they must be complete.
        host.run('ethtool', '-K', host.link, 'gso', 'off', 'gro', 'off', 'tso', 'off', 'tx', 'off', 'rx', 'off')
    # The other end of the veth of `there` moves to the relay's namespace.
    here.run('ip', 'link', 'set', there.link, 'netns', str(middle.pid))
    for link in (here.link, there.link):
        middle.run('ip', 'addr', 'flush', 'dev', link)
        middle.run('ip', 'link', 'set', link, 'up', 'promisc', 'on')
    there.run('ip', 'addr', 'add', '10.77.1.9/24', 'dev', there.link)
    there.address = '10.77.1.9'
    wait_until('the link', lambda: 'state UP' in there.run('ip', 'link', 'show', 'dev', there.link))
    return here, middle, there


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Meson ends a test this way; exit so that end_sleepers() runs


@atexit.register
def end_sleepers():
    for sleeper in _sleepers:
        sleeper.kill()
        sleeper.wait()


_ports = itertools.count(20001)


def next_port():
    return next(_ports)


def run_pair(server, client, seconds=60, excuse=None):
    """Waits for a client and its server. Both must end with exit status 0. With `excuse`, one of them may fail if its
    output has this text and the other one succeeds. Returns what they printed."""
    try:
        client_status = client.wait(seconds)
        excused = excuse and excuse in client.text()
        # A server whose client has failed may wait forever, so it gets little time.
        server_status = server.wait(seconds if client_status == 0 or excused else 2)
    finally:
        client.end()
        server.end()
    server_ok = server_status == 0 or (client_status == 0 and excuse and excuse in server.text())
    client_ok = client_status == 0 or (server_status == 0 and excused)
    check(client_ok and server_ok, f'server:\n{server.report()}\nclient:\n{client.report()}')
    return server.text(), client.text()


def transfer(server_host, client_host, argv, server_args=(), client_args=(), env=None, seconds=60, excuse=None):
    """Runs a program as a server that listens on a TCP port (-p), and as a client that names the server."""
    port = next_port()
    argv = [*argv, '-p', str(port)]
    server = server_host.start(*argv, *server_args, env=env)
    try:
        wait_until('the server to listen', lambda: server_host.listens(port) or not server.running())
    except Failure as failure:
        server.end()
        raise Failure(f'{failure}\n{server.report()}') from None
    client = client_host.start(*argv, *client_args, server_host.address, env=env)
    return run_pair(server, client, seconds, excuse)


def program(name):
    return os.path.join(PROGRAMS, name)


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Skip(f'{name} is not installed')


def tap(cases, quick=None):
    """Runs the cases in order, prints TAP and returns the exit status. Arguments select the cases whose name contains one of
    them. quick(name) tells whether a case is quick: ROCI_SLICE=quick runs those cases, ROCI_SLICE=rest the others."""
    wanted = sys.argv[1:]
    cases = [(name, function) for name, function in cases if not wanted or any(w in name for w in wanted)]
    if quick and SLICE:
        cases = [(name, function) for name, function in cases if quick(name) == (SLICE == 'quick')]
    os.environ.setdefault('ROCI_STATS', '1')  # so that the report of a failure has the device's counters
    print(f'1..{len(cases)}')
    failed = 0
    for number, (name, function) in enumerate(cases, 1):
        start = time.monotonic()
        try:
            note = function()
            print(f'ok {number} - {name}\n# {time.monotonic() - start:.1f} s')
            for line in (note or '').splitlines():
                print(f'# {line}')
        except Skip as skip:
            print(f'ok {number} - {name} # SKIP {skip}')
        except Exception as failure:  # run the other cases all the same
            failed += 1
            print(f'not ok {number} - {name}')
            text = str(failure) if isinstance(failure, Failure) else repr(failure)
            for line in text.splitlines():
                print(f'# {line}')
        sys.stdout.flush()
    return 1 if failed else 0
