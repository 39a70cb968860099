# SPDX-License-Identifier: BSD-2-Clause
"""roci0 and the kernel's Soft-RoCE on one wire: the ping-pongs of libibverbs, perftest, and every opcode, with the server on
either side. The argument `part` leaves out runs that differ little from others.

Soft-RoCE of Linux 6.12 has atomic writes and FLUSH; that of 6.1 has neither. For FLUSH its programs need a newer libibverbs
than Debian 12's. Where there is none, FLUSH is left out, and its own case is skipped."""
import platform
import sys

import world
from harness import Skip, program, tap

# program, arguments of each run; +: not in the part
PINGPONGS = [
    ('ibv_rc_pingpong', ['-c -n 300', '-e -c -n 200', '+-s 1 -n 300', '-s 1000000 -c -n 5', '+-r 1 -n 200', '+-N -c -n 200']),
    ('ibv_uc_pingpong', ['-c -n 200', '+-e -c -n 200', '+-s 1 -n 200']),
    ('ibv_ud_pingpong', ['-s 1024 -c -n 200', '+-s 1024 -e -c -n 200', '+-s 1 -n 200']),
    ('ibv_srq_pingpong', ['-c -n 200', '+-e -c -n 200', '-q 4 -s 30000 -c -n 40']),
]
PERFTEST = [
    ('ib_send_bw', 'RC', ['-s 1 -n 100', '-s 65536 -n 20', '+-s 1048576 -n 5', '+-e -n 50', '+-q 8 -n 20', '-b -n 20', '+-m 256 -n 20']),
    ('ib_send_bw', 'UC', ['+-s 1 -n 100', '-s 20000 -n 20']),
    ('ib_send_bw', 'UD', ['+-s 1 -n 100', '-s 1024 -n 50']),
    ('ib_send_lat', 'RC', ['-s 2 -n 100', '+-s 4097 -n 50', '+-e -n 50', '+-I 64 -s 64 -n 50']),
    ('ib_send_lat', 'UC', ['+-s 2 -n 100', '-s 4097 -n 50']),
    ('ib_send_lat', 'UD', ['-s 1024 -n 50']),
    ('ib_write_bw', 'RC', ['-s 1 -n 100', '-s 65536 -n 20', '+-s 8388608 -n 5', '+-q 8 -n 20', '-b -n 20', '-m 256 -n 20', '+-l 16 -n 32']),
    ('ib_write_bw', 'UC', ['-s 20000 -n 20']),
    ('ib_write_lat', 'RC', ['-s 2 -n 100', '+-s 65536 -n 20']),
    ('ib_write_lat', 'UC', ['+-s 4097 -n 50']),
    ('ib_read_bw', 'RC', ['-s 65536 -n 20', '+-s 1 -n 100', '+-s 8388608 -n 5', '-b -n 20', '+-o 1 -n 20', '+-m 512 -n 20']),
    ('ib_read_lat', 'RC', ['-s 2 -n 50', '+-s 65536 -n 20']),
    ('ib_atomic_bw', 'RC', ['-n 50', '+-A CMP_AND_SWAP -n 50', '+-q 4 -n 50']),
    ('ib_atomic_lat', 'RC', ['+-n 50', '-A CMP_AND_SWAP -n 50']),
]


OLD_KERNEL = platform.release().startswith('6.1.')


def runs(part, args):
    return [a.lstrip('+') for a in args if not (part and a.startswith('+'))]


def pingpong(server, client, name, args, ipv6=False):
    world.transfer(server, client, [name, *args.split()], '-g', ipv6)


def perftest(server, client, name, transport, args, ipv6=False):
    # Each side uses the other's number of outstanding reads, and rxe0 has more than roci0.
    reads = ['-o', '8'] if ('read' in name or 'atomic' in name) and '-o' not in args else []
    # 7 retries after 67 ms give up after half a second, which is too soon for a guest on a busy machine.
    timeout = ['-u', '17'] if transport == 'RC' else []
    world.transfer(server, client, [name, '-F', '-c', transport, *args.split(), *reads, *timeout], '-x', ipv6)


def every_opcode(server, client, ipv6=False):
    lacking, note = [], ''
    if OLD_KERNEL:
        lacking = ['-a', '-f']
    else:
        try:
            server, client = world.newer(server), world.newer(client)
        except Skip as reason:
            lacking, note = ['-f'], f'without FLUSH: {reason}'
    return world.transfer(server, client, [program('all_ops'), '-x', *lacking], '-g', ipv6)[1] + note


def flush(server, client, ipv6=False):
    world.transfer(world.newer(server), world.newer(client), [world.program('flush')], '-g', ipv6)


def jumbo(server, client, name, transport, args):
    """Packets of 2048 and 4096 bytes, by -m; otherwise both sides would use the port's MTU."""
    world.set_mtu(9000, server, client)
    try:
        perftest(server, client, name, transport, args)
    finally:
        world.set_mtu(1500, server, client)


def large_mtu(server, client):
    """A path MTU of 4096 on a wire of 1500, for messages that fit. Soft-RoCE sends DF with all packets, so longer ones fail
    between two of it, too."""
    pingpong(server, client, 'ibv_rc_pingpong', '-m 4096 -s 1300 -c -n 100')


def cases(rxe, roci, part):
    for server, client in ((rxe, roci), (roci, rxe)):
        way = f'{client.kind} to {server.kind}'
        for ipv6 in (False, True):
            ip = 'IPv6' if ipv6 else 'IPv4'
            short = part or ipv6
            yield f'{way}, {ip}: every opcode', lambda s=server, c=client, v=ipv6: every_opcode(s, c, v)
            if not OLD_KERNEL:
                yield (f'{way}, {ip}: FLUSH: 40 in a row, whole region, region without the right',
                       lambda s=server, c=client, v=ipv6: flush(s, c, v))
            for name, args in PINGPONGS:
                for a in runs(short, args)[:1 if ipv6 and part else None]:
                    yield (f'{way}, {ip}: {name} {a}',
                           lambda s=server, c=client, n=name, a=a, v=ipv6: pingpong(s, c, n, a, v))
            if ipv6 and part:
                continue
            for name, transport, args in PERFTEST:
                for a in runs(short, args):
                    yield (f'{way}, {ip}: {name} -c {transport} {a}',
                           lambda s=server, c=client, n=name, t=transport, a=a, v=ipv6: perftest(s, c, n, t, a, v))
        yield f'{way}: ibv_rc_pingpong -m 4096 on a wire of 1500', lambda s=server, c=client: large_mtu(s, c)
        for name, args in (('ib_write_bw', '-m 4096 -s 100000 -n 20'), ('ib_read_bw', '-m 2048 -s 100000 -n 20'),
                           ('ib_send_bw', '-m 4096 -s 100000 -n 20')):
            yield f'{way}, jumbo: {name} {args}', lambda s=server, c=client, n=name, a=args: jumbo(s, c, n, 'RC', a)


if __name__ == '__main__':
    part = world.option('part')
    sys.exit(tap(list(cases(*world.rxe_and_roci(), part))))
