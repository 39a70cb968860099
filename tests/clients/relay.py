# SPDX-License-Identifier: BSD-2-Clause
"""relay.py LINK LINK LOSS DUPLICATE REORDER SEED: a bad network in user space. It forwards Ethernet frames between two
interfaces of its namespace, and loses, repeats and delays RoCEv2 packets with these probabilities. At SIGTERM it prints what
it did. The hosts at both ends must turn all offloads off, because the relay forwards frames as they are."""
import random
import select
import signal
import socket
import sys


def is_roce(frame):
    if frame[12:14] == b'\x08\x00':
        return frame[23] == 17 and frame[36:38] == b'\x12\xb7'
    return frame[12:14] == b'\x86\xdd' and frame[20] == 17 and frame[56:58] == b'\x12\xb7'


class Wire:
    """One direction."""

    def __init__(self, source, sink, odds, dice, counts):
        self.source, self.sink, self.odds, self.dice, self.counts = source, sink, odds, dice, counts
        self.held = None  # a delayed packet that others overtake

    def forward(self):
        frame, address = self.source.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING:
            return
        copies = 1
        if is_roce(frame):
            self.counts['seen'] += 1
            loss, duplicate, reorder = self.odds
            if self.dice.random() < loss:
                self.counts['lost'] += 1
                return
            if self.dice.random() < duplicate:
                self.counts['repeated'] += 1
                copies = 2
            if self.held is None and self.dice.random() < reorder:
                self.counts['delayed'] += 1
                self.held = frame
                return
        for _ in range(copies):
            self.send(frame)
        self.release()

    def release(self):
        if self.held is not None:
            held, self.held = self.held, None
            self.send(held)

    def send(self, frame):
        try:
            self.sink.send(frame)
        except OSError:  # a full queue loses the packet, as in a real network
            self.counts['refused'] += 1


def link_socket(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    s.bind((name, 0))
    return s


def forward(links, change):
    """Forwards between two interfaces, for ever: of each frame what change(frame) returns; None: nothing."""
    left, right = map(link_socket, links)
    print('on the path', flush=True)
    while True:
        for source in select.select([left, right], [], [])[0]:
            frame, address = source.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            frame = change(frame)
            if frame:
                (right if source is left else left).send(frame)


def print_at_end(text):
    """At SIGTERM prints what text() returns."""
    def end(*_):
        print(text(), flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)


def main():
    left, right = link_socket(sys.argv[1]), link_socket(sys.argv[2])
    odds = tuple(float(p) for p in sys.argv[3:6])
    dice = random.Random(int(sys.argv[6]))
    counts = dict(seen=0, lost=0, repeated=0, delayed=0, refused=0)
    wires = {left: Wire(left, right, odds, dice, counts), right: Wire(right, left, odds, dice, counts)}

    print_at_end(lambda: ', '.join(f'{n} {what}' for what, n in counts.items()))
    print('relaying', flush=True)
    while True:
        ready = select.select([left, right], [], [], 0.005)[0]
        for s in ready:
            wires[s].forward()
        if not ready:  # no packet came that could overtake the delayed one
            for wire in wires.values():
                wire.release()


if __name__ == '__main__':
    main()
