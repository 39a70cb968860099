# SPDX-License-Identifier: BSD-2-Clause
"""A host behind a NAT: a client, a router that masquerades as Docker's bridge and home routers do, and a server."""
import filecmp
import json
import os
import re
import sys
import tempfile

from cm_server import serve
from harness import ROCI, check, isolate, need, next_port, run_pair, tap, veth_pair, wait_until

MASQUERADE = """
table ip nat {{
    chain postrouting {{
        type nat hook postrouting priority 100;
        oifname "{outside}" meta l4proto udp masquerade{ports}
        oifname "{outside}" masquerade
    }}
}}
"""


# A ctnetlink message IPCTNL_MSG_CT_DELETE without attributes: it names all connections. The kernel acknowledges.
FLUSH = """
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.send(struct.pack('=IHHIIBBH', 20, 1 << 8 | 2, 5, 1, 0, 0, 0, 0))
error = struct.unpack('=i', s.recv(4096)[16:20])[0]
assert not error, error
"""


class Network:
    """client -- router -- server. The router has the address `public` outside."""

    def __init__(self):
        here, router = veth_pair()
        again, server = veth_pair()
        # The end of the second pair that is in this namespace moves to the router.
        run = here.run
        run('ip', 'link', 'set', again.link, 'netns', str(router.pid))
        router.run('ip', 'addr', 'add', f'{again.address}/24', 'dev', again.link)
        router.run('ip', 'link', 'set', again.link, 'up')
        run('ip', 'route', 'add', 'default', 'via', router.address)
        router.run('sysctl', '-qw', 'net.ipv4.ip_forward=1')
        self.client, self.router, self.server = here, router, server
        self.outside, self.public = again.link, again.address
        wait_until('the link', lambda: 'state UP' in server.run('ip', 'link', 'show', 'dev', server.link))

    def nft(self, text):
        self.router.run('nft', text)

    def masquerade(self, ports=''):
        """Without `ports` the router keeps a port where it is free."""
        self.nft('flush ruleset')
        self.nft(MASQUERADE.format(outside=self.outside, ports=ports))
        self.forget()

    def forget(self):
        """The router forgets its mappings, as if it had started again."""
        self.router.run('/usr/bin/python3', '-c', FLUSH)

    def carried(self):
        """Packets that the router has sent outside."""
        shown = json.loads(self.router.run('ip', '-s', '-j', 'link', 'show', 'dev', self.outside))
        return shown[0]['stats64']['tx']['packets']

    def sysctl(self, **values):
        for name, value in values.items():
            self.router.run('sysctl', '-qw', f'net.netfilter.{name}={value}')


RANDOM = ' to :20000-60000 random,persistent'


def received(into, size):
    """Starts `roci recv`, and makes a file to send. Returns the receiver, the file and its ticket."""
    path, ticket = os.path.join(into, 'sent'), os.path.join(into, 'ticket')
    folder = os.path.join(into, 'received')
    os.mkdir(folder)
    with open(path, 'wb') as f:
        f.write(os.urandom(size))
    receiver = net.server.start(ROCI, 'recv', '--dir', folder, '--ticket-file', ticket, '--once', plain=True)
    wait_until('the ticket', lambda: os.path.exists(ticket) or not receiver.running())
    return receiver, path, ticket


def send():
    """As a user types it, without an option."""
    with tempfile.TemporaryDirectory(prefix='roci-nat-') as into:
        receiver, path, ticket = received(into, 3 << 20)
        run_pair(receiver, net.client.start(ROCI, 'send', path, '@' + ticket, plain=True))
        check(filecmp.cmp(path, os.path.join(into, 'received', 'sent'), shallow=False), 'the file is another one')


def rping(*args):
    at = ['-a', net.server.address, '-p', str(next_port())]
    server = serve(net.server, 'rping', '-s', *at, '-C', '20', '-v')
    run_pair(server, net.client.start('rping', '-c', *at, '-C', '20', '-V', *args))


def moves(change):
    """The mapping changes in the middle of a connection, three times; then both ends go on."""
    at = ['-a', net.server.address, '-p', str(next_port()), '-C', '8000']
    server = serve(net.server, 'rping', '-s', *at)
    client = net.client.start('rping', '-c', *at)
    for round in range(3):
        seen = net.carried()
        wait_until('packets', lambda: net.carried() > seen + 500 or not client.running())
        check(client.running(), client.report())
        change(round)
    served, _ = run_pair(server, client)
    check(re.search(r'peers_moved +3\n', served), served)


def with_rules(ports, case):
    def run():
        need('nft')
        net.masquerade(ports)
        case()
    return run


def cases():
    for what, ports in (('keeps', ''), ('changes', RANDOM)):
        yield f'roci send, the NAT {what} the port', with_rules(ports, send)
        yield f'rping, the NAT {what} the port', with_rules(ports, rping)
    yield 'the NAT forgets, and gives another port', with_rules(RANDOM, lambda: moves(lambda _: net.forget()))


if __name__ == '__main__':
    isolate()
    net = Network()
    sys.exit(tap(list(cases())))
