# SPDX-License-Identifier: BSD-2-Clause
"""Unchanged programs must finish correctly while packets are lost, repeated, reordered and corrupted: first by the device's
own fault link (ROCI_FAULT), then by a relay between two hosts that the device does not know about."""
import re
import signal
import sys

from harness import DEVICE, HERE, Host, check, hosts_with_relay, isolate, program, tap, transfer, wait_until

# Both sides apply this to packets that they send and to packets that they receive. With much more loss, one message in some
# thousands would fail all its eight attempts, and rightly so.
FAULT = {'ROCI_FAULT': 'loss=0.02,dup=0.01,reorder=0.01,corrupt=0.01,seed=7'}
DISORDER = {'ROCI_FAULT': 'loss=0.01,dup=0.2,reorder=0.3,corrupt=0.01,seed=8'}

# A ping-pong program ends as soon as it has received everything. If its last acknowledgement is lost, nobody repeats it, and
# the last request of the other side fails, on any adapter. The side that succeeded has verified all data by then.
LAST_ACK_LOST = 'Failed status transport retry counter exceeded (12) for wr_id 2'

PROGRAMS = [
    # program, arguments, the option for the GID index
    ('ibv_rc_pingpong', '-c', '-g'),
    ('ibv_rc_pingpong', '-c -s 100000 -n 100', '-g'),
    ('ibv_rc_pingpong', '-e -c -n 300', '-g'),
    ('ibv_srq_pingpong', '-c -n 100', '-g'),
    ('ib_write_bw', '-F -n 200', '-x'),
    ('ib_send_bw', '-F -n 200', '-x'),
    ('ib_read_bw', '-F -n 200', '-x'),
    ('ib_write_bw', '-F -q 8 -n 100', '-x'),
    ('ib_write_lat', '-F -n 200', '-x'),
    ('ib_read_lat', '-F -n 200', '-x'),
    ('ib_atomic_bw', '-F -n 500', '-x'),
    ('ib_atomic_lat', '-F -n 200', '-x'),
]
DISORDER_PROGRAMS = [
    ('ibv_rc_pingpong', '-c -n 200', '-g'),
    ('ibv_rc_pingpong', '-e -c -s 20000 -n 50', '-g'),
    ('ib_write_bw', '-F -s 20000 -n 100', '-x'),
    ('ib_read_bw', '-F -s 20000 -n 100', '-x'),
    ('ib_atomic_bw', '-F -n 100', '-x'),
]


def run_client(server, client, address, name, args, gid_option, env=None):
    transfer(server, client, [name, '-d', DEVICE, *args.split()], [gid_option, server.gid_index(address)],
             [gid_option, client.gid_index(client.address if client is not server else address)], env=env, seconds=120,
             excuse=LAST_ACK_LOST if 'pingpong' in name else None)


def relayed(name, args, gid_option, odds):
    """Runs a program across the relay. The relay's counter proves that it lost packets."""
    relay = middle.start('/usr/bin/python3', f'{HERE}/relay.py', here.link, there.link, *odds.split(), '7', plain=True)
    try:
        wait_until('the relay', lambda: 'relaying' in relay.text() or not relay.running())
        run_client(there, here, there.address, name, args, gid_option)
    finally:
        relay.end(signal.SIGTERM)
    lost = re.search(r'(\d+) lost', relay.text())
    check(lost and int(lost[1]) > 0, 'the relay lost nothing:\n' + relay.report())
    return relay.text()


def cases():
    loopback = Host('loopback')
    for name, args, option in PROGRAMS:
        yield (f'faults, loopback: {name} {args}',
               lambda n=name, a=args, o=option: run_client(loopback, loopback, '127.0.0.1', n, a, o, FAULT))
    for name, args, option in DISORDER_PROGRAMS:
        yield (f'disorder, loopback: {name} {args}',
               lambda n=name, a=args, o=option: run_client(loopback, loopback, '127.0.0.1', n, a, o, DISORDER))
    yield ('faults, loopback: mt_smoke',
           lambda: loopback.call(program('mt_smoke'), '-n', '5000', '-g', loopback.gid_index('127.0.0.1'), env=FAULT,
                                 seconds=120))
    for name, args, option in PROGRAMS:
        yield (f'lossy wire: {name} {args}',
               lambda n=name, a=args, o=option: relayed(n, a, o, '0.02 0.01 0.02'))


if __name__ == '__main__':
    isolate()
    here, middle, there = hosts_with_relay()
    sys.exit(tap(list(cases())))
