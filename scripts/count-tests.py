#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""count-tests.py TESTLOG.json...: shows the failures in these logs of Meson and the tests that were skipped as a whole, then
prints one line of counts.

A test that speaks TAP counts as its subtests. A log that is missing or cut counts as a failure. The exit status is 1 if
anything failed. The output of the failures comes before their names: people read a log from its end.
"""
import itertools
import json
import re
import sys

PASSED, SKIPPED = ('OK', 'EXPECTEDFAIL'), ('SKIP', 'IGNORED')
SHOWN_LINES = 30


def shorten(lines):
    half = SHOWN_LINES // 2
    return lines if len(lines) <= SHOWN_LINES else [*lines[:half], '...', *lines[-half:]]


def count(test):
    """(passed, [(name, output) of each failure], skipped) of one test."""
    result, lines = test['result'], test.get('stdout', '').splitlines()
    everything = lines + test.get('stderr', '').splitlines()
    if not any(re.fullmatch(r'1\.\.\d+.*', line) for line in lines):
        failed = [] if result in PASSED + SKIPPED else [(test['name'], everything)]
        return int(result in PASSED), failed, int(result in SKIPPED)
    passed, failed, skipped = 0, [], 0
    for number, line in enumerate(lines):
        point = re.match(r'(not )?ok\b[ \d]*(?:- )?(.*)', line)
        if not point:
            continue
        if re.search(r'# skip', point[2], re.IGNORECASE):
            skipped += 1
        elif point[1]:
            comments = itertools.takewhile(lambda comment: comment.startswith('#'), lines[number + 1:])
            failed.append((f'{test["name"]}: {point[2]}', list(comments)))
        else:
            passed += 1
    if result not in PASSED + SKIPPED and not failed:
        failed.append((f'{test["name"]}: {result.lower()}', everything))
    return passed, failed, skipped + (result in SKIPPED and not skipped)


def reason_to_skip(test):
    """The reason that a test gives for being skipped as a whole."""
    output = test.get('stdout', '')
    reasons = re.findall(r'# skip\S*\s*(.*)', output, re.IGNORECASE) or output.splitlines()
    return reasons[0] if reasons else 'no reason given'


def main():
    passed, failed, skipped = 0, [], 0
    skipped_tests = []
    for path in sys.argv[1:]:
        try:
            with open(path) as f:
                tests = [json.loads(line) for line in f]
        except (OSError, ValueError) as error:
            failed.append((path, [str(error)]))
            continue
        if not tests:
            failed.append((path, ['no test ran']))
        for test in tests:
            more_passed, more_failed, more_skipped = count(test)
            passed += more_passed
            failed += more_failed
            skipped += more_skipped
            if test['result'] in SKIPPED:
                skipped_tests.append(f'{test["name"]}: {reason_to_skip(test)}')
    for name, output in failed:
        print(f'== {name}', *shorten(output), sep='\n')
    for skip in skipped_tests:
        print(f'skipped: {skip}')
    for name, _ in failed:
        print(f'failed: {name}')
    print(f'{passed} passed, {len(failed)} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
