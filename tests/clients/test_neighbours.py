# SPDX-License-Identifier: BSD-2-Clause
"""Neighbours: processes of several users, and of containers that share the network but no files, on one host."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

from harness import DEVICE, Host, Skip, check, isolate, need, next_port, program, run_pair, tap, transfer, veth_pair, wait_until


class Neighbour(Host):
    """Those who run programs on a host as another user, or in a container: here, with a run directory of their own."""

    def __init__(self, host, name, uid=0):
        super().__init__(f'{name} on {host.name}', None, host.address)
        self.pid, self.gids = host.pid, host.gids
        self.prefix = host.prefix
        self.rundir = tempfile.mkdtemp(prefix='roci-neighbour-')
        atexit.register(shutil.rmtree, self.rundir, ignore_errors=True)
        if uid:
            if os.geteuid() or not shutil.which('setpriv'):
                raise Skip('only root can start programs of several users (with setpriv)')
            self.prefix = [*host.prefix, 'setpriv', '--reuid', str(uid), '--regid', str(uid), '--clear-groups', '--']
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


def rping(server_host, client_host, port):
    need('rping')
    argv = ['rping', '-C', '10', '-V', '-p', str(port), '-a', server_host.address]
    server = server_host.start(*argv, '-s')
    wait_until('the server to listen', lambda: server_host.has_name(f'roci/port/106/{port}') or not server.running())
    run_pair(server, client_host.start(*argv, '-c'))


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


if __name__ == '__main__':
    isolate(users=True)
    host_a, host_b = veth_pair()
    sys.exit(tap([(f'{kind}: {name}', lambda kind=kind, case=case: case(kind)) for kind in USERS for name, case in (
        ('ping-pong with each other', to_each_other),
        ('one has the port, the other talks to another host', while_a_neighbour_has_the_port),
        ('both talk to another host', both_at_once),
        ('connections by rdma_cm', connections),
        ('one port', same_port),
    )]))
