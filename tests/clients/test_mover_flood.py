# SPDX-License-Identifier: BSD-2-Clause
"""A flood of connect requests with forged source addresses must not keep out a sender that has the ticket, nor fill the
receiver's memory. test_mover_flood.py [FILTER...]
"""
import os
import signal
import sys

from harness import HERE, SANITIZER, check, isolate, tap, veth_pair, wait_until
from mover import Receiver, events, most_memory_mib, scratch, write

isolate()
here, there = veth_pair()
# What the receiver answers goes to the attacker, who ignores it. Otherwise the kernel would look for 10,000 neighbours a second.
here.run('ip', 'route', 'add', 'default', 'via', there.address)
workshop = scratch()
RATE = 10000     # packets a second
TRANSFERS = 8    # under a flood, one after another
MEMORY_MIB = 2048 if SANITIZER else 512  # far more than it needs, far less than a flood without bound would take
THREADS = 200

# The private data of a control connection's request: "ROMV", version, and zeros where a ticket would be proved.
REQUEST = b'ROMV\5'.ljust(32, b'\0').hex()


def bounded(pid):
    """Checks the process while it is flooded. Returns what it needs."""
    threads, memory = len(os.listdir(f'/proc/{pid}/task')), most_memory_mib(pid)
    check(threads < THREADS, f'{threads} threads')
    check(memory < MEMORY_MIB, f'{memory} MiB')
    return f'{threads} threads, {memory} MiB'


def take(recv, folder, content):
    small = os.path.join(workshop.name, 'small')
    write(small, content)
    recv.take(there, small)
    with open(os.path.join(folder, 'small'), 'rb') as f:
        check(f.read() == content, 'another content')


class Flood:
    """A flood of the receiver from the network `source`."""

    def __init__(self, recv, source):
        self.process = there.start('/usr/bin/python3', f'{HERE}/cm_flood.py', here.address, str(recv.port), REQUEST, source, str(RATE),
                                   plain=True)

    def __enter__(self):
        wait_until('the flood', lambda: 'flooding' in self.process.text() or not self.process.running())
        return self.process

    def __exit__(self, *exception):
        self.process.end(signal.SIGTERM)


def flooded(source):
    def case():
        with scratch() as folder, Receiver(here, folder, '--keep-ticket') as recv:
            with Flood(recv, source) as flood:
                for number in range(TRANSFERS):
                    take(recv, folder, b'content %d' % number)
                check(flood.running(), 'no flood\n' + flood.report())
                used = bounded(recv.process.pid)
            recv.end(signal.SIGTERM)
            return f'{flood.text().splitlines()[-1]}; {used}'
    return case


def flooded_open():
    """Nobody proves anything to an open receiver, so a flood may keep senders out. But what it costs is bounded."""
    with scratch() as folder, Receiver(here, folder, '--open') as recv:
        with Flood(recv, '10.0.0.0/8') as flood:
            wait_until('a second warning', lambda: any('connections were not let in' in e['text'] for e in events(recv.process, 'warning')))
            used = bounded(recv.process.pid)
        check('packets' in flood.text(), flood.report())
        recv.end(signal.SIGTERM)
        return f'{flood.text().splitlines()[-1]}; {used}'


sys.exit(tap([
    ('flood from random addresses', flooded('10.0.0.0/8')),
    ('flood from one address', flooded('10.88.0.1')),
    ('flood of an open receiver', flooded_open),
]))
