# SPDX-License-Identifier: BSD-2-Clause
"""A host behind a NAT: a client, a router that masquerades as Docker's bridge and home routers do, and a server."""
import filecmp
import json
import os
import re
import sys
import tempfile
import time

from cm_server import serve
from harness import ROCI, Failure, check, isolate, need, next_port, program, run_pair, tap, veth_pair, wait_until

PRIVATE, OTHER = '10.77.2.1', '10.77.2.77'  # the router's addresses outside

# The address that a router gives to what leaves it.
SOURCE = """
table ip nat {{
    chain postrouting {{
        type nat hook postrouting priority 100;
        oifname "{outside}" snat to {address}
    }}
}}
"""

# A router in front of the server that forwards RoCE's port.
FORWARD = """
table ip nat {{
    chain prerouting {{
        type nat hook prerouting priority -100;
        iifname "{inside}" udp dport 4791 dnat to {server}
    }}
}}
"""

MASQUERADE = """
table {family} nat {{
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
    """client -- router -- server."""

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
        self.inside, self.outside = here.link, again.link
        router.run('ip', 'addr', 'add', f'{OTHER}/24', 'dev', again.link)
        server.run('ip', 'route', 'add', '10.77.1.0/24', 'via', PRIVATE)
        wait_until('the link', lambda: 'state UP' in server.run('ip', 'link', 'show', 'dev', server.link))
        router.run('sysctl', '-qw', 'net.ipv6.conf.all.forwarding=1')
        router.run('ip', 'addr', 'add', f'{again.ipv6}/64', 'dev', again.link, 'nodad')
        run('ip', 'route', 'add', 'default', 'via', router.ipv6)

    def masquerade(self, ports='', family='ip'):
        """Without `ports` the router keeps a port where it is free."""
        self.rules(MASQUERADE, ports=ports, family=family)

    def rules(self, text, **words):
        """In place of those before. In one transaction: a packet that passes between two would leave as it is, and the server
        would send to the client's own address from then on."""
        self.router.run('nft', 'flush ruleset\n' + text.format(inside=self.inside, outside=self.outside, **words))
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


def received(into, size, *options):
    """Starts `roci recv`, and makes a file to send. Returns the receiver, the file and its ticket."""
    path, ticket = os.path.join(into, 'sent'), os.path.join(into, 'ticket')
    folder = os.path.join(into, 'received')
    os.mkdir(folder)
    with open(path, 'wb') as f:
        f.write(os.urandom(size))
    receiver = net.server.start(ROCI, 'recv', '--dir', folder, '--ticket-file', ticket, '--once', *options, plain=True)
    wait_until('the ticket', lambda: os.path.exists(ticket) or not receiver.running())
    return receiver, path, ticket


def send(*options):
    """As a user types it, without an option."""
    with tempfile.TemporaryDirectory(prefix='roci-nat-') as into:
        receiver, path, ticket = received(into, 3 << 20, *options)
        run_pair(receiver, net.client.start(ROCI, 'send', path, '@' + ticket, plain=True))
        check(filecmp.cmp(path, os.path.join(into, 'received', 'sent'), shallow=False), 'the file is another one')


def rping(*args, address=None):
    at = ['-a', address or net.server.address, '-p', str(next_port())]
    server = serve(net.server, 'rping', '-s', *at, '-C', '20', '-v')
    run_pair(server, net.client.start('rping', '-c', *at, '-C', '20', '-V', *args))


def several():
    """Three processes at each end: a CHALLENGE and its answer find the right ones."""
    ats = [['-a', net.server.address, '-p', str(next_port()), '-C', '100'] for _ in range(3)]
    servers = [serve(net.server, 'rping', '-s', *at) for at in ats]
    clients = [net.client.start('rping', '-c', *at) for at in ats]
    for server, client in zip(servers, clients):
        run_pair(server, client)


def counter(process, name):
    return json.loads(net.server.call(ROCI, 'stats', '--json', str(process.pid), plain=True))['counters'][name]


def moves(change, says='', address=None):
    """The mapping changes in the middle of a connection, three times; then both ends go on. The client says so."""
    at = ['-a', address or net.server.address, '-p', str(next_port())]
    server = serve(net.server, 'rping', '-s', *at)
    client = net.client.start('rping', '-c', *at)  # it pings until it is ended

    def lives():
        check(client.running() and server.running(), 'one of them has ended')
        return True

    def goes_on():
        seen = net.carried()
        wait_until('packets', lambda: lives() and net.carried() > seen + 500)
    try:
        for round in range(3):
            goes_on()
            before = counter(server, 'peers_moved')
            change(round)
            wait_until('the server to follow', lambda: lives() and counter(server, 'peers_moved') > before)
        goes_on()
    except Failure as failure:
        raise Failure(f'{failure}\n{server.report()}\n{client.report()}') from None
    finally:
        client.end()
        server.end()
    told = client.text()
    check(says in told and 'when it is back, if' not in told, told)


def with_rules(ports, case, family='ip'):
    def run():
        need('nft')
        net.masquerade(ports, family)
        case()
    return run


def another_line(round):
    """The router sends by another of its addresses from now on."""
    net.rules(SOURCE, address=PRIVATE if round % 2 else OTHER)


def another_network(round):
    """The client's host gets another address, as in another Wi-Fi, and loses the one that it had."""
    old, new = (f'10.77.1.{10 + round - i}/24' if round - i >= 0 else '10.77.1.1/24' for i in (1, 0))
    net.client.run('sysctl', '-qw', f'net.ipv4.conf.{net.inside}.promote_secondaries=1')
    net.client.run('ip', 'addr', 'add', new, 'dev', net.inside)
    net.client.run('ip', 'addr', 'del', old, 'dev', net.inside)
    net.client.run('ip', 'route', 'replace', 'default', 'via', net.router.address)


def rests():
    """Both ends are silent for twice as long as the router remembers. Then it still knows the mapping."""
    net.sysctl(nf_conntrack_udp_timeout=5, nf_conntrack_udp_timeout_stream=5)
    at = ['-i', '-p', str(next_port())]
    try:
        server = serve(net.server, program('cm_survivor'), '-b', net.server.address, *at)
        client = net.client.start(program('cm_survivor'), '-s', net.server.address, *at)
        wait_until('the connection', lambda: 'running' in server.text() or not server.running())
        time.sleep(10)
        check(server.running() and client.running(), f'{server.report()}\n{client.report()}')
        client.end()
        status = server.wait(60)
    finally:
        server.end()
        client.end()
        net.sysctl(nf_conntrack_udp_timeout=30, nf_conntrack_udp_timeout_stream=120)
    check(status == 0, server.report())
    check('peers_moved' not in server.text(), 'the router has forgotten the mapping:\n' + server.report())


def to_router(path, ticket):
    return net.client.start(ROCI, 'send', '--ticket-file', ticket, path, net.router.address, plain=True)


def forwarded():
    """The receiver is behind the router, which forwards UDP port 4791."""
    net.rules(FORWARD, server=net.server.address)
    with tempfile.TemporaryDirectory(prefix='roci-nat-') as into:
        receiver, path, ticket = received(into, 3 << 20)
        run_pair(receiver, to_router(path, ticket))


def not_forwarded():
    net.rules('')
    with tempfile.TemporaryDirectory(prefix='roci-nat-') as into:
        receiver, path, ticket = received(into, 1000)
        sender = to_router(path, ticket)
        status = sender.wait(60)
        receiver.end()
        check(status == 4 and 'forward UDP port 4791' in sender.text(), sender.report())


def datagrams():
    """They do not cross a NAT. The server counts them, and says so."""
    argv, port = ['ibv_ud_pingpong', '-p'], next_port()
    argv += [str(port), '-g']
    server = net.server.start(*argv, net.server.gid_index(net.server.address), env={'ROCI_WHY': '1'})
    client = None
    try:
        wait_until('the server to listen', lambda: net.server.listens(port) or not server.running())
        client = net.client.start(*argv, net.client.gid_index(net.client.address), net.server.address)
        wait_until('a line', lambda: 'dropped' in server.text() or not server.running())
        dropped = counter(server, 'rx_ud_bad_icrc')
    finally:
        for process in filter(None, (server, client)):
            process.end()
    check(re.search(r'why: a datagram from 10\.77\.2\.1 for QP 0x\w+ is dropped: .* NAT .* VPN', server.text()), server.report())
    check(dropped > 0, f'{dropped} are counted')


def captured():
    """At the server, which does not see the addresses that the ICRCs are for. `roci dump` finds them in the request."""
    with tempfile.TemporaryDirectory(prefix='roci-nat-') as into:
        path, at = os.path.join(into, 'capture'), ['-a', net.server.address, '-p', str(next_port()), '-C', '20']
        server = serve(net.server, 'rping', '-s', *at, env={'ROCI_CAPTURE': path})
        run_pair(server, net.client.start('rping', '-c', *at))
        lines = [json.loads(line) for line in net.server.call(ROCI, 'dump', '--json', path, plain=True).splitlines()]
    icrcs = [line['icrc'] for line in lines if line.get('icrc')]
    check(icrcs.count('behind_nat') > 50 and 'wrong' not in icrcs, str({i: icrcs.count(i) for i in icrcs}))


def cases():
    for what, ports in (('keeps', ''), ('changes', RANDOM)):
        yield f'roci send, the NAT {what} the port', with_rules(ports, send)
        yield f'rping, the NAT {what} the port', with_rules(ports, rping)
        yield f'roci send over IPv6, the NAT {what} the port', with_rules(ports, lambda: send('--bind', net.server.ipv6), 'ip6')
        yield f'rping over IPv6, the NAT {what} the port', with_rules(ports, lambda: rping(address=net.server.ipv6), 'ip6')
    yield 'the NAT forgets, and gives another port, over IPv6', with_rules(
        RANDOM, lambda: moves(lambda _: net.forget(), address=net.server.ipv6), 'ip6')
    yield 'a capture at the server, the NAT changes the port', with_rules(RANDOM, captured)
    yield 'several processes, the NAT changes the port', with_rules(RANDOM, several)
    yield 'datagrams, the NAT keeps the port', with_rules('', datagrams)
    yield 'the NAT forgets, and gives another port', with_rules(RANDOM, lambda: moves(lambda _: net.forget()))
    yield 'the NAT gets another address', with_rules('', lambda: moves(another_line))
    yield 'the client gets another address', with_rules(
        '', lambda: moves(another_network, 'behind a NAT'))
    yield 'a connection rests', with_rules(RANDOM, rests)
    yield 'a receiver behind a router that forwards', forwarded
    yield 'a receiver behind a router that does not forward', not_forwarded


if __name__ == '__main__':
    isolate()
    net = Network()
    sys.exit(tap(list(cases()), quick=lambda name: 'the port' in name or 'not forward' in name))
