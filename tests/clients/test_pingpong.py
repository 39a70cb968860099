# SPDX-License-Identifier: BSD-2-Clause
"""Runs the example programs of libibverbs: ibv_devices, ibv_devinfo, ibv_asyncwatch and the four ping-pong programs.

Each ping-pong program runs on one host over loopback, on one host over the address of its interface, and between two hosts
over IPv4 and IPv6.
"""
import os
import sys

from harness import DEVICE, Host, check, isolate, program, tap, transfer, veth_pair, wait_until

PINGPONGS = [
    # program, its arguments
    ('ibv_rc_pingpong', ''),
    ('ibv_rc_pingpong', '-c'),
    ('ibv_rc_pingpong', '-e -c'),
    ('ibv_rc_pingpong', '-N -c'),
    ('ibv_rc_pingpong', '-s 1'),
    ('ibv_rc_pingpong', '-s 65536 -c -n 200'),
    ('ibv_rc_pingpong', '-s 8388608 -c -n 10'),
    ('ibv_rc_pingpong', '-s 1000000 -e -n 50 -m 256'),
    ('ibv_rc_pingpong', '-r 1'),
    ('ibv_uc_pingpong', ''),
    ('ibv_uc_pingpong', '-c'),
    ('ibv_uc_pingpong', '-e -c'),
    ('ibv_uc_pingpong', '-s 1'),
    ('ibv_uc_pingpong', '-s 20000 -c -n 200'),
    ('ibv_ud_pingpong', '-s 1024'),
    ('ibv_ud_pingpong', '-s 1024 -c'),
    ('ibv_ud_pingpong', '-s 1024 -e -c'),
    ('ibv_ud_pingpong', '-s 1'),
    ('ibv_srq_pingpong', ''),
    ('ibv_srq_pingpong', '-c'),
    ('ibv_srq_pingpong', '-e -c'),
    ('ibv_srq_pingpong', '-q 4 -s 30000 -c -n 100'),
    ('ibv_srq_pingpong', '-s 1'),
]

LARGE_MTU = [
    # program, its arguments beside -m, its environment
    ('ibv_rc_pingpong', '-c', None),
    ('ibv_rc_pingpong', '-c -e -s 1000000 -n 50', None),
    ('ibv_uc_pingpong', '-c -s 20000 -n 200', None),
    (program('all_ops'), '', None),
    (program('all_ops'), '-r 3', {'ROCI_FAULT': 'loss=0.05,dup=0.05,reorder=0.05,seed=1'}),
]


def devices():
    text = host_a.call('ibv_devices')
    check(DEVICE in text, text)
    return text


def devinfo():
    text = host_a.call('ibv_devinfo', '-v')
    for line in ('hca_id:\t' + DEVICE, 'PORT_ACTIVE', 'Ethernet', 'RoCE v2'):
        check(line in text, f'{line!r} is missing in:\n{text}')
    return text


def asyncwatch():
    """It prints the device, and then waits for events until the test ends it."""
    watcher = host_a.start('stdbuf', '-oL', 'ibv_asyncwatch', '-d', DEVICE)
    try:
        wait_until('ibv_asyncwatch to open the device',
                   lambda: 'async event FD' in watcher.text() or not watcher.running())
        check(watcher.running() and 'async event FD' in watcher.text(), watcher.report())
    finally:
        watcher.end()


def pingpong(server, client, address, program, args):
    transfer(server, client, [program, '-d', DEVICE, *args.split()],
             ['-g', server.gid_index(address(server))], ['-g', client.gid_index(address(client))])


def large_mtu(server, client, address, program, args, env=None):
    """Programs that ask for a path MTU of 4096, whatever the port says. One line of each process says what it costs."""
    texts = transfer(server, client, [program, '-m', '4096', *args.split()],
                     ['-g', server.gid_index(address(server))], ['-g', client.gid_index(address(client))], env=env)
    for text in texts:
        check(text.count('IP fragments') == 1, f'no line, or several, about fragments:\n{text}')
        check('path MTU of at most 1024' in text, f'the line does not tell the path MTU that fits:\n{text}')
    return '\n'.join(line for line in texts[0].splitlines() if 'fragment' in line)


def large_mtu_here(program, args):
    """On one host everything fits."""
    for text in transfer(host_a, host_a, [program, '-m', '4096', *args.split()],
                         *2 * [['-g', host_a.gid_index(host_a.address)]]):
        check('fragment' not in text, text)


def narrow_way():
    """host_a (an interface of 9000 bytes) - router - host_b (1500), beside the way of the other tests. host_a's kernel learns
    that only from ICMP. Returns the addresses of the ends, of IPv4 and IPv6."""
    wide, router = veth_pair(9000)
    router.run('ip', 'link', 'add', 'beyond', 'type', 'veth', 'peer', 'name', 'beyond', 'netns', str(host_b.pid))
    for host, last in ((router, 1), (host_b, 2)):
        host.run('ip', 'addr', 'add', f'10.80.0.{last}/24', 'dev', 'beyond')
        host.run('ip', 'addr', 'add', f'fd80::{last}/64', 'dev', 'beyond', 'nodad')
        host.run('ip', 'link', 'set', 'beyond', 'up')
    router.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
    for family, there, here, gateway in (('-4', '10.80.0.0/24', wide.address, '10.80.0.1'), ('-6', 'fd80::/64', wide.ipv6, 'fd80::1')):
        host_a.run('ip', family, 'route', 'add', there, 'via', router.address if family == '-4' else router.ipv6)
        host_b.run('ip', family, 'route', 'add', here, 'via', gateway)
    return (wide.address, '10.80.0.2'), (wide.ipv6, 'fd80::2')


def path_below_the_interface():
    """The first packets that do not fit are lost, and all others go in fragments."""
    for here, there in narrow_way():
        server, client = transfer(host_b, host_a, ['ibv_rc_pingpong', '-m', '4096', '-s', '65536', '-n', '50', '-c'],
                                  ['-g', host_b.gid_index(there)], ['-g', host_a.gid_index(here)])
        for text in (server, client):
            check(text.count('IP fragments') == 1, f'no line, or several, about fragments:\n{text}')
            check('path MTU of at most 1024' in text, f'the line does not tell the path MTU that fits:\n{text}')


def cases():
    yield 'ibv_devices', devices
    yield 'ibv_devinfo -v', devinfo
    yield 'ibv_asyncwatch', asyncwatch
    loopback = Host('loopback')
    ways = [
        ('loopback', loopback, loopback, lambda host: '127.0.0.1'),
        ('one address', host_a, host_a, lambda host: host.address),
        ('veth IPv4', host_a, host_b, lambda host: host.address),
        ('veth IPv6', host_a, host_b, lambda host: host.ipv6),
    ]
    for way, _, _, address in ways[2:]:
        for name, args, env in LARGE_MTU:
            title = f'{way}, -m 4096: {os.path.basename(name)} {args}'.rstrip() + (', loss' if env else '')
            yield title, lambda ad=address, p=name, ar=args, e=env: large_mtu(host_a, host_b, ad, p, ar, e)
    yield 'a way that carries less than the interface', path_below_the_interface
    yield 'one address, -m 4096: ibv_rc_pingpong', lambda: large_mtu_here('ibv_rc_pingpong', '-c')
    for way, server, client, address in ways:
        for name, args in PINGPONGS:
            title = f'{way}: {name} {args}'.rstrip()
            yield title, lambda s=server, c=client, ad=address, p=name, ar=args: pingpong(s, c, ad, p, ar)


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases())))
