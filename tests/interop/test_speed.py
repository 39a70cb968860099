# SPDX-License-Identifier: BSD-2-Clause
"""roci0 and Soft-RoCE over the same veth: first roci0 in two namespaces, then two Soft-RoCE devices in one namespace. The
processor is emulated, so only the ratios mean something."""
import os
import sys

import world
from harness import check, run_pair, tap, veth_pair, wait_until
from test_tools import STATS

RUNS = 2  # the best one counts

# program, arguments, column of the figure, whether more is better, and the least bytes on the wire from client and server: the
# data of a stream, or 60 bytes for each packet of a ping-pong
MEASURES = [
    ('ib_write_bw', ['-s', '65536', '-n', '300'], 3, True, (300 * 65536, 0)),
    ('ib_write_lat', ['-s', '8', '-n', '500'], 4, False, (500 * 60, 500 * 60)),
    ('ib_send_lat', ['-s', '8', '-n', '500'], 4, False, (500 * 60, 500 * 60)),
]


def figure(text, size, column):
    """The number in a column of perftest's line for a size."""
    line, = (fields for fields in map(str.split, text.splitlines()) if fields and fields[0] == size and len(fields) > column)
    return float(line[column])


def run_once(server, client, name, args, least):
    """The client's output. Checks that both ends used the right device, and the wire."""
    hosts = client, server
    before = [host.sent_bytes() for host in hosts]
    texts = world.transfer(server, client, [name, '-F', *args], '-x')
    sent = [host.sent_bytes() - b for host, b in zip(hosts, before)]
    check(all(s > l for s, l in zip(sent, least)), f'{sent} bytes crossed the veth, fewer than {least}')
    check(all((STATS in text) != server.plain for text in texts), '\n'.join(texts))
    return texts[1]


def measure(server, client, kind):
    for name, args, column, more, least in MEASURES:
        texts = [run_once(server, client, name, args, least) for _ in range(RUNS)]
        figures[kind, name, args[1]] = (max if more else min)(figure(text, args[1], column) for text in texts)


def on_roci():
    measure(*pair, 'roci0')


def on_rxe():
    measure(*world.kernel_pair('rxe', hosts=pair), 'rxe')


def raw_udp():
    """What the system calls alone cost: half a round trip of packets as long as those of `*_lat`, where both ends poll."""
    server, client = pair
    argv = [os.path.join(os.path.dirname(os.environ['ROCI']), '..', 'bench', 'limit_udp'), '-l', '40', '-x', '500']
    for name, args, _, more, _ in MEASURES:
        if not more:
            waiting = server.start(*argv, plain=True)
            wait_until('limit_udp', lambda: 'ready' in waiting.text() or not waiting.running())
            text = run_pair(waiting, client.start(*argv, server.address, plain=True))[1]
            figures['udp', name, args[1]] = float(text.split()[0])


def ratios():
    lines = ['roci0 in two network namespaces, rxe in one, where policy routing sends packets over the same veth']
    for name, args, _, more, _ in MEASURES:
        mine, other = (figures[kind, name, args[1]] for kind in ('roci0', 'rxe'))
        bound = '' if more else f'raw UDP {figures["udp", name, args[1]]:g}, '
        lines.append(f'{name} {args[1]} bytes: roci0 {mine:g}, {bound}rxe {other:g} {"MB/s" if more else "us"}; '
                     f'roci0 is {(mine / other if more else other / mine):.2f} times as fast')
    return '\n'.join(lines)


if __name__ == '__main__':
    figures = {}
    world.run('modprobe', '-a', 'veth')
    pair = [world.as_side(host, world.Side) for host in veth_pair(int(sys.argv.pop(1)))]
    sys.exit(tap([('roci0 to roci0', on_roci), ('raw UDP', raw_udp), ('rxe to rxe', on_rxe), ('ratios', ratios)]))
