# SPDX-License-Identifier: BSD-2-Clause
"""What iWARP allows, with the kernel's siw and the system's libraries on both sides: the examples, and `roci send` and
`roci recv` in all their modes, which need neither immediate data nor atomics. And what iWARP does not allow, and how that is
reported: a program that asks for what iWARP lacks, and `roci send` to a receiver that only RoCE reaches."""
import errno
import shutil
import signal
import sys
import tempfile

import test_cm
import test_tools
import world
from harness import ROCI, check, next_port, tap, veth_pair
from mover import NO_CONNECT, Receiver, environment, events

REJECTED = str(-errno.ECONNRESET)  # MPA has one bit for a rejected connection (RFC 5044, 7.1.1), and no reasons like IBTA's

# What `roci ping` can do between two devices of siw: no UC, no UD, no immediate data, no atomics, no memory windows.
IWARP_HAS = {('send', 'rc'), ('write', 'rc'), ('read', 'rc')}

# Without ucmatose -S 50000: its listener sends first, and on a busy machine siw's client then ends with CONNECT_ERROR.
EXAMPLES = [
    ('rping -C 10', test_cm.rping, ['-C', '10']),
    ('rping -C 10 -S 60000', test_cm.rping, ['-C', '10', '-S', '60000']),
    ('ucmatose -c 10', test_cm.ucmatose, ['-c', '10']),
    ('rdma_client', test_cm.rdma_client, []),
    ('the listener rejects, then accepts', test_cm.consumer_reject, ['-r', REJECTED]),
    ('the server is killed', test_cm.server_killed, []),
    ('the client is killed', test_cm.client_killed, []),
    ('ib_write_bw -R', test_cm.perftest, ['ib_write_bw', '-n', '20']),
    ('ib_read_bw -R', test_cm.perftest, ['ib_read_bw', '-n', '20']),
    ('ib_send_bw -R', test_cm.perftest, ['ib_send_bw', '-n', '20']),
    ('ib_write_lat -R', test_cm.perftest, ['ib_write_lat', '-n', '20']),
    ('ib_send_lat -R', test_cm.perftest, ['ib_send_lat', '-n', '20']),
    ('rstream', test_cm.rsocket, ['rstream', '-I', '10', '-C', '10', '-S', '4096']),
    ('riostream', test_cm.rsocket, ['riostream', '-I', '10', '-C', '10', '-S', '65536']),
    ('rcopy', test_cm.rcopy, []),
]


def nobody_listens(server, client):
    """rdma_connect() itself fails. (rping gets the event, too, but does not end.)"""
    process = client.start('rdma_client', '-s', server.address, '-p', str(next_port()))
    check(process.wait(20) not in (0, None) and 'rdma_connect: Connection refused' in process.text(), process.report())


def lacking(server, client):
    """iwarp.c: immediate data and atomics are refused; WRITE and SEND work in their place."""
    port = ['-p', str(next_port())]
    texts = test_cm.connect(server, client, [world.program('iwarp'), '-b', server.address, *port],
                            [world.program('iwarp'), '-s', server.address, *port])
    return texts[1]


def atomics(server, client):
    """A program that uses atomics fails at its first request."""
    argv = ['ib_atomic_bw', '-R', '-F', '-p', str(next_port())]
    listener = server.serve(*argv, '-d', server.device)
    process = client.start(*argv, '-d', client.device, server.address)
    try:
        check(process.wait(30) not in (0, None) and "Couldn't post send" in process.text(), process.report())
    finally:
        listener.end()


def datagrams(server, client):
    """iWARP has reliable connections only."""
    listener = server.serve('udaddy', '-b', server.address)
    try:
        process = client.start('udaddy', '-s', server.address)
        check(process.wait(20) not in (0, None) and 'unable to create QP: Operation not supported' in process.text(),
              process.report())
    finally:
        listener.end()


def no_common_wire(bench, *hosts):
    """iWARP is TCP, RoCE is UDP: siw and roci0 cannot reach each other, and `roci send` says so. Both ways at once, because
    they wait."""
    there = tempfile.mkdtemp(dir=bench.scratch.name)
    moves = []
    try:
        for receiver, sender in (hosts, hosts[::-1]):
            recv = Receiver(receiver, there)
            moves.append((sender, recv, recv.send(sender, __file__, '--timeout', '2s')))
        for sender, recv, send in moves:
            check(send.wait(20) == NO_CONNECT, f'{send.report()}\n{recv.process.report()}')
            text = events(send, 'ended')[-1]['text']
            check(recv.address in text and 'is `roci recv` running there, on a' in text, text)
            check(('iWARP' in text and sender.device in text) == sender.plain, text)
        return '\n'.join(events(send, 'ended')[-1]['text'] for _, _, send in moves)
    finally:
        for _, recv, send in moves:
            send.end()
            recv.__exit__()
        shutil.rmtree(there)


def perf_is_refused(server, client):
    """`roci perf` connects its queue pairs by itself, which iWARP does not have. Both ends say so."""
    serve, port = test_tools.start_serve(server)
    try:
        end = client.start(ROCI, 'perf', '--port', port, '--device', client.device, server.address, plain=True, env=environment())
        check(end.wait(30) not in (0, None) and f'{client.device} is iWARP' in end.text() and 'perftest with -R' in end.text(), end.report())
    finally:
        serve.end(signal.SIGINT)


def siw_and_roci():
    """siw in the first namespace, roci0 in another one, joined."""
    siw, roci = (world.as_side(host, side) for host, side in zip(veth_pair(), (world.KernelSide, world.Side)))
    world.add_device(siw, 'siw', f'siw_{siw.link}', [siw.address])
    return siw, roci


def main():
    pair = world.kernel_pair('siw')
    bench = test_tools.Bench()
    cases = [(f'siw: {name}', lambda f=function, a=args: f(*pair, False, *a)) for name, function, args in EXAMPLES]
    cases += [(f'siw: {name}', lambda f=function: f(*pair)) for name, function in (
        ('nobody listens', nobody_listens), ('immediate data and atomics are refused', lacking),
        ('ib_atomic_bw -R is refused', atomics), ('udaddy is refused', datagrams))]
    cases += [('siw: roci perf is refused', lambda: perf_is_refused(*pair))]
    cases += [('siw: roci ping --op all', lambda: test_tools.ping_all(*pair, IWARP_HAS)), ('roci setup siw', lambda: test_tools.setup('siw'))]
    cases.append(('siw and roci0 have no wire in common', lambda: no_common_wire(bench, *siw_and_roci())))
    return tap([*cases, *test_tools.cases(bench, *pair)])


if __name__ == '__main__':
    sys.exit(main())
