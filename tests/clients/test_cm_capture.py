# SPDX-License-Identifier: BSD-2-Clause
"""Captures the messages of connection management: connections, a datagram service, a refusal and a slow server. Wireshark
must know every message and find it well-formed. Its fields must agree with what the programs asked for and with each other.
"""
import collections
import os
import signal
import sys
import tempfile

import capture_checks
import roce_pcap
from capture import Capture
from cm_server import serve
from harness import check, isolate, need, next_port, run_pair, tap, veth_pair, wait_until

# Attribute ids (IBTA table 100) and their names in Wireshark
MTU_PROBE = 0xc5  # goes ahead of a REQ, between two Rocinantes only
NAMES = {
    0x10: 'ConnectRequest', 0x11: 'MsgRcptAck', 0x12: 'ConnectReject', 0x13: 'ConnectReply', 0x14: 'ReadyToUse',
    0x15: 'DisconnectRequest', 0x16: 'DisconnectReply', 0x17: 'ServiceIDResReq', 0x18: 'ServiceIDResReqResp',
}
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP = sorted(NAMES)
CONNECTION = {REQ, REP, RTU, DREQ, DREP}

# For each message: the fields of the sender's and the receiver's communication id, and of the sender's QPN
IDS = {
    REQ: ('infiniband.cm.req', None, 'infiniband.cm.req.localqpn'),
    REJ: ('infiniband.cm.rej.localcommid', 'infiniband.cm.rej.remotecommid', None),
    REP: ('infiniband.cm.rep', 'infiniband.cm.rep.remotecommid', 'infiniband.cm.rep.localqpn'),
    RTU: ('infiniband.cm.rtu.localcommid', 'infiniband.cm.rtu.remotecommid', None),
    DREQ: ('infiniband.cm.dreq.localcommid', 'infiniband.cm.dreq.remotecommid', None),
    DREP: ('infiniband.cm.drsp.localcommid', 'infiniband.cm.drsp.remotecommid', None),
}
NO_SERVICE = 8  # reason of a REJ


class Message:
    """A MAD to QP1. Its attribute comes from the bytes, everything else from Wireshark."""

    def __init__(self, packet, field):
        self.number = packet.number
        self.attribute = int.from_bytes(packet.bth[20 + 16:20 + 18], 'big')
        self.name = NAMES.get(self.attribute, hex(self.attribute))
        self.field = field
        names = IDS.get(self.attribute, (None, None, None))
        self.sender, self.receiver, self.qpn = (self.number_of(name) for name in names)

    def number_of(self, name):
        return int(self.field[name], 0) if name else None

    def __str__(self):
        return f'frame {self.number} {self.name}'


FIELDS = sorted({name for names in IDS.values() for name in names if name} | {
    '_ws.col.Info', 'infiniband.mad.attributeid', 'infiniband.deth.srcqp', 'infiniband.deth.q_key',
    'infiniband.cm.req.serviceid.dport', 'infiniband.cm.req.ip_cm.sip4', 'infiniband.cm.req.ip_cm.dip4',
    'infiniband.cm.req.ip_cm.sip6', 'infiniband.cm.req.ip_cm.dip6', 'infiniband.cm.rej.reason',
    'infiniband.cm.req.remoteqpneecn'})


def messages(path):
    """All messages to QP1. Checks what must be true of each."""
    packets = {p.number: p for p in roce_pcap.packets(path)}
    found = []
    for number, *values in capture_checks.tshark(path, *FIELDS):
        packet = packets[number]
        if int.from_bytes(packet.bth[5:8], 'big') != 1 or packet.opcode == MTU_PROBE:
            continue
        message = Message(packet, dict(zip(FIELDS, values)))
        check(message.attribute in NAMES, f'{message}: not a message of connection management')
        check(message.number_of('infiniband.mad.attributeid') == message.attribute, f'{message}: {message.field}')
        info = message.field['_ws.col.Info']
        check(info == f'CM: {message.name}', f'{message} is called {info}')
        check(message.number_of('infiniband.deth.srcqp') == 1 and
              message.number_of('infiniband.deth.q_key') == 0x80010000, f'{message}: {message.field}')
        check(len(packet.bth) == 20 + 256, f'{message} is not 256 bytes long')
        found.append(message)
    capture_checks.icrcs(path)
    return found


def check_requests(found, port, client, server):
    """Checks that each REQ has the port and the addresses of the programs' arguments."""
    for message in found:
        if message.attribute == REQ:
            field, prefix = message.field, 'infiniband.cm.req.'
            version = 6 if ':' in server else 4
            check(message.number_of(prefix + 'serviceid.dport') == port, f'{message} asks for {field}')
            check(field[f'{prefix}ip_cm.dip{version}'] == server and field[f'{prefix}ip_cm.sip{version}'] == client,
                  f'{message}: from {client} to {server}, says {field}')


def check_connections(found):
    """Checks the ids and QPNs of all messages against the REQ and the REP of their connection."""
    active, passive = {}, {}  # id: QPN
    peer = {}
    for message in found:
        if message.attribute == REQ:
            active[message.sender] = message.qpn
        elif message.attribute == REP:
            check(message.receiver in active, f'{message} answers no REQ')
            passive[message.sender] = message.qpn
            peer[message.sender], peer[message.receiver] = message.receiver, message.sender
        elif message.attribute in (RTU, DREQ, DREP):
            check(peer.get(message.sender) == message.receiver, f'{message} is of no connection')
            check(message.attribute != RTU or message.sender in active, f'{message} is of the passive side')
        if message.attribute == DREQ:
            qpn = {**active, **passive}[message.receiver]
            check(message.number_of('infiniband.cm.req.remoteqpneecn') == qpn, f'{message} is about another QP')
        if message.attribute == REJ:
            check(message.receiver in active, f'{message} refuses no REQ')
            check(message.number_of('infiniband.cm.rej.reason') == NO_SERVICE, f'{message} has another reason')
    return len(peer) // 2


# ---- programs that are captured ----

def pair(server_argv, client_argv):
    server = serve(host_b, *server_argv)
    run_pair(server, host_a.start(*client_argv))


def connections(address, port, capture):
    at = ['-p', str(port)]
    pair(['ucmatose', '-b', address(host_b), '-c', '10', *at], ['ucmatose', '-s', address(host_b), '-c', '10', *at])
    pair(['rping', '-s', '-a', address(host_b), *at], ['rping', '-c', '-a', address(host_b), '-V', '-C', '5', *at])


def datagrams(address, port, capture):
    pair(['udaddy', '-b', address(host_b)], ['udaddy', '-s', address(host_b)])


def refusal(address, port, capture):
    """The client asks for a port without a listener. Another server on that host sends the refusal."""
    other = serve(host_b, 'rping', '-s', '-a', address(host_b), '-p', str(next_port()))
    client = host_a.start('rping', '-c', '-a', address(host_b), '-C', '1', '-p', str(port))
    try:
        check(client.wait(30) not in (0, None), 'no refusal:\n' + client.report())
    finally:
        other.end()


def slow_server(address, port, capture):
    """The server is stopped until the REQ has come twice, so it finds a duplicate of a REQ that it has not answered. Both must come
    to it in one read: a firewall keeps the probes from standing between them."""
    need('nft')
    host_b.run('nft', 'add table inet probes; add chain inet probes in { type filter hook input priority 0; };'
                      f'add rule inet probes in udp dport {roce_pcap.ROCE_PORT} @th,64,8 {MTU_PROBE} drop')
    server = serve(host_b, 'rping', '-s', '-a', address(host_b), '-p', str(port))
    os.kill(server.pid, signal.SIGSTOP)
    client = host_a.start('rping', '-c', '-a', address(host_b), '-C', '1', '-p', str(port))
    try:
        wait_until('a second REQ', lambda: sum(p.opcode != MTU_PROBE for p in roce_pcap.packets(capture)) >= 2)
    finally:
        os.kill(server.pid, signal.SIGCONT)
        run_pair(server, client)
        host_b.run('nft', 'delete', 'table', 'inet', 'probes')


CASES = [
    ('connections: ucmatose, rping', connections, CONNECTION, 11),
    ('datagrams: udaddy', datagrams, {SIDR_REQ, SIDR_REP}, 0),
    ('nobody listens: rping', refusal, {REQ, REJ}, 0),
    ('the server is slow: rping', slow_server, CONNECTION | {MRA}, 1),
]


def captured(name, run, expected, count, address):
    """Runs programs, captures their packets and checks the capture."""
    path = os.path.join(directory, f'{name}.pcap')
    port = next_port()
    with Capture(host_a.link, path):
        run(address, port, path)
    found = messages(path)
    counts = collections.Counter(message.attribute for message in found)
    missing = expected - set(counts)
    check(not missing, f'the capture lacks {", ".join(NAMES[a] for a in sorted(missing))}')
    check_requests(found, port, address(host_a), address(host_b))
    made = check_connections(found)
    check(made == count, f'{made} connections, not {count}')
    return ', '.join(f'{n} {NAMES[a]}' for a, n in sorted(counts.items()))


def cases():
    for version, address in ((4, lambda host: host.address), (6, lambda host: host.ipv6)):
        for name, run, expected, count in CASES:
            yield (f'IPv{version}: {name}', lambda n=f'IPv{version} {name}', r=run, e=expected, c=count, a=address:
                   captured(n.replace(':', '').replace(' ', '-'), r, e, c, a))


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    for host in (host_a, host_b):  # one frame for each packet
        host.run('ethtool', '-K', host.link, 'gso', 'off', 'gro', 'off', 'tso', 'off', 'tx-udp-segmentation', 'off')
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(tap(list(cases())))
