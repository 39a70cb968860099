# SPDX-License-Identifier: BSD-2-Clause
"""A wire that loses packets in both directions (netem), and a peer that is killed in the middle of a stream. The argument
`heavy` leaves out the cases with a loss of 1% or with no loss; those are in every run."""
import contextlib
import json
import os
import platform
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import test_cm
import test_tools
import world
from harness import check, next_port, program, run, tap, wait_until
from mover import MIB, make_large

# Programs whose two sides meet over TCP before they end. A ping-pong does not: it ends with its own last completion. When its
# last acknowledgement is lost, nothing repeats it, and the peer's last request fails on any adapter. On Soft-RoCE, which takes
# a retry count of 7 for infinite, that request never ends.
PERFTEST = [  # both directions at once, so that each side sends enough packets to lose some
    ('ib_write_bw', '-b -s 65536 -n 20'),
    ('ib_read_bw', '-b -o 8 -s 65536 -n 20'),
    ('ib_send_bw', '-b -s 65536 -n 20'),
    ('ib_send_bw', '-b -e -s 50000 -n 20'),
    ('ib_atomic_bw', '-b -o 8 -n 200'),
]
OLD_KERNEL = platform.release().startswith('6.1.')
ATTEMPTS = 5

# Only RoCE packets are lost, each independently. roci0 gives the kernel up to 64 packets at once, which netem would take for
# one; a TBF with such a burst cuts them. No DREP is lost: it may be the last message of a program, and after the program's end
# roci0 has nobody to resend it. The kernel would resend its DREQ for more than a minute.
QDISCS = """\
qdisc add dev {link} root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
filter add dev {link} parent 1: prio 1 protocol ip u32 {drep} flowid 1:1
filter add dev {link} parent 1: prio 2 protocol ip u32 {packets} flowid 1:2
qdisc add dev {link} parent 1:2 handle 2: tbf rate 10gbit burst 1600 limit 100mb
qdisc add dev {link} parent 2: handle 3: netem limit 100000 loss {percent}%
"""
ROCE = 'match ip dport 4791 0xffff'
MADS = f'{ROCE} match u32 1 0xffffff at 32'  # the destination QP: after 20 bytes of IPv4, 8 of UDP and 4 of the BTH
DREP = f'{MADS} match u16 0x16 0xffff at 64'  # the attribute ID: in the MAD, after 12 bytes of BTH and 8 of DETH


class Recorded(world.Side):
    """Keeps the programs that were started on it, for the counters of its device."""

    def start(self, *argv, **kw):
        self.programs.append(super().start(*argv, **kw))
        return self.programs[-1]

    def counted(self, name):
        return sum(int(n) for p in self.programs for n in re.findall(rf'roci: {name} +(\d+)', p.text()))


def recorded(roci):
    side = world.as_side(roci, Recorded)
    side.programs = []
    return side


@contextlib.contextmanager
def lossy_wire(percent, packets, *hosts):
    """Yields a function that returns {kind of host: (packets lost on their way from it, packets not lost)}."""
    def netem(host):
        qdiscs = json.loads(host.run('tc', '-s', '-j', 'qdisc', 'show', 'dev', host.link))
        found, = (q for q in qdiscs if q['kind'] == 'netem')
        return found['drops'], found['packets']

    for host in hosts:
        text = QDISCS.format(link=host.link, drep=DREP, packets=packets, percent=percent)
        run(*host.prefix, 'tc', '-batch', '-', input=text)
    try:
        yield lambda: {host.kind: netem(host) for host in hosts}
    finally:
        for host in hosts:
            host.run('tc', 'qdisc', 'del', 'dev', host.link, 'root')


def lossy(percent, packets, hosts, roci, body):
    """Runs body() on a lossy wire until each host has lost a packet; a run without any shows nothing."""
    roci.programs.clear()
    with lossy_wire(percent, packets, *hosts) as wire:
        for attempt in range(ATTEMPTS):
            body()
            lost = wire()
            if all(drops for drops, _ in lost.values()):
                break
    check(all(drops for drops, _ in lost.values()), f'lost, and not, in {ATTEMPTS} runs: {lost}')
    return '; '.join([*(f'{kind} lost {drops} of {drops + rest}' for kind, (drops, rest) in lost.items()), f'runs: {attempt + 1}',
                      *(f'{name}: {roci.counted(name)}' for name in ('retransmits', 'rx_out_of_order'))])


def every_opcode(server, client):
    """Verifies every byte and every completion. Soft-RoCE of 6.12 resends a lost atomic write with the address 0, and does not
    answer a repeated empty READ or FLUSH, so these are left out."""
    lacking = '-e' if server.kind == 'rxe' and not OLD_KERNEL else '-a'
    world.transfer(server, client, [program('all_ops'), '-x', '-f', lacking, '-r', '10'], '-g')


def perftest(server, client, name, args):
    world.transfer(server, client, [name, '-F', *args.split()], '-x')


class Moves:
    """A file that `roci send` and `roci recv` move, compared byte for byte."""

    def __init__(self):
        self.bench = test_tools.Bench()

    def move(self, receiver, sender, mode):
        self.bench.move(receiver, sender, self.bench.source('4 MiB', make_large, 4 * MIB), mode, '--qps', '4')


def at_once(*calls):
    """All calls at once: most of the time they wait, because the kernel resends a MAD after 4 s."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(*call) for call in calls]:
            future.result()


def connections(rxe, roci):
    both = (rxe, roci), (roci, rxe)
    at_once(*((test_cm.ucmatose, *pair, False, '-c', '20', '-C', '0') for pair in both),
            *((test_cm.rping, *pair, False, '-C', '20') for pair in both))


def datagram_services(rxe, roci):
    """None of the kernel's SIDR_REPs may be lost: the kernel forgets the request when it answers, and takes a repeated request
    for a new one, for which udaddy has no place (also between two Soft-RoCEs). Data may not be lost either, because nothing
    repeats them. Without data, the server would end before its last answer has arrived."""
    at_once((test_cm.udaddy, rxe, roci, False, '-c', '20'), (test_cm.udaddy, roci, rxe, False, '-c', '20'))


def killed(server_host, client_host):
    """The survivor's oldest request fails, all others are flushed, and the next pair works."""
    port = str(next_port())
    argv = [program('survivor'), '-p', port]
    server = server_host.start(*argv, '-g', server_host.gid_index(server_host.address))
    client = None
    try:
        wait_until('the server to listen', lambda: server_host.listens(int(port)) or not server.running())
        client = client_host.start(*argv, '-g', client_host.gid_index(client_host.address), server_host.address)
        wait_until('the stream', lambda: 'running' in client.text() or not client.running())
        check(client.running() and server.running(), f'server:\n{server.report()}\nclient:\n{client.report()}')
        server.end()
        check(client.wait(30) == 0, f'server:\n{server.report()}\nclient:\n{client.report()}')
    finally:
        server.end()
        if client:
            client.end()
    world.transfer(server_host, client_host, ['ibv_rc_pingpong', '-c', '-n', '100'], '-g')
    return client.text().splitlines()[-1] if client.text() else ''


def without_offload(rxe, roci, name):
    """roci0 on an interface that computes no checksums. Linux 6.1 refuses many packets in one call there, so roci0 sends them
    one by one."""
    roci.programs.clear()
    roci.run('ethtool', '-K', roci.link, 'tx', 'off')
    try:
        perftest(rxe, roci, name, '-s 65536 -n 20')
    finally:
        roci.run('ethtool', '-K', roci.link, 'tx', 'on')
    packets, messages = (roci.counted(f'sent_{what}') for what in ('packets', 'messages'))
    check(packets == messages if OLD_KERNEL else packets > messages > 0, f'{packets} packets in {messages} messages')
    return f'{packets} packets in {messages} messages'


def cases(rxe, roci, percents=(1,), part=True):
    run('modprobe', '-a', 'sch_prio', 'sch_tbf', 'cls_u32')
    roci, moves = recorded(roci), Moves()
    both = rxe, roci

    def case(name, percent, function, *args, packets=ROCE, hosts=both):
        return (f'{name}, {percent}% lost from {" and ".join(host.kind for host in hosts)}',
                lambda: lossy(percent, packets, hosts, roci, lambda: function(*args)))

    for server, client in (rxe, roci), (roci, rxe):
        way = f'{client.kind} to {server.kind}'
        yield f'{way}: the server is killed', lambda s=server, c=client: killed(s, c)
        for percent in percents:
            yield case(f'{way}: every opcode', percent, every_opcode, server, client)
            for mode in ['write'] if part else ['write', 'read', 'send'] if percent == 1 else ['write', 'read']:
                yield case(f'{way}: 4 MiB, {mode}', percent, moves.move, server, client, mode)
            for name, args in PERFTEST:
                if percent != 1 or server is rxe:
                    yield case(f'{way}: {name} {args}', percent, perftest, server, client, name, args)
    if not part:
        yield case('ucmatose and rping', 5, connections, *both)
        yield case('MADs of udaddy', 10, datagram_services, *both, packets=MADS, hosts=[roci])
    if 1 in percents:
        for name in 'ib_write_bw', 'ib_send_bw':
            yield f'roci to rxe, no checksum offload: {name} -s 65536', lambda n=name: without_offload(rxe, roci, n)


if __name__ == '__main__':
    percents = (5,) if world.option('heavy') else (1, 5)
    sys.exit(tap(list(cases(*world.rxe_and_roci(), percents, part=False))))
