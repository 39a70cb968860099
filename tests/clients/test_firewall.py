# SPDX-License-Identifier: BSD-2-Clause
"""Stateful firewalls on the way, in which nothing was opened for RDMA: a host gets UDP packets only as answers to its own, from
the address and port that those went to. RC and UC packets leave from a random port, which such a firewall has never seen.
"""
import sys

from cm_server import serve
from harness import DEVICE, check, isolate, need, next_port, run_pair, tap, transfer, veth_pair

RULES = """
table inet stateful {
    chain input {
        type filter hook input priority 0;
        iif lo accept
        ct state established accept
        meta l4proto udp counter drop
    }
}
"""


class Firewalls:
    """Each of `hosts` has a firewall while this is entered."""

    def __init__(self, *hosts):
        self.hosts = hosts

    def __enter__(self):
        need('nft')
        for host in self.hosts:
            host.run('nft', RULES)

    def __exit__(self, *_):
        for host in self.hosts:
            host.run('nft', 'delete table inet stateful')


def connection(firewalled):
    """The client's host has a firewall: it sends the first message of the connection manager, and the first request."""
    with Firewalls(firewalled):
        at = ['-a', host_b.address, '-p', str(next_port())]
        server = serve(host_b, 'rping', '-s', *at, '-C', '50', '-v')
        run_pair(server, host_a.start('rping', '-c', *at, '-C', '50', '-V'))


def verbs(firewalled, name, *args):
    option = '-g' if 'pingpong' in name else '-x'
    with Firewalls(*firewalled):
        transfer(host_b, host_a, [name, '-d', DEVICE, *args], [option, host_b.gid_index(host_b.address)],
                 [option, host_a.gid_index(host_a.address)])


def the_firewall_works():
    """A packet from a port that it has not seen does not arrive."""
    receive = 'import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 5000)); ' \
        's.settimeout(1); print("bound", flush=True); s.recv(9)'
    send = f'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("{host_a.address}", 5000))'
    with Firewalls(host_a):
        receiver = host_a.start('/usr/bin/python3', '-c', receive, plain=True)
        try:
            host_b.call('/usr/bin/python3', '-c', send, plain=True)
            check(receiver.wait(20) not in (0, None), 'a packet came through')
        finally:
            receiver.end()


def cases():
    yield 'the firewall works', the_firewall_works
    yield 'rping, the client has a firewall', lambda: connection(host_a)
    for name, args in (('ibv_rc_pingpong', '-c -n 50'), ('ibv_ud_pingpong', '-n 50'), ('ib_read_lat', '-F -n 50'),
                       ('ib_send_bw', '-F -n 50 -b')):
        yield f'{name} {args}, the client has a firewall', lambda n=name, a=args: verbs([host_a], n, *a.split())
    yield ('ib_write_bw -b, both have a firewall',
           lambda: verbs([host_a, host_b], 'ib_write_bw', '-F', '-n', '50', '-b'))


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases())))
