# SPDX-License-Identifier: BSD-2-Clause
"""Runs rdma-core's own Python tests, as Debian ships them, except those of rdma_cm. Each test must pass, or be skipped for
a reason that pyverbs-skips.txt lists and that is also true for the kernel's Soft-RoCE."""
import fnmatch
import gzip
import os
import shutil
import sys
import tempfile

from harness import DEVICE, HERE, Failure, Skip, check, isolate, tap, veth_pair

SHIPPED = '/usr/share/doc/rdma-core/tests'
RDMACM = 'test_rdmacm.py', 'test_mlx5_rdmacm.py'
MAC = '02:00:00:00:00:01'  # any value will do
FEWEST_PASSES = 86  # the number of tests that Soft-RoCE of Linux 6.1 passes


def unpack(directory, left_out=()):
    if not os.path.isdir(SHIPPED):
        raise Skip(f'{SHIPPED} is missing: scripts/install-deps.sh puts it there')
    for name in os.listdir(SHIPPED):
        plain = name[:-3] if name.endswith('.gz') else name
        if plain in left_out:
            continue
        opener = gzip.open if name.endswith('.gz') else open
        with opener(os.path.join(SHIPPED, name), 'rb') as source, open(os.path.join(directory, plain), 'wb') as target:
            shutil.copyfileobj(source, target)


def allowed_skips():
    """(pattern, reason) of each line."""
    with open(os.path.join(HERE, 'pyverbs-skips.txt')) as f:
        lines = [line.strip() for line in f]
    skips = [tuple(part.strip() for part in line.split('#', 1)) for line in lines if line and line[0] != '#']
    check(all(len(skip) == 2 and skip[1] for skip in skips), 'pyverbs-skips.txt: a line without a reason')
    return skips


def run_tests(host, device, *names, address=None):
    """Runs the tests with these names, or all tests, in one process. Tests of rdma_cm run only with an `address` to connect to.
    Returns [(outcome, test, text)]."""
    runner = ['pyverbs_rdmacm.py', address, MAC] if address else ['pyverbs_runner.py']
    with tempfile.TemporaryDirectory() as directory:
        unpack(directory, () if address else RDMACM)
        process = host.start('/usr/bin/python3', f'{HERE}/{runner[0]}', *runner[1:], directory, '--dev', device, *names)
        status = process.wait(400)
        text = process.text()
    found = []
    for line in text.splitlines():
        fields = line.split('\t')
        if len(fields) == 3 and fields[0] in ('pass', 'skip', 'fail', 'end'):
            found.append(fields)
        elif found:
            found[-1][2] += '\n' + line
    if status is None or not found or found[-1][0] != 'end':
        raise Failure(f'the tests did not end (exit status {status}); last lines:\n'
                      + '\n'.join(text.splitlines()[-40:]))
    return found[:-1]


def everything():
    results.extend(run_tests(host, DEVICE))
    counts = {outcome: sum(r[0] == outcome for r in results) for outcome in ('pass', 'skip', 'fail')}
    failed = [f'{test}: {text}' for outcome, test, text in results if outcome == 'fail']
    check(not failed, f'{counts}\n' + '\n'.join(failed))
    check(counts['pass'] >= FEWEST_PASSES, f'only {counts["pass"]} tests passed, fewer than {FEWEST_PASSES}')
    return f'{counts["pass"]} passed, {counts["skip"]} skipped'


def skips():
    check(results, 'the tests did not run')
    allowed = allowed_skips()
    unlisted = [f'{test}: {text}' for outcome, test, text in results
                if outcome == 'skip' and not any(fnmatch.fnmatchcase(test, pattern) for pattern, _ in allowed)]
    check(not unlisted, f'{len(unlisted)} skips that pyverbs-skips.txt does not list:\n' + '\n'.join(unlisted))
    idle = [pattern for pattern, _ in allowed
            if not any(r[0] == 'skip' and fnmatch.fnmatchcase(r[1], pattern) for r in results)]
    return 'entries that no test needed: ' + ', '.join(idle) if idle else ''


if __name__ == '__main__':
    isolate()
    host, _ = veth_pair()
    results = []
    sys.exit(tap([('every test passes or is skipped', everything), ('every skip is listed with its reason', skips)]))
