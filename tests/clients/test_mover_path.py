# SPDX-License-Identifier: BSD-2-Clause
"""An attacker on the path between sender and receiver changes the content of a file (tamper.py). The receiver must notice it in
every mode, and store nothing. test_mover_path.py [FILTER...]
"""
import os
import signal
import sys

import tamper
from harness import HERE, check, hosts_with_relay, isolate, tap, wait_until
from mover import MISMATCH, OK, Receiver, scratch, write

isolate()
here, middle, there = hosts_with_relay()
workshop = scratch()
path = os.path.join(workshop.name, 'file')
write(path, tamper.content())


def attacked(how, *options, status=MISMATCH, trust=()):
    def case():
        with scratch() as folder, Receiver(there, folder, *trust) as recv:
            attacker = middle.start('/usr/bin/python3', f'{HERE}/tamper.py', here.link, there.link, how, plain=True)
            try:
                wait_until('the attacker', lambda: 'on the path' in attacker.text() or not attacker.running())
                recv.take(here, *options, '--chunk', '64K', path, status=status)
            finally:
                attacker.end(signal.SIGTERM)
            check('1 packets changed' in attacker.text(), attacker.report())
            stored = [name for name in os.listdir(folder) if not name.startswith('.roci-')]
            check(not stored, 'stored' + (', with other content' if stored and open(f'{folder}/file', 'rb').read() !=
                                          tamper.content() else ''))
    return case


cases = [(f'{how}, {mode}', attacked(how, '--mode', mode, '--no-encrypt')) for mode in ('write', 'read', 'send')
         for how in ('swap', 'flip')]
cases += [(f'flip, {mode}, encrypted', attacked('flip', '--mode', mode)) for mode in ('write', 'read', 'send')]
cases.append(('swap, without a ticket', attacked('swap', '--no-encrypt', trust=['--open'])))
sys.exit(tap(cases))
