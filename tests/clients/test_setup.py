# SPDX-License-Identifier: BSD-2-Clause
"""`roci setup` where it cannot work: wrong arguments, interfaces that are not there, no right, no module. That it works is shown in
a guest: tests/interop/test_tools.py and test_siw.py."""
import os
import subprocess
import sys

from harness import ROCI, check, isolate, run, tap

OK, FAILED, USAGE = range(3)


def setup(*argv, status, prefix=()):
    done = subprocess.run([*prefix, ROCI, 'setup', *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120)
    check(done.returncode == status, f'roci setup {" ".join(argv)}: exit status {done.returncode}\n{done.stdout}')
    return done.stdout


def mistakes():
    for argv, said in (([], 'name a kind of device and an interface'), (['rxe'], 'name a kind of device and an interface'),
                       (['roce', 'lo'], "'roce' is no kind of device; use rxe"), (['--und', 'rxe', 'lo'], "did you mean '--undo'")):
        check(said in setup(*argv, status=USAGE), said)


def no_interface():
    run('ip', 'link', 'add', 'here0', 'type', 'veth', 'peer', 'name', 'here1')
    for undo in [], ['--undo']:
        text = setup(*undo, 'rxe', 'nowhere0', status=FAILED)
        check("there is no network interface 'nowhere0'" in text and 'lo, here1, here0' in text, text)


def no_right():
    """Neither a user nor the root of a container may do it. A kernel without RDMA says that first."""
    for kind in 'rxe', 'siw':
        text = setup(kind, 'lo', status=FAILED, prefix=['unshare', '-U'])
        check(f'to make a device needs root; run: sudo roci setup {kind} lo' in text, text)
        text = setup(kind, 'lo', status=FAILED)
        module = 'rdma_rxe' if kind == 'rxe' else 'siw'
        no_folder = not os.path.exists(f'/lib/modules/{os.uname().release}')
        said = f'has no {module}, and there is no /lib/modules/{os.uname().release}: a container' if no_folder else f'has no module {module}'
        check("a container's root may not" in text or said in text, text)


def nothing_to_undo():
    if not os.path.exists('/sys/class/infiniband/rxe_lo'):
        check('nothing to do' in setup('--undo', 'rxe', 'lo', status=OK), 'it did something')


if __name__ == '__main__':
    isolate()
    sys.exit(tap([('mistakes', mistakes), ('no such interface', no_interface), ('no right, no module', no_right),
                  ('nothing to undo', nothing_to_undo)]))
