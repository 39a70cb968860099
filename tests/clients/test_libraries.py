# SPDX-License-Identifier: BSD-2-Clause
"""Which libibverbs.so.1 and librdmacm.so.1 `roci` has, and how often it is executed for that: ours at once where it uses roci0, the
system's where the machine's devices are what matters. With a device of the machine, tests/interop/test_tools.py tries it."""
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile

from harness import ROCI, SANITIZER, Host, Skip, check, isolate, next_port, program, tap, wait_until
from mover import environment

ROCI = os.path.realpath(ROCI)
HERE = os.path.dirname(ROCI)
SYSTEM = os.path.join(HERE, 'system', 'roci')
OURS = [os.path.realpath(os.path.join(HERE, '..', 'src', part)) for part in ('verbs', 'rdmacm')]
NONE = 'this machine has no RDMA device'


def executed(process):
    """The program that a process executes, the variables of its last execution, and the folders of its RDMA libraries."""
    with open(f'/proc/{process.pid}/environ', 'rb') as file:
        variables = dict(entry.split(b'=', 1) for entry in file.read().split(b'\0') if b'=' in entry)
    with open(f'/proc/{process.pid}/maps') as file:
        files = {line.split(maxsplit=5)[5].strip() for line in file if '/libibverbs.so' in line or '/librdmacm.so' in line}
    return os.readlink(f'/proc/{process.pid}/exe'), variables, sorted({os.path.dirname(name) for name in files})


def serve(*options, env=None, under_run=False):
    """The end of `roci serve` that listens on roci0: as executed() says, and its reason for roci0."""
    run = [ROCI, 'run', '--'] if under_run else []
    process = here.start(*run, ROCI, 'serve', '--bind', '127.0.0.1', '--port', str(next_port()), *options, plain=True,
                         env={**environment(), **(env or {})})
    next_port()  # TCP's
    try:
        wait_until('roci serve', lambda: '(embedded: ' in process.text() or not process.running())
        check(process.running(), process.report())
        with open(f'/proc/{process.pid}/comm') as file:
            check(file.read() == 'roci serve\n', 'it has another name')
        return *executed(process), process.text().split('(embedded: ')[1].split(')')[0]
    finally:
        process.end()


def made_kernel(err):
    """The environment with a kernel that has RDMA, and answers with this errno where devices are listed; 0: there is none."""
    if SANITIZER:
        raise Skip('a sanitizer wants to be loaded first')
    return {'LD_PRELOAD': program('fake_rdma_kernel.so'), 'FAKE_LIST': str(err)}


def once():
    """One execution, and nothing is preloaded into what the process starts."""
    for options, wanted in (([], NONE), (['--device', 'embedded'], 'requested'), (['--device', 'roci0'], 'requested')):
        path, variables, folders, reason = serve(*options)
        check((path, folders, reason) == (ROCI, sorted(OURS), wanted), f'{options}: {path}, {folders}, {reason}')
        check(b'libibverbs' not in variables.get(b'LD_PRELOAD', b''), f'{options}: {variables}')


def folder_of_other_libraries():
    """A folder of LD_LIBRARY_PATH that has one library of the two: they do not mix, neither of the two programs."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(system_library(), os.path.join(folder, 'libibverbs.so.1'))
        path, _, folders, _ = serve(env={'LD_LIBRARY_PATH': folder})
        check((path, folders) == (ROCI, sorted(OURS)), f'{path}, {folders}')
        check(system_library() == os.path.realpath(library_of_doctor(LD_LIBRARY_PATH=folder)), 'the doctor has another library')


def no_device():
    path, _, folders, reason = serve(env=made_kernel(0))
    check((path, folders, reason) == (ROCI, sorted(OURS), NONE), f'{path}, {folders}, {reason}')


def unknown_devices():
    """The kernel does not tell: libibverbs of the system has to look, and then it is roci0 after all."""
    path, variables, folders, reason = serve(env=made_kernel(errno.EPERM))
    check((path, folders, reason) == (SYSTEM, sorted(OURS), NONE), f'{path}, {folders}, {reason}')
    check(b'libibverbs' in variables[b'LD_PRELOAD'], str(variables))


def under_run():
    """Who says `roci run` wants roci0."""
    for env in {}, made_kernel(errno.EPERM):
        path, _, folders, reason = serve(env=env, under_run=True)
        check((path, folders, reason) == (ROCI, sorted(OURS), 'loaded by `roci run`'), f'{path}, {folders}, {reason}')


def other_device():
    """Only the system's library knows the machine's devices, so that is asked."""
    process = here.start(ROCI, 'ping', '--loopback', '--device', 'mlx5_7', plain=True, env=environment())
    check(process.wait(60) == 2, process.report())
    check("there is no RDMA device 'mlx5_7'; available devices: embedded\n" in process.text(), process.report())


def library_of_doctor(argv0=ROCI, **env):
    """The libibverbs.so.1 that `roci doctor` reports."""
    done = subprocess.run([argv0, 'doctor', '--json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          env=dict(os.environ, **environment(), **env))
    check(done.stdout, done.stderr)
    findings = json.loads(done.stdout)['findings']
    check(any(f['id'] == 'port' and f['text'].startswith('roci0: port 1 is active') for f in findings), done.stdout)
    return next(f['text'] for f in findings if f['id'] == 'versions').split(', with ')[1]


def system_library():
    done = subprocess.run(['ldd', SYSTEM], stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_LIBRARY_PATH=''), check=True)
    return os.path.realpath(next(line.split()[2] for line in done.stdout.splitlines() if 'libibverbs.so.1 =>' in line))


def doctor():
    path = library_of_doctor()
    check(os.path.dirname(path) not in OURS and path == system_library(), path)


def moved(second_program):
    """An installation in another place, with the libraries in lib/rocinante."""
    root = tempfile.TemporaryDirectory()
    libraries = os.path.join(root.name, 'lib', 'rocinante')
    os.makedirs(libraries)
    os.mkdir(os.path.join(root.name, 'bin'))
    shutil.copy(ROCI, os.path.join(root.name, 'bin'))
    for name in 'libibverbs.so.1', 'librdmacm.so.1':
        shutil.copy(os.path.join(OURS[name == 'librdmacm.so.1'], name), libraries)
    if second_program:
        shutil.copy(SYSTEM, libraries)
    return root


def preloaded():
    """LD_PRELOAD of the user has the system's libraries: a clear word, not one of the loader. Ours, and another Rocinante's, are welcome."""
    verbs, rdmacm = (os.path.join(os.path.dirname(system_library()), name) for name in ('libibverbs.so.1', 'librdmacm.so.1'))
    pair = f'{verbs}:{rdmacm}'
    if SANITIZER:
        raise Skip('a sanitizer wants to be loaded first')
    for preload, culprit, argvs in ((pair, verbs, (['ping', '--loopback'], ['run', '--', 'true'])), (rdmacm, rdmacm, (['ping', '--loopback'],))):
        for argv in argvs:
            process = here.start(ROCI, *argv, plain=True, env={**environment(), 'LD_PRELOAD': preload})
            check(process.wait(60) != 0, process.report())
            check(f'LD_PRELOAD has {culprit}, with which roci0 cannot work; unset LD_PRELOAD' in process.text(), process.report())
    with moved(second_program=True) as root:
        ours = [os.path.join(folder, name) for folder, name in zip(OURS, ('libibverbs.so.1', 'librdmacm.so.1'))]
        others = [os.path.join(root, 'lib', 'rocinante', os.path.basename(path)) for path in ours]
        for libraries in ours, others:
            process = here.start(ROCI, 'ping', '--loopback', '--count', '1', '--op', 'send', plain=True,
                                 env={**environment(), 'LD_PRELOAD': ':'.join(libraries)})
            check(process.wait(60) == 0, process.report())


def other_place():
    with moved(second_program=True) as root:
        roci = os.path.join(root, 'bin', 'roci')
        check(library_of_doctor(roci) == system_library(), 'the doctor has another library')
        process = here.start(roci, 'ping', '--loopback', '--count', '1', '--op', 'send', plain=True, env=environment())
        check(process.wait(60) == 0 and f'roci0 (embedded: {NONE})' in process.text(), process.report())


def second_program_missing():
    with moved(second_program=False) as root:
        roci = os.path.join(root, 'bin', 'roci')
        for argv in (['doctor'], ['setup', 'rxe', 'lo'], ['ping', '--loopback', '--device', 'mlx5_7']):
            process = here.start(roci, *argv, plain=True, env=environment())
            check(process.wait(60) == 2 and "cannot load the system's RDMA libraries" in process.text() and
                  'lib/rocinante/roci: No such file or directory; install Rocinante again' in process.text(), process.report())


CASES = [
    ('roci0 at once', once),
    ('a folder with a libibverbs.so.1 of others', folder_of_other_libraries),
    ('a kernel with RDMA and no device', no_device),
    ('a kernel that does not tell its devices', unknown_devices),
    ('under `roci run`', under_run),
    ('a device that is not there', other_device),
    ('the doctor', doctor),
    ('libraries that the user preloads', preloaded),
    ('an installation in another place', other_place),
    ('an installation without its second program', second_program_missing),
]

if __name__ == '__main__':
    isolate()
    here = Host('loopback')
    sys.exit(tap(CASES))
