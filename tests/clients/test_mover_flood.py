# SPDX-License-Identifier: BSD-2-Clause
"""A flood of connect requests with forged source addresses must not keep out a sender that has the ticket, nor fill the
receiver's memory. test_mover_flood.py [FILTER...]
"""
import os
import signal
import sys

from harness import HERE, SANITIZER, check, isolate, tap, veth_pair, wait_until
from mover import Receiver, most_memory_mib, scratch, write

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
REQUEST = b'ROMV\2'.ljust(32, b'\0').hex()


def flooded(source, *options):
    """`options` of the receiver. The flood comes from the network `source`."""
    def case():
        with scratch() as folder:
            small = os.path.join(workshop.name, 'small')
            write(small, b'content')
            with Receiver(here, folder, '--keep-ticket', *options) as recv:
                flood = there.start('/usr/bin/python3', f'{HERE}/cm_flood.py', here.address, str(recv.port), REQUEST, source,
                                    str(RATE), plain=True)
                try:
                    wait_until('the flood', lambda: 'flooding' in flood.text() or not flood.running())
                    for number in range(TRANSFERS):
                        write(small, b'content %d' % number)
                        recv.take(there, small)
                        with open(os.path.join(folder, 'small'), 'rb') as f:
                            check(f.read() == b'content %d' % number, 'another content')
                    check(flood.running(), 'no flood\n' + flood.report())
                    threads, memory = len(os.listdir(f'/proc/{recv.process.pid}/task')), most_memory_mib(recv.process.pid)
                finally:
                    flood.end(signal.SIGTERM)
                check(threads < THREADS, f'{threads} threads')
                check(memory < MEMORY_MIB, f'{memory} MiB')
                recv.end(signal.SIGTERM)
                return f'{flood.text().splitlines()[-1]}; {threads} threads, {memory} MiB'
    return case


sys.exit(tap([
    ('flood from random addresses', flooded('10.0.0.0/8')),
    ('flood from one address', flooded('10.88.0.1')),
]))
