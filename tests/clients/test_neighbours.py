# SPDX-License-Identifier: BSD-2-Clause
"""Neighbours: processes of several users, and of containers that share the network but no files, on one host."""
import atexit
import collections
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

from harness import DEVICE, ROCI, Host, Skip, check, isolate, need, next_port, program, run_pair, tap, transfer, veth_pair, wait_until


class Neighbour(Host):
    """Those who run programs on a host as another user, or in a container: here, with a run directory of their own."""

    def __init__(self, host, name, uid=0):
        super().__init__(f'{name} on {host.name}', None, host.address)
        self.pid, self.gids = host.pid, host.gids
        self.prefix = host.prefix
        self.rundir = tempfile.mkdtemp(prefix='roci-neighbour-')
        atexit.register(shutil.rmtree, self.rundir, ignore_errors=True)
        if uid:
            self.prefix = [*host.prefix, 'setpriv', '--reuid', str(uid), '--regid', str(uid), '--clear-groups', '--']
            if not shutil.which('setpriv') or subprocess.run([*self.prefix, 'true'], stderr=subprocess.DEVNULL).returncode:
                raise Skip('only root can start programs of several users (with setpriv)')
            os.chown(self.rundir, uid, uid)
            if subprocess.run([*self.prefix, 'test', '-x', program('idle')]).returncode:
                raise Skip('other users cannot read the build')

    def start(self, *argv, env=None, plain=False):
        return super().start(*argv, env=dict(env or {}, ROCI_RUNDIR=self.rundir), plain=plain)



USERS = {'root and a user': (0, 20001), 'two users': (20001, 20002), 'two containers': (0, 0)}


def neighbours(kind):
    return [Neighbour(host_a, f'neighbour {n} ({uid})', uid) for n, uid in enumerate(USERS[kind], 1)]


def gid_of(host):
    return ['-g', host.gid_index(host.address)]


def pingpong(server, client):
    transfer(server, client, ['ibv_rc_pingpong', '-d', DEVICE, '-c', '-n', '200'], gid_of(server), gid_of(client))


def hold(who):
    """Starts a program that has the address's port 4791, and keeps it."""
    process = who.start(program('idle'), *gid_of(who))
    wait_until('the program to idle', lambda: 'idle' in process.text() or not process.running())
    check(process.running(), process.report())
    return process


def to_each_other(kind):
    """Each is the server once; the server has the port."""
    one, two = neighbours(kind)
    pingpong(one, two)
    pingpong(two, one)


def while_a_neighbour_has_the_port(kind):
    """Between two hosts, and between processes of the one that is without the port."""
    one, two = neighbours(kind)
    holder = hold(one)
    try:
        pingpong(two, host_b)
        pingpong(host_b, two)
        pingpong(two, two)
        pingpong(one, host_b)
    finally:
        holder.end()


def datagrams_without_the_port(kind):
    """Nobody sends again what is lost, so they wait where the other process has no room. The program waits for each."""
    need('ib_send_bw')
    one, two = neighbours(kind)
    holder = hold(one)
    try:
        transfer(two, two, ['ib_send_bw', '-d', DEVICE, '-F', '-c', 'UD', '-b', '-a', '-n', '500', '-x', two.gid_index(two.address)])
    finally:
        holder.end()


def both_at_once(kind):
    one, two = neighbours(kind)
    pairs = []
    for who in one, two:
        argv = ['ibv_rc_pingpong', '-d', DEVICE, '-c', '-n', '2000', '-p', str(next_port())]
        server = who.start(*argv, *gid_of(who))
        wait_until('the server to listen', lambda: who.listens(int(argv[-1])) or not server.running())
        pairs.append((server, argv))
    pairs = [(server, host_b.start(*argv, *gid_of(host_b), host_a.address)) for server, argv in pairs]
    for server, client in pairs:
        run_pair(server, client)


# rping of rdma-core 44 closes the event channel that its other thread may be about to read, when all is done.
RPING_RACE = 'rdma_get_cm_event: Bad file descriptor'


def rping(server_host, client_host, port):
    need('rping')
    argv = ['rping', '-C', '10', '-V', '-p', str(port), '-a', server_host.address]
    server = server_host.start(*argv, '-s')
    wait_until('the server to listen', lambda: server_host.has_name(f'roci/port/106/{port}') or not server.running())
    run_pair(server, client_host.start(*argv, '-c'), excuse=RPING_RACE)


def connections(kind):
    """By rdma_cm: each is the server once, for the other, for another host and for itself."""
    one, two = neighbours(kind)
    holder = hold(one)
    try:
        for server, client in (two, host_b), (two, one), (one, two), (two, two), (host_b, two):
            rping(server, client, next_port())
    finally:
        holder.end()


def same_port(kind):
    """The second who wants a port is told, as with two sockets; when the first ends, it can be had."""
    need('rping')
    one, two = neighbours(kind)
    port = next_port()
    argv = ['rping', '-s', '-p', str(port), '-a', '0.0.0.0']
    first = one.start(*argv)
    try:
        wait_until('the server to listen', lambda: one.has_name(f'roci/port/106/{port}') or not first.running())
        second = two.start(*argv)
        check(second.wait(20) not in (0, None) and 'Address already in use' in second.text(), second.report())
    finally:
        first.end()
    rping(two, one, port)


def owner_killed(kind):
    """The process that has the port is killed in the middle of its neighbour's stream, and another time before a request."""
    one, two = neighbours(kind)
    holder = hold(one)
    argv = ['ibv_rc_pingpong', '-d', DEVICE, '-c', '-n', '20000', '-p', str(next_port())]
    server = two.start(*argv, *gid_of(two))
    wait_until('the server to listen', lambda: two.listens(int(argv[-1])) or not server.running())
    client = host_b.start(*argv, *gid_of(host_b), host_a.address)
    wait_until('the client to connect', lambda: not two.listens(int(argv[-1])))
    holder.end()
    check(server.running() and client.running(), f'{server.report()}\n{client.report()}')
    run_pair(server, client)

    need('rping')
    holder, port = hold(one), next_port()
    server = two.start('rping', '-s', '-p', str(port), '-a', host_a.address, '-C', '10')
    wait_until('the server to listen', lambda: two.has_name(f'roci/port/106/{port}') or not server.running())
    check(server.running(), server.report())
    inodes = holders()
    holder.end()
    wait_until('the server to have the port', lambda: holders() - inodes)
    run_pair(server, host_b.start('rping', '-c', '-p', str(port), '-a', host_a.address, '-C', '10'), excuse=RPING_RACE)


def holders():
    """The sockets that have UDP port 4791 of host_a's address."""
    want = ''.join(f'{int(n):02X}' for n in reversed(host_a.address.split('.'))) + ':12B7'
    with open(f'/proc/{host_a.pid}/net/udp') as f:
        return {fields[9] for fields in map(str.split, f) if fields[1] == want}


HOSTILE = """
import array, re, socket, struct, sys, time
src, dst = (bytes(10) + b'\\xff\\xff' + socket.inet_aton(a) for a in sys.argv[1:])
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
def door(slot, header, body, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
    try:
        sender.sendmsg([header, body], rights, 0, '\\0roci/door/' + slot)
    except OSError:
        pass
print('sending', flush=True)
while True:
    for slot in re.findall('@roci/door/(\\d+)$', open('/proc/net/unix').read(), re.M):
        packet = bytes([0x64, 0, 0xff, 0xff, 0, 0, 0, 1]) + bytes(300)
        header = struct.pack('=IIIHBB16s16sI', 0x524f4345, len(packet), len(packet), 4791, 0, 64, src, dst, 0)
        for i in range(20): # a door holds ten messages: something of each kind is among the first
            door(slot, header, packet)
            door(slot, header[:i], b'')
        door(slot, b'?' * 60, packet * 30)
        door(slot, header, packet, [0, 1])
    time.sleep(0.01)
"""


def descriptors(pid):
    """What a process has open, with how often."""
    found = collections.Counter()
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            found[os.readlink(f'/proc/{pid}/fd/{fd}')] += 1
    return found


def hostile(kind):
    """A third user sends to all side doors: rubbish, packets that claim to come from the network, and file descriptors.
    It pauses: a door holds few messages, and who never pauses crowds out what is for it, as docs/SECURITY.md says."""
    one, two = neighbours(kind)
    mallory = Neighbour(host_a, 'mallory', 20003)
    holder = hold(one)
    before = descriptors(holder.pid)
    flood = mallory.start('/usr/bin/python3', '-c', HOSTILE, host_b.address, host_a.address, plain=True)
    try:
        wait_until('the flood', lambda: 'sending' in flood.text() or not flood.running())
        argv = ['ibv_rc_pingpong', '-d', DEVICE, '-c', '-n', '5000']
        texts = transfer(two, host_b, argv, gid_of(two), gid_of(host_b))
        check('door_refused' in texts[0] and 'door_malformed' in texts[0], texts[0])
        check(flood.running() and holder.running(), flood.report())
        # It opens a socket for each neighbour that it forwards to. The flood sends its standard input and output.
        more = descriptors(holder.pid) - before
        check(all(name.startswith('socket:') for name in more) and sum(more.values()) <= 8, f'the holder took {more}')
        sent = [os.readlink(f'/proc/{flood.pid}/fd/{fd}') for fd in (0, 1)]
        check(not any(name.startswith('socket:') for name in sent), sent)
    finally:
        flood.end()
        holder.end()


SQUAT = """
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (1100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(1023)]
for slot, s in enumerate(kept, 1):
    s.bind(f'\\0roci/door/{slot}')
print('squatting', flush=True)
time.sleep(600)
"""


def squatter(kind):
    """Somebody has the names of all side doors."""
    one, two = neighbours(kind)
    thief = one.start('/usr/bin/python3', '-c', SQUAT, plain=True)
    try:
        wait_until('the names to be taken', lambda: 'squatting' in thief.text() or not thief.running())
        check(thief.running(), thief.report())
        process = two.start('ibv_devinfo')
        check(process.wait(30) not in (0, None), process.report())
        check('1023 processes on this host have one already, or somebody keeps their names' in process.text(), process.report())
    finally:
        thief.end()
    two.call('ibv_devinfo')


def doctor(kind):
    """roci doctor does not ask a user to end his neighbour's programs."""
    if kind == 'two containers':
        raise Skip('a container\'s processes have the same user, so the port seems free')
    one, two = neighbours(kind)
    holder = hold(one)
    try:
        process = two.start(ROCI, 'doctor', plain=True)
        check(process.wait(60) == 0, process.report())
        said = f'UDP port 4791 of {host_a.address} ({other_host.link}) is another user\'s. If roci0 runs there, it forwards'
        check(said in process.text().replace('\n           ', ' ') and 'end process' not in process.text(), process.report())
    finally:
        holder.end()


def port_of_a_stranger(kind):
    """Another user's program, which is none of ours, has the port. A listener says so when it starts."""
    one, two = neighbours(kind)
    steal = f"import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('{host_a.address}', 4791)); print('taken', flush=True); time.sleep(600)"
    thief = one.start('/usr/bin/python3', '-c', steal, plain=True)
    try:
        wait_until('the port to be taken', lambda: 'taken' in thief.text() or not thief.running())
        check(thief.running(), thief.report())
        recv = two.start(ROCI, 'recv', '--open', '--bind', host_a.address, '--dir', two.rundir, plain=True)
        try:
            wait_until('the line', lambda: f'UDP port 4791 of {host_a.address} is taken' in recv.text() or not recv.running())
            check(recv.running() and 'other hosts cannot reach this process there' in recv.text(), recv.report())
        finally:
            recv.end()
    finally:
        thief.end()


if __name__ == '__main__':
    isolate(users=True)
    host_a, other_host = veth_pair()
    host_b = Neighbour(other_host, 'somebody')
    sys.exit(tap([(f'{kind}: {name}', lambda kind=kind, case=case: case(kind)) for kind in USERS for name, case in (
        ('ping-pong with each other', to_each_other),
        ('one has the port, the other talks to another host', while_a_neighbour_has_the_port),
        ('one has the port, the other sends datagrams to itself', datagrams_without_the_port),
        ('both talk to another host', both_at_once),
        ('connections by rdma_cm', connections),
        ('one port', same_port),
        ('the owner of the port is killed', owner_killed),
        ('a hostile third', hostile),
        ('somebody has all names', squatter),
        ('roci doctor', doctor),
        ('a program that is none of ours has the port', port_of_a_stranger),
    )]))
