# SPDX-License-Identifier: BSD-2-Clause
"""roci stats: the counters of a process that runs, that was killed, and that never had roci0."""
import json
import os
import re
import signal
import subprocess
import sys

import command_line
from command_line import here, roci, says
from harness import HERE, SANITIZER, check, need, tap, wait_until

FAILED, USAGE = 1, 2
NAME = re.compile(r'[a-z_]+')


def server(env=None):
    """A program that has opened roci0, and waits."""
    need('ibv_rc_pingpong')
    process = here.start('ibv_rc_pingpong', '-g', '0', '-p', '20777', env={**command_line.environment(), **(env or {})})
    wait_until('the program to open roci0', lambda: here.listens(20777) or not process.running())
    check(process.running(), process.report())
    return process


def counters(pid):
    return json.loads(roci('stats', '--json', str(pid))[0])


def running():
    process = server()
    try:
        seen = counters(process.pid)
        check(seen['pid'] == process.pid and seen['running'] and seen['program'] == 'ibv_rc_pingpong', seen)
        check('sent_packets' in seen['counters'] and 'rnr_received' in seen['counters'], seen)
        says(rf'process {process.pid} \(ibv_rc_pingpong\), running; roci0 was opened at \d{{4}}-', roci('stats', str(process.pid))[0])
        says(rf'process {process.pid} ', roci('stats')[0])
        check(process.pid in [json.loads(line)['pid'] for line in roci('stats', '--json')[0].splitlines()], 'it is not listed')
    finally:
        process.end()


def killed():
    process = server()
    before = counters(process.pid)['counters']
    process.end(signal.SIGKILL)
    seen = counters(process.pid)
    check(not seen['running'], seen)
    check(all(seen['counters'][name] >= value for name, value in before.items()), f'{before}\n{seen}')
    says('has ended', roci('stats', str(process.pid))[0])


def own_tool():
    """roci's own tools have names there, and those that run come first."""
    killed_first = server()
    killed_first.end(signal.SIGKILL)
    process = here.start(command_line.ROCI, 'serve', '--device', 'embedded', '--port', '20790', plain=True, env=command_line.environment())
    try:
        wait_until('roci serve', lambda: 'listening' in process.text() or not process.running())
        check(process.running(), process.report())
        says(rf'process {process.pid} \(roci serve\), running', roci('stats')[0])
        alive = [json.loads(line)['running'] for line in roci('stats', '--json')[0].splitlines()]
        check(False in alive and alive == sorted(alive, reverse=True), alive)
    finally:
        process.end()


def ended():
    """A process that ends by itself leaves nothing."""
    process = here.start('ibv_devinfo', env=command_line.environment())
    check(process.wait(60) == 0, process.report())
    says('there is no process', roci('stats', str(process.pid), status=FAILED)[1])


def watch():
    process = server()
    watcher = subprocess.Popen([command_line.ROCI, 'stats', '--watch', '--json', '--interval', '100ms', str(process.pid)],
                               stdout=subprocess.PIPE, text=True, env=dict(os.environ, **command_line.environment()))
    try:
        first, second = (json.loads(watcher.stdout.readline()) for _ in range(2))
        check(first['pid'] == second['pid'] == process.pid and second['running'], f'{first}\n{second}')
        process.end(signal.SIGKILL)
        last = [json.loads(line) for line in watcher.stdout][-1]
        check(not last['running'], last)
        check(watcher.wait(60) == 0, 'the watch failed')
    finally:
        process.end()
        watcher.kill()
        watcher.wait()


def own_rundir():
    """A process with a run directory of its own is found by its environment."""
    if SANITIZER:
        return None
    path = command_line.folder('run')
    os.chmod(path, 0o700)
    process = server({'ROCI_RUNDIR': path})
    try:
        check(counters(process.pid)['running'], 'it is not found')
    finally:
        process.end()


def mistakes():
    says(r'process \d+ has not opened roci0; `roci run', roci('stats', str(os.getpid()), status=FAILED)[1])
    says('there is no process 99999999', roci('stats', '99999999', status=FAILED)[1])
    says("'x' is not a process id", roci('stats', 'x', status=USAGE)[1])
    says("'-5' is not a process id", roci('stats', '--', '-5', status=USAGE)[1])
    says('--watch needs a PID', roci('stats', '--watch', status=USAGE)[1])
    says('give one PID', roci('stats', '1', '2', status=USAGE)[1])


def manual():
    """The manual page names every counter, and every counter has a name in the same style."""
    process = server()
    try:
        seen = counters(process.pid)['counters']
    finally:
        process.end()
    with open(os.path.join(HERE, '..', '..', 'man', 'roci-stats.1.scd')) as page:
        text = page.read()
    check(all(NAME.fullmatch(name) for name in seen), seen)
    missing = [name for name in seen if f'*{name}*' not in text]
    check(not missing, f'roci-stats(1) does not name {missing}')


if __name__ == '__main__':
    sys.exit(tap([('a process that runs', running), ('one that was killed', killed), ("roci's own", own_tool), ('one that has ended', ended), ('--watch', watch),
                  ('one with a run directory of its own', own_rundir), ('mistakes', mistakes), ('the manual page', manual)]))
