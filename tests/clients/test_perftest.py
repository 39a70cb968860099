# SPDX-License-Identifier: BSD-2-Clause
"""Runs every tool of perftest with each of its transports, with sizes from 1 byte to 8 MiB and with -a, -e, -q and -b.

The first argument is the network: `loopback`, `veth4` or `veth6` (two hosts with the usual MTU), or `jumbo`. `veth6` and
`jumbo` differ from the others only below the transport, so they run a part of the table.
"""
import sys

from harness import DEVICE, Host, isolate, tap, transfer, veth_pair

SIZES = ['-s 1 -n 100', '-s 4097 -n 100', '-s 65536 -n 100', '-s 1048576 -n 20', '-s 8388608 -n 5']
UD_SIZES = ['-s 1 -n 100', '-s 1024 -n 100']
PART = [*SIZES[::2], *UD_SIZES, '-n 100', '-e -n 100']
QUICK_PART = ['-s 65536 -n 100', '-s 1048576 -n 20', '-s 1024 -n 100', '-n 100']
TOOLS = [
    # program, transport, arguments of each run
    ('ib_send_bw', 'RC', [*SIZES, '-e -n 100', '-q 8 -n 100', '-e -q 8 -n 100', '-a -n 5', '-b -n 100', '-l 16 -n 160']),
    ('ib_send_bw', 'UC', [*SIZES, '-e -n 100', '-q 8 -n 100', '-a -n 5', '-b -n 100']),
    ('ib_send_bw', 'UD', [*UD_SIZES, '-e -n 100 -s 1024', '-q 8 -n 100 -s 1024', '-a -n 5', '-b -n 100 -s 1024']),
    ('ib_send_lat', 'RC', [*SIZES, '-e -n 100', '-a -n 5', '-I 64 -s 64 -n 100']),
    ('ib_send_lat', 'UC', [*SIZES, '-e -n 100', '-a -n 5']),
    ('ib_send_lat', 'UD', [*UD_SIZES, '-e -n 100', '-a -n 5']),
    ('ib_write_bw', 'RC', [*SIZES, '-q 8 -n 100', '-a -n 5', '-b -n 100', '-l 16 -n 160', '-Q 10 -n 100']),
    ('ib_write_bw', 'UC', [*SIZES, '-q 8 -n 100', '-a -n 5', '-b -n 100']),
    ('ib_write_lat', 'RC', [*SIZES, '-a -n 5', '-I 64 -s 64 -n 100']),
    ('ib_write_lat', 'UC', [*SIZES, '-a -n 5']),
    ('ib_read_bw', 'RC', [*SIZES, '-e -n 100', '-q 8 -n 100', '-a -n 5', '-b -n 100', '-o 1 -n 50']),
    ('ib_read_lat', 'RC', [*SIZES, '-e -n 100', '-a -n 5']),
    ('ib_atomic_bw', 'RC', ['-n 100', '-A CMP_AND_SWAP -n 100', '-e -n 100', '-q 8 -n 100', '-b -n 100']),
    ('ib_atomic_lat', 'RC', ['-n 100', '-A CMP_AND_SWAP -n 100', '-e -n 100']),
]


def perftest(server, client, address, program, transport, args):
    transfer(server, client, [program, '-d', DEVICE, '-F', '-c', transport, *args.split()],
             ['-x', server.gid_index(address(server))], ['-x', client.gid_index(address(client))], seconds=90)


def cases(server, client, address):
    for program, transport, runs in TOOLS:
        for args in runs:
            if way in ('veth6', 'jumbo') and args not in PART:
                continue
            yield (f'{way}: {program} -c {transport} {args}',
                   lambda p=program, t=transport, a=args: perftest(server, client, address, p, t, a))


def is_quick(name):
    """Every tool with every transport: on one host with most arguments, between two hosts with a few."""
    args = name.split(' ', 4)[-1]
    if way == 'loopback':
        return not args.startswith('-a') or 'ib_write_bw -c RC' in name
    return args in QUICK_PART or (way == 'veth4' and args.startswith('-q'))


if __name__ == '__main__':
    isolate()
    way = sys.argv.pop(1)
    if way == 'loopback':
        host = Host('loopback')
        ends = host, host, lambda host: '127.0.0.1'
    else:
        host_a, host_b = veth_pair(9000 if way == 'jumbo' else 1500)
        ends = host_a, host_b, (lambda host: host.ipv6) if way == 'veth6' else (lambda host: host.address)
    sys.exit(tap(list(cases(*ends)), quick=is_quick))
