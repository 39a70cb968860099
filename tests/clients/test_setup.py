# SPDX-License-Identifier: BSD-2-Clause
"""`roci setup` where it cannot work: wrong arguments, interfaces that are not there, no right, no module, errors of the kernel. That
it works is shown in a guest: tests/interop/test_tools.py and test_siw.py."""
import errno
import os
import re
import subprocess
import sys

from harness import ROCI, SANITIZER, Skip, check, isolate, program, run, tap

OK, FAILED, USAGE = range(3)


def setup(*argv, status, prefix=(), env=None):
    done = subprocess.run([*prefix, ROCI, 'setup', *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, env=dict(os.environ, **(env or {})))
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


def kernel_says():
    """Each answer of the kernel: what it means, and where there is an explanation, its name. A made kernel gives the answers."""
    if SANITIZER:
        raise Skip('a sanitizer wants to be loaded first')
    fake = {'LD_PRELOAD': program('fake_rdma_kernel.so')}
    for err, said, word in ((errno.ENODEV, 'the kernel made no device of kind rxe on lo: No such device', 'ENODEV'),
                            (errno.ENOMEM, 'on lo: Cannot allocate memory', 'ENOMEM'), (errno.EBUSY, 'Device or resource busy', 'EBUSY'),
                            (errno.EEXIST, 'a device of the name rxe_lo is there already', None),
                            (errno.EPERM, "a container's root may not. Run this on the machine itself: roci setup rxe lo", None),
                            (errno.EINVAL, 'has no', None)):
        text = setup('rxe', 'lo', status=FAILED, env={**fake, 'FAKE_MAKE': str(err)})
        check(said in text, f'{said!r} is not in {text}')
        check((f'; `roci explain {word}` tells more' in text) if word else '`roci explain' not in text, f'{word}: {text}')
    for undo, status in ([], FAILED), (['--undo'], FAILED):
        text = setup(*undo, 'siw', 'lo', status=status, env={**fake, 'FAKE_LIST': str(errno.EIO), 'FAKE_MAKE': str(errno.EIO)})
        check('Input/output error\n  the device or its firmware failed; `roci explain EIO` tells more' in text, text)


def ends_with_doctor():
    if SANITIZER:
        raise Skip('a sanitizer wants to be loaded first')
    text = setup('rxe', 'lo', status=OK, env={'LD_PRELOAD': program('fake_rdma_kernel.so')})
    check(text.startswith('rxe_lo is on lo now; `roci setup --undo rxe lo` removes it\n\nok         roci '), text)
    check(re.search(r'\n(\d+ problems?, \d+ warnings?|no problems)\n$', text), text)


if __name__ == '__main__':
    isolate()
    sys.exit(tap([('mistakes', mistakes), ('no such interface', no_interface), ('no right, no module', no_right),
                  ('nothing to undo', nothing_to_undo), ('what the kernel says', kernel_says), ('it ends with roci doctor', ends_with_doctor)]))
