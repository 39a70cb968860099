# SPDX-License-Identifier: BSD-2-Clause
"""A part of everything between roci0 and Soft-RoCE that runs in a few minutes, in one guest: for every run of the tests."""
import sys

import test_cm
import test_errors
import test_loss
import test_tools
import test_wire
import world
from harness import tap

if __name__ == '__main__':
    rxe, roci = world.rxe_and_roci()
    sys.exit(tap([
        *test_wire.cases(rxe, roci, True),
        *test_cm.cases(rxe, roci, True),
        *test_errors.cases(rxe, roci),
        *test_loss.cases(rxe, roci),
        *test_tools.all_cases(rxe, roci, True),
    ]))
