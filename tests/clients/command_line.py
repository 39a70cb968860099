# SPDX-License-Identifier: BSD-2-Clause
"""The common parts of test_send.py and test_output.py: runs roci as people do, with or without a terminal. Importing it
isolates the test (harness.py)."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from harness import ROCI, SLOW, Failure, Host, check, isolate, wait_until
from mover import OK, environment, scratch, write

os.environ['ROCI_STATS'] = ''  # these tests compare the output
isolate()
here = Host('here')
workshop = scratch()
base = workshop.name


def after(*prefix):
    """The start of a command in which programs come before roci: a sanitizer's library is for roci, not for these."""
    return [*prefix, 'env', *(f'{name}={value}' for name, value in environment().items())] if prefix else []


def roci(*argv, status=OK, env=None, stdin=b'', stdout=subprocess.PIPE, prefix=(), **kw):
    """Runs roci without a terminal until it ends. Returns its standard output and standard error."""
    done = subprocess.run([*after(*prefix), ROCI, *argv], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60 * SLOW,
                          env=dict(os.environ, **({} if prefix else environment()), **(env or {})), start_new_session=True, **kw)
    out, err = (done.stdout or b'').decode(errors='replace'), done.stderr.decode(errors='replace')
    check(done.returncode == status, f'roci {" ".join(argv)}: exit status {done.returncode}, not {status}\n{out}{err}')
    return out, err


class Recv:
    """A `roci recv` with these options, and with messages for people. Its ticket is in a file."""

    def __init__(self, *options):
        self.ticket = os.path.join(base, 'ticket')
        self.process = here.start(ROCI, 'recv', '--port', '0', '--bind', '127.0.0.1', '--ticket-file', self.ticket, *options, plain=True,
                                  env=environment())
        wait_until('the ticket', lambda: os.path.exists(self.ticket) or not self.process.running())
        check(self.process.running(), self.process.report())

    def ends(self, status=OK):
        got = self.process.wait(30)
        check(got == status, f'exit status {got}, not {status}\n{self.process.report()}')
        return self.process.text()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.end()
        if os.path.exists(self.ticket):
            os.unlink(self.ticket)


def folder(name):
    path = os.path.join(base, name)
    os.makedirs(path)
    return path


def file(name, content=b'content\n'):
    path = os.path.join(base, name)
    write(path, content)
    return path


def says(pattern, text):
    check(re.search(pattern, text), f'{pattern!r} is not in:\n{text}')


def on_terminal(*argv, answers=(), env=None, columns=100):
    """Runs a program on a new terminal. `answers` has pairs: the text to wait for, the text to type then.
    Returns the exit status and all that the terminal showed."""
    pid, terminal = pty.fork()
    if not pid:
        subprocess.run(['stty', 'cols', str(columns)])
        os.execvpe(argv[0], argv, dict(os.environ, **environment(), TERM='xterm', **(env or {})))
    shown, answers, end = b'', list(answers), time.monotonic() + 60 * SLOW
    try:
        while True:
            if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                raise Failure(f'{" ".join(argv)} did not end:\n{shown.decode(errors="replace")}')
            try:
                got = os.read(terminal, 65536)
            except OSError:  # Linux reports the end of the program in this way
                break
            if not got:
                break
            shown += got
            if answers and answers[0][0] in shown:
                os.write(terminal, answers.pop(0)[1])
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
    return status, shown.decode(errors='replace')


def json_events(text):
    reported = [json.loads(line) for line in text.splitlines()]
    check(reported[-1]['event'] == 'ended', f'the last event is {reported[-1]}')
    check(all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', event['time']) for event in reported), 'a time has another form')
    return reported
