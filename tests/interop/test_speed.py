"""roci0 and Soft-RoCE over the same veth: both ends in two namespaces with roci0 in either, then in one with the kernel's
devices. The processor is software, so only the ratios mean something."""
import sys

import world
from harness import check, tap, veth_pair

RUNS = 2  # of which the best counts

# program, arguments, the column of the figure, and whether more is better
MEASURES = [
    ('ib_write_bw', ['-s', '65536', '-n', '300'], 3, True),
    ('ib_write_lat', ['-s', '8', '-n', '500'], 4, False),
    ('ib_send_lat', ['-s', '8', '-n', '500'], 4, False),
]


def figure(text, size, column):
    """The number in a column of perftest's line for a size."""
    line, = (fields for fields in map(str.split, text.splitlines()) if fields and fields[0] == size and len(fields) > column)
    return float(line[column])


def measure(hosts, kind):
    before = [host.sent_bytes() for host in hosts]
    for name, args, column, more in MEASURES:
        texts = [world.transfer(*hosts, [name, '-F', *args], '-x', seconds=60)[1] for _ in range(RUNS)]
        figures[kind, name, args[1]] = (max if more else min)(figure(text, args[1], column) for text in texts)
    sent = 500 * 60  # bytes of the ping-pong's packets at least
    check(all(host.sent_bytes() - b > sent for host, b in zip(hosts, before)), 'the packets have not gone by the veth')


def on_roci():
    measure(pair, 'roci0')


def on_rxe():
    measure(world.kernel_pair('rxe', hosts=pair), 'rxe')


def ratios():
    lines = []
    for name, args, _, more in MEASURES:
        mine, other = (figures[kind, name, args[1]] for kind in ('roci0', 'rxe'))
        lines.append(f'{name} {args[1]} bytes: roci0 {mine:g}, rxe {other:g} {"MB/s" if more else "us"}; '
                     f'roci0 is {(mine / other if more else other / mine):.2f} times as fast')
    return '\n'.join(lines)


if __name__ == '__main__':
    figures = {}
    world.run('modprobe', '-a', 'veth')
    pair = [world.as_side(host, world.Side) for host in veth_pair(int(sys.argv.pop(1)))]
    sys.exit(tap([('roci0 to roci0', on_roci), ('rxe to rxe', on_rxe), ('ratios', ratios)]))
