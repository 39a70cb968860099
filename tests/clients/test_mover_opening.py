# SPDX-License-Identifier: BSD-2-Clause
"""How `roci send` begins where the receiver is far away: its first OFFER is a train of packets, from which the engine learns what
the path carries. test_mover_opening.py [FILTER...]
"""
import json
import os
import sys

from harness import Failure, ROCI, check, isolate, tap, veth_pair
from mover import MIB, Receiver, check_same, make_large, scratch

isolate()
sender, receiver = veth_pair()
workshop = scratch()


def before_the_content(size, fault):
    """How many packets of SENDs the sender sends before its first WRITE. What goes again counts once."""
    folder, capture = os.path.join(workshop.name, f'{size}{fault}'), os.path.join(workshop.name, f'{size}{fault}.pcapng')
    os.makedirs(folder)
    make_large(os.path.join(folder, 'file'), size)
    os.environ['ROCI_FAULT'] = fault
    try:
        with scratch() as there, Receiver(receiver, there, '--once') as recv:
            os.environ['ROCI_CAPTURE'] = capture
            recv.take(sender, os.path.join(folder, 'file'))
            check(recv.process.wait(20) == 0, recv.process.report())
            check_same(folder, there)
    finally:
        os.environ.pop('ROCI_FAULT', None)
        os.environ.pop('ROCI_CAPTURE', None)
    packets = set()
    for line in sender.call(ROCI, 'dump', '--json', capture, plain=True).splitlines():
        packet = json.loads(line)
        opcode = packet.get('opcode', '')
        if 'WRITE' in opcode:
            return len(packets)
        if 'SEND' in opcode and 'UD' not in opcode and packet['src']['address'] == sender.address:
            packets.add((packet['dst']['qpn'], packet['psn']))
    raise Failure('there is no WRITE in the capture')


def far():
    packets = before_the_content(2 * MIB, 'delay=20ms')
    check(packets >= 11, f'{packets} packets before the content')


def few_bytes():
    packets = before_the_content(MIB // 16, 'delay=20ms')
    check(packets < 8, f'{packets} packets before the content')


# That a receiver nearby gets none is shown in unit/mover/test_opening.c: here a busy machine is far away, too.
sys.exit(tap([('a train of packets to a receiver that is far away', far), ('not for a few bytes', few_bytes)]))
