# SPDX-License-Identifier: BSD-2-Clause
"""run.py [--or-skip] SERIES TEST [ARGUMENT...]: runs a test of this directory in a guest with Debian's kernel of a series
(6.1, 6.12).

Prints the test's TAP, and after a failure the guest's console. With --or-skip the test is skipped, and not failed, where a
program or package for the guest is missing.
"""
import os
import shlex
import signal
import sys
import time

import guest
import kernels
import newer_verbs

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 900 * int(os.environ.get('ROCI_PATIENCE', '1'))  # for a whole guest
PASSED_ON = ('ROCI', 'ROCI_CLIENTS', 'ROCI_EXAMPLES', 'ROCI_INTEROP', 'ROCI_DEBUG', 'ROCI_SIW', 'ROCI_NEWER_VERBS', 'ROCI_NO_NEWER_VERBS',
             'ROCI_SLICE', 'ROCI_PATIENCE')


def skip(reason):
    print(f'1..0 # SKIP {" ".join(str(reason).split())}')
    return 0


def fail(name, text):
    print(f'1..1\nnot ok 1 - {name}')
    comment(text)
    return 1


def comment(text):
    for line in str(text).splitlines():
        print(f'# {line}')
    sys.stdout.flush()


def script(test, args):
    exports = ''.join(f'export {name}={shlex.quote(os.environ[name])}\n' for name in PASSED_ON if name in os.environ)
    path = shlex.quote(kernels.ENVIRONMENT['PATH'])
    return (f'export PATH={path} HOME=/run TMPDIR=/run/tmp LC_ALL=C.UTF-8\n{exports}'
            f'cd {shlex.quote(HERE)}\nexec /usr/bin/python3 -B -u {shlex.join([test, *args])}\n')


def newer_verbs_if_there():
    """Some cases need them; without them, those are skipped."""
    try:
        os.environ['ROCI_NEWER_VERBS'] = shlex.join(newer_verbs.launcher())
    except kernels.Unavailable as reason:
        os.environ['ROCI_NO_NEWER_VERBS'] = ' '.join(str(reason).split())


def main(or_skip, series, test, *args):
    name = f'Linux {series}: {test}'
    try:
        guest.need_programs()
        kernel = kernels.Kernel(series, with_siw=test == 'test_siw.py')
        os.environ['ROCI_SIW'] = f'{kernel.root}/siw.ko'
        if series == '6.12':
            newer_verbs_if_there()
        start = time.monotonic()
        machine = guest.Guest(kernel, script(test, args), SECONDS)
    except kernels.Unavailable as reason:
        return skip(reason) if or_skip else fail(name, reason)
    planned = False
    with machine:
        try:
            for line in machine.lines():
                planned = planned or line.startswith('1..')
                print(line, flush=True)
        except guest.GuestFailure as failure:
            if not planned:
                return fail(name, failure)
            comment(failure)
            return 1
        status = machine.status()
        if status:
            comment(machine.report())
        comment(f'Linux {kernel.release}, {time.monotonic() - start:.0f} s')
    return status


if __name__ == '__main__':
    argv = sys.argv[1:]
    optional = argv[:1] == ['--or-skip']
    argv = argv[optional:]
    if len(argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # end the guest, too
    sys.exit(main(optional, *argv))
