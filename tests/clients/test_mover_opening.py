# SPDX-License-Identifier: BSD-2-Clause
"""How `roci send` begins where the receiver is far away: its first OFFER is a train of packets, from which the engine learns what
the path carries, and it goes once. test_mover_opening.py [FILTER...]
"""
import collections
import json
import os
import sys

from harness import Failure, ROCI, check, isolate, tap, veth_pair
from mover import MIB, Receiver, check_same, make_large, scratch

isolate()
sender, receiver = veth_pair()
workshop = scratch()


def conversation(size, fault):
    """What the sender sends and gets, packet by packet, without the connection manager's."""
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
    for line in sender.call(ROCI, 'dump', '--json', capture, plain=True).splitlines():
        packet = json.loads(line)
        if 'opcode' in packet and packet['dst']['qpn'] != 1:
            yield packet


def is_sent(packet):
    return packet['src']['address'] == sender.address


def place(packet):
    return packet['dst']['qpn'], packet['psn']


def before_the_content(size, fault):
    """How many packets of SENDs the sender sends before its first WRITE. What goes again counts once."""
    packets = set()
    for packet in conversation(size, fault):
        if 'WRITE' in packet['opcode']:
            return len(packets)
        if 'SEND' in packet['opcode'] and is_sent(packet):
            packets.add(place(packet))
    raise Failure('there is no WRITE in the capture')


def far():
    packets = before_the_content(2 * MIB, 'delay=20ms')
    check(packets >= 11, f'{packets} packets before the content')


def few_bytes():
    packets = before_the_content(MIB // 16, 'delay=20ms')
    check(packets < 8, f'{packets} packets before the content')


def once():
    """The first packets of a connection to a receiver that is 600 ms away wait for their answer as long as the exchange of the
    connection took, and a quarter more."""
    times = collections.Counter()
    for packet in conversation(2 * MIB, 'delay=300ms'):
        if not is_sent(packet):
            break
        if 'SEND' in packet['opcode']:
            times[place(packet)] += 1
    check(len(times) >= 11, f'{len(times)} packets before the first answer')
    again = sum(count > 1 for count in times.values())
    check(not again, f'{again} of {len(times)} packets went again before the first answer')


# That a receiver nearby gets none is shown in unit/mover/test_opening.c: here a busy machine is far away, too.
sys.exit(tap([('a train of packets to a receiver that is far away', far), ('not for a few bytes', few_bytes),
              ('they do not go again before an answer can come', once)]))
