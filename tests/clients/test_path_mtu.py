# SPDX-License-Identifier: BSD-2-Clause
"""A path that bears smaller packets than the interfaces at its ends: a client, two routers with a narrow link between
them, and a server. The routers say so by ICMP, or do not (a black hole: RFC 2923)."""
import filecmp
import json
import os
import re
import sys
import tempfile

import roce_pcap
from cm_server import serve
from harness import ROCI, check, isolate, need, next_port, run, run_pair, tap, veth_pair, wait_until

# A router that keeps to itself what is too long for it.
SILENT = """
table inet filter {
    chain output {
        type filter hook output priority 0;
        icmp type destination-unreachable drop
        icmpv6 type packet-too-big drop
    }
}
"""


class Network:
    """client -- near -- far -- server."""

    def __init__(self):
        self.client, self.near = veth_pair(9000)
        middle, self.far = veth_pair(9000)
        end, self.server = veth_pair(9000)
        self.ends = ((self.client, self.client.link), (self.near, self.client.link), (self.far, end.link), (self.server, end.link))
        # The ends of the other pairs that are in this namespace move to the routers.
        self.narrow = middle.link
        self.move(middle, self.near)
        self.move(end, self.far)
        for router in (self.near, self.far):
            router.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
        for host, gateway, gateway6 in ((self.client, self.near.address, self.near.ipv6),
                                        (self.server, end.address, end.ipv6),
                                        (self.near, self.far.address, self.far.ipv6),
                                        (self.far, middle.address, middle.ipv6)):
            host.run('ip', 'route', 'add', 'default', 'via', gateway)
            host.run('ip', '-6', 'route', 'add', 'default', 'via', gateway6)
        for host, link in ((self.near, middle.link), (self.far, end.link), (self.server, self.server.link)):
            wait_until('the link', lambda: 'state UP' in host.run('ip', 'link', 'show', 'dev', link))

    def move(self, end, router):
        self.client.run('ip', 'link', 'set', end.link, 'netns', str(router.pid))
        router.run('ip', 'addr', 'add', f'{end.address}/24', 'dev', end.link)
        router.run('ip', 'addr', 'add', f'{end.ipv6}/64', 'dev', end.link, 'nodad')
        router.run('ip', 'link', 'set', end.link, 'up')

    def narrows(self, mtu):
        for router in (self.near, self.far):
            router.run('ip', 'link', 'set', 'dev', self.narrow, 'mtu', str(mtu))

    def bears(self, mtu, silent, ends=9000):
        """From now on; the links at the ends have an MTU of `ends`. The hosts have not learned anything."""
        for host, link in self.ends:
            host.run('ip', 'link', 'set', 'dev', link, 'mtu', str(ends))
        self.silent = silent
        self.narrows(mtu)
        for router in (self.near, self.far):
            router.run('nft', 'flush ruleset')
            if silent:
                router.run('nft', SILENT)
        for host in (self.client, self.server):
            host.run('ip', 'route', 'flush', 'cache')
            host.run('ip', '-6', 'route', 'flush', 'cache')


def fragments(text):
    """How many packets a program's statistics say went in fragments."""
    found = re.search(r'sent_fragmented +(\d+)', text)
    return int(found.group(1)) if found else 0


STATS = {'ROCI_STATS': '1'}


def send(address):
    with tempfile.TemporaryDirectory(prefix='roci-mtu-') as into:
        path, ticket, folder = (os.path.join(into, name) for name in ('sent', 'ticket', 'received'))
        os.mkdir(folder)
        with open(path, 'wb') as f:
            f.write(os.urandom(6 << 20))
        receiver = net.server.start(ROCI, 'recv', '--dir', folder, '--ticket-file', ticket, '--once', plain=True, env=STATS)
        wait_until('the ticket', lambda: os.path.exists(ticket) or not receiver.running())
        sender = net.client.start(ROCI, 'send', '--ticket-file', ticket, path, address, plain=True, env=STATS)
        texts = run_pair(receiver, sender)
        check(filecmp.cmp(path, os.path.join(folder, 'sent'), shallow=False), 'the file is another one')
    whole(texts)


def whole(texts):
    for text in texts:
        check(not fragments(text), f'the path MTU was not found:\n{text}')


def longest(capture):
    """Bytes of payload of the longest packet in the middle of a WRITE."""
    pcap = capture + '.pcap'
    run('editcap', '-F', 'pcap', capture, pcap)
    return max(len(p.bth) - 12 for p in roce_pcap.packets(pcap) if p.name == 'RC_WRITE_MIDDLE')


def writes(six, count, env, *more):
    """Starts `count` WRITEs of a million bytes between the hosts. Returns (server, client)."""
    port, (here, there) = next_port(), ((h.ipv6 if six else h.address) for h in (net.client, net.server))
    command = ['ib_write_bw', '-F', '-p', str(port), '-s', '1000000', '-n', str(count), *more]
    server = net.server.start(*command, '-x', net.server.gid_index(there), env=STATS)
    wait_until('the server', lambda: net.server.listens(port) or not server.running())
    return server, net.client.start(*command, '-x', net.client.gid_index(here), net.server.address,
                                         env={**STATS, **env})


# One message after the other, at 1 Gbit/s. Without a burst of one perftest sends 128 at once.
SLOWLY = '--rate_limit', '1', '--burst_size', '1', '--rate_limit_type', 'SW'


def longer(mtu, silent, six, payload, ends=1500):
    """Packets are as long as the path takes. Lengths are tried ten milliseconds apart: the WRITEs take a third of a second."""
    def case():
        need('nft')
        net.bears(mtu, silent, ends=ends)
        with tempfile.TemporaryDirectory(prefix='roci-mtu-') as folder:
            capture = os.path.join(folder, 'capture')
            text = ''.join(run_pair(*writes(six, 40, {'ROCI_CAPTURE': capture}, *SLOWLY)))
            found = longest(capture)
        check(found == payload, f'the longest packet has {found} bytes of payload')
        check(not fragments(text), text)
    return case


def sent():
    """Bytes that the client has sent."""
    link, = json.loads(net.client.run('ip', '-j', '-s', 'link', 'show', 'dev', net.client.link))
    return link['stats64']['tx']['bytes']


def narrowing(silent, six):
    """The path bears 1,400 bytes from some time on. What is under way goes in fragments."""
    def case():
        need('nft')
        net.bears(1500, silent, ends=1500)
        before = sent()
        server, client = writes(six, 1000, {})
        wait_until('the transfer', lambda: sent() > before + (20 << 20) or not client.running())
        net.narrows(1400)
        text = ''.join(run_pair(server, client))
        check(fragments(text), f'no packet was too long:\n{text}')
        check(fragments(text) < 100000, f'what began later was too long, too:\n{text}')
    return case


def rping(address):
    at = ['-a', address, '-p', str(next_port()), '-C', '20', '-S', '16000']
    server = serve(net.server, 'rping', '-s', *at)
    whole(run_pair(server, net.client.start('rping', '-c', *at)))


def own_mtu(option, *argv):
    """The programs set a path MTU by themselves, of 4096 bytes. Its packets go in fragments."""
    def case(address):
        port, here = next_port(), net.client.ipv6 if ':' in address else net.client.address
        command = [*argv, '-p', str(port), '-s', '16000', '-m', '4096', '-n', '50']
        server = net.server.start(*command, option, net.server.gid_index(address))
        wait_until('the server', lambda: net.server.listens(port) or not server.running())
        client = net.client.start(*command, option, net.client.gid_index(here), net.server.address)
        texts = run_pair(server, client)
        # Linux cuts no IPv6 packets of which it does not know that they are too long.
        says = PIECES if ':' in address and net.silent else FRAGMENTS
        check(any(f'{says} Use a path MTU of at most 1024' in text for text in texts), '\n'.join(texts))
    return case


FRAGMENTS = 'They go in IP fragments: that is slow, one lost fragment loses the packet, and over IPv4 only Rocinante takes them.'
PIECES = 'They go in pieces: that is slow, and one lost piece loses the packet.'


pingpong = own_mtu('-g', 'ibv_rc_pingpong')
reads = own_mtu('-x', 'ib_read_lat', '-F')


def on(mtu, silent, case, six):
    def run():
        need('nft')
        net.bears(mtu, silent)
        case(net.server.ipv6 if six else net.server.address)
    return run


def cases():
    told = (('the routers say so', False), ('a black hole', True))
    programs = (('roci send', send), ('rping', rping), ('pingpong', pingpong), ('READs', reads))
    for what, silent in told:
        for mtu in (1420, 1280):
            for program, case in programs:
                for six in (False, True):
                    name = f'{program}, IPv{6 if six else 4}, a path of {mtu}, {what}'
                    yield name, on(mtu, silent, case, six)
    for what, silent in told:
        for six in (False, True):
            version = f'IPv{6 if six else 4}'
            for mtu, payload in ((1500, 1408), (1420, 1280), (1280, 1152)):
                yield f'longer packets, {version}, a path of {mtu}, {what}', longer(mtu, silent, six, payload)
            for mtu, payload in ((9000, 8832), (8920, 8832), (8700, 8576)):
                yield f'jumbo frames, {version}, a path of {mtu}, {what}', longer(mtu, silent, six, payload, ends=9000)
            yield f'longer packets, {version}, a path that narrows, {what}', narrowing(silent, six)
    for what, silent in told:  # last: IPv6 ends on a link with less than 1280
        yield f'roci send, IPv4, a path of 900, {what}', on(900, silent, send, False)


if __name__ == '__main__':
    isolate()
    net = Network()
    sys.exit(tap(list(cases()), quick=lambda name: 'black hole' in name and ('1280' in name or 'longer' in name or '8700' in name)))
