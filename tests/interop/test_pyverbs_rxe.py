# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core's Python tests on Soft-RoCE, those of rdma_cm too. roci0 may skip only what Soft-RoCE skips
(tests/clients/pyverbs-skips.txt): each pattern there must match a test that Soft-RoCE skips, and none that it runs."""
import collections
import fnmatch
import sys

import world
from harness import check, tap
from test_pyverbs import allowed_skips, run_tests

PASSES = 96
# Soft-RoCE of Linux 6.1 has no atomic write; the test asks only libibverbs for it.
KNOWN_FAILURES = {'tests.test_qpex.QpExTestCase.test_qp_ex_rc_atomic_write'}


def run_on_rxe(*names):
    """{test: (outcome, text)}"""
    return {test: (outcome, text) for outcome, test, text in run_tests(rxe, rxe.device, *names, address=rxe.address)}


def named(outcome):
    return {test for test, (o, _) in results.items() if o == outcome}


def everything():
    results.update(run_on_rxe())
    again = sorted(named('fail') - KNOWN_FAILURES)  # a few depend on time, and a guest on a busy machine is slow
    if again:
        results.update(run_on_rxe(*again))
    failed = named('fail') - KNOWN_FAILURES
    check(not failed, '\n'.join(f'{test}: {results[test][1]}' for test in failed))
    check(len(named('pass')) >= PASSES, f'only {len(named("pass"))} passed, fewer than {PASSES}')
    return '\n'.join([f'{len(named("pass"))} passed', *(f'failed once: {test}' for test in again)])


def skips():
    check(results, 'the tests did not run')
    reasons, wrong = collections.Counter(), []
    for pattern, _ in allowed_skips():
        matched = fnmatch.filter(results, pattern)
        wrong += [f'{pattern}: Soft-RoCE does not skip {test}' for test in matched if results[test][0] != 'skip']
        # Without huge pages a test is skipped before it asks the device.
        if all('huge pages' in results[test][1] for test in matched):
            wrong.append(f'{pattern}: Soft-RoCE skips nothing here for a reason of its own')
        reasons.update((pattern, results[test][1]) for test in matched)
    check(not wrong, '\n'.join(wrong))
    others = [test for test in named('skip') if not any(fnmatch.fnmatchcase(test, p) for p, _ in reasons)]
    reasons.update(('what roci0 runs', results[test][1]) for test in others)
    return '\n'.join(f'{count} of {pattern}: {reason}' for (pattern, reason), count in reasons.items())


if __name__ == '__main__':
    results = {}
    rxe, _ = world.rxe_and_roci()
    sys.exit(tap([('they pass, or are skipped', everything), ('what may be skipped is skipped', skips)]))
