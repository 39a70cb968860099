# SPDX-License-Identifier: BSD-2-Clause
"""A part of all tests between roci0 and Soft-RoCE, for every run of the tests: a few minutes in one guest. The quick run does a
slice of it, with one case for each question."""
import re
import sys

import test_cm
import test_errors
import test_loss
import test_tools
import test_wire
import world
from harness import tap

QUICK = re.compile('|'.join([
    'every opcode$', 'ib_write_bw -c RC -s 65536', 'ib_read_lat', 'ib_send_bw -c U', 'jumbo: ib_read_bw', 'rping', 'ucmatose$',
    'IPv4: udaddy', 'rstream', 'nobody listens', 'IPv4: the server is killed', '^rxe to roci: every opcode, 1%',
    '^roci to rxe: 4 MiB', '^ro.*: all kinds, write', '^rxe to roci: all kinds, read', 'auto$', 'run beside',
    '^roci to rxe: roci run --capture', '^roci setup', '^rxe: 0', '^rxe: 11', '^rxe to roci: 0']))


if __name__ == '__main__':
    rxe, roci = world.rxe_and_roci()
    errors = list(test_errors.cases(rxe, roci))  # one program makes all of them: no part of them is quicker
    names = {name for name, _ in errors}
    sys.exit(tap([
        *test_wire.cases(rxe, roci, True),
        *test_cm.cases(rxe, roci, True),
        *errors,
        *test_loss.cases(rxe, roci),
        *test_tools.all_cases(rxe, roci, True),
    ], quick=lambda name: name in names or QUICK.search(name) is not None))
