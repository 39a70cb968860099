# SPDX-License-Identifier: BSD-2-Clause
"""The command line of `roci send`, `roci recv` and `roci demo`: tickets, targets, messages and exit statuses."""
import base64
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

from harness import ROCI, SLOW, Failure, Host, check, isolate, need, program, tap, wait_until
from mover import (INTERRUPTED, LOCAL_IO, LOST, MIB, NO_CONNECT, NO_DEVICE, NO_TRUST, OK, PARTLY, REMOTE_IO, USAGE, Receiver,
                   check_same, environment, events, scratch, write)

os.environ['ROCI_STATS'] = ''  # these tests compare the output
here = Host('here')
workshop = scratch()
base = workshop.name


def roci(*argv, status=OK, env=None, stdin=b'', stdout=subprocess.PIPE, prefix=(), **kw):
    """Runs roci without a terminal until it ends. Returns its standard output and standard error."""
    done = subprocess.run([*prefix, ROCI, *argv], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60 * SLOW,
                          env=dict(os.environ, **environment(), **(env or {})), start_new_session=True, **kw)
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


def on_terminal(*argv, answers=(), env=None):
    """Runs a program on a new terminal of 100 columns. `answers` has pairs: the text to wait for, the text to type then.
    Returns the exit status and all that the terminal showed."""
    pid, terminal = pty.fork()
    if not pid:
        subprocess.run(['stty', 'cols', '100'])
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


# Tickets and targets

def ticket_file():
    into, path = folder('ticket-file'), file('a file')
    with Recv('--dir', into, '--once') as recv:
        check(os.stat(recv.ticket).st_mode & 0o777 == 0o600, 'others can read the ticket')
        _, said = roci('send', path, '@' + recv.ticket)
        says(r'offering 1 entry, 8 B, device roci0 \(embedded: ', said)
        says(r'connected to 127\.0\.0\.1 via roci0 over udp, mode write, 4 QPs\n', said)
        says(r'sent 1 entry, 8 B in ', said)
        said = recv.ends()
        says(r'listening on port \d+, device roci0 \(embedded', said)
        says(r'received 1 entry, 8 B in ', said)
        check(not os.path.exists(recv.ticket), 'the ticket is still there')
    check(os.listdir(into) == ['a file'], os.listdir(into))


def other_ways():
    """--ticket-file and --ticket-fd with a host; the port comes from the ticket. --keep-ticket. A folder with a slash."""
    into, source = folder('other-ways'), folder('other-source')
    write(os.path.join(source, 'one'), b'1')
    with Recv('--dir', into, '--keep-ticket', '--cqs', '2') as recv:
        roci('send', '--ticket-file', recv.ticket, '--cqs', '4', source, '127.0.0.1')
        _, said = roci('send', '--ticket-file', recv.ticket, '--cqs', '5', source, '127.0.0.1', status=USAGE)
        says('--cqs is larger than --qps', said)
        with open(recv.ticket) as ticket:
            roci('send', '--ticket-fd', str(ticket.fileno()), source + '/', '127.0.0.1', pass_fds=[ticket.fileno()])
        os.chmod(recv.ticket, 0o644)
        _, said = roci('send', '--ticket-file', recv.ticket, source, '127.0.0.1')
        says('other users can read the ticket', said)
        check(sorted(os.listdir(into)) == ['one', 'other-source'], os.listdir(into))
        recv.process.popen.send_signal(signal.SIGTERM)
        recv.ends()


def prompt():
    into, path = folder('prompt'), file('asked')
    with Recv('--dir', into, '--once') as recv:
        with open(recv.ticket) as f:
            ticket = f.read().strip()
        status, shown = on_terminal(ROCI, 'send', path, '127.0.0.1', answers=[(b'ticket (', ticket.encode() + b'\n')])
        check(status == OK, shown)
        check(ticket not in shown, 'the ticket was echoed')
        recv.ends()
    check(os.listdir(into) == ['asked'], os.listdir(into))
    status, shown = on_terminal(ROCI, 'send', path, '127.0.0.1', answers=[(b'ticket (', b'\x03')])
    check(status == -signal.SIGINT, f'exit status {status} after ^C at the prompt')


def shown_ticket():
    """Without --ticket-file the ticket is printed to standard error. When it is used up, a second one is printed."""
    into, path = folder('shown'), file('shown file')
    process = here.start(ROCI, 'recv', '--port', '0', '--dir', into, plain=True, env=environment())
    try:
        tickets = wait_until('a ticket', lambda: re.findall(r'^  (roci1:\S+)', process.text(), re.MULTILINE))
        with open(os.path.join(base, 'copied'), 'w', opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(tickets[0] + '\n')
        roci('send', path, '@' + f.name)
        second = wait_until('another ticket', lambda: re.findall(r'^  (roci1:\S+)', process.text(), re.MULTILINE)[1:])
        check(second != tickets, 'the same ticket again')
        _, said = roci('send', path, '@' + f.name, status=NO_TRUST)
        says('the other side does not know the ticket', said)
        process.popen.send_signal(signal.SIGINT)
        check(process.wait(20) == OK, process.report())
    finally:
        process.end()


def refused():
    """A transfer whose only file is refused counts as a transfer: it uses the ticket up."""
    into, path = folder('refused'), file('in the way')
    os.makedirs(os.path.join(into, 'in the way', 'full'))
    with Receiver(here, into) as recv:
        first = os.path.join(base, 'first ticket')
        shutil.copy(recv.ticket_file, first)
        recv.take(here, path, status=REMOTE_IO)
        wait_until('its end', lambda: events(recv.process, 'ended'))
        roci('send', path, '@' + first, status=NO_TRUST)
        recv.take(here, file('another'))


def ticket_on_the_command_line():
    path, ticket = file('exposed'), 'roci1:10.0.0.7:22222:0123456789ABCDEFGHJKMNPQRSTV'
    for argv in ((path, ticket), (path, '127.0.0.1', '--ticket-file=' + ticket), (path, '@' + ticket)):
        out, said = roci('send', *argv, status=USAGE)
        says('Do not use this ticket again', said)
        check(ticket not in out + said, 'the ticket is printed again')
    roci('recv', ticket, status=USAGE)


def wrong_ticket():
    into, path = folder('wrong'), file('trusted')
    with Recv('--dir', into) as recv, open(recv.ticket) as f:
        port = f.read().split(':')[2]
        other = os.path.join(base, 'other ticket')
        write(other, b'roci1:127.0.0.1:1:0123456789ABCDEFGHJKMNPQRSTV\n', 0o600)
        _, said = roci('send', '-t', other, path, f'127.0.0.1:{port}', status=USAGE)
        says('is not valid', said)
        with Receiver(here, into) as somebody:
            os.replace(somebody.ticket_file, other)
        _, said = roci('send', '-t', other, path, f'127.0.0.1:{port}', status=NO_TRUST)
        says('use the one that `roci recv` shows now', said)
        check(os.listdir(into) == [], os.listdir(into))
        roci('send', path, '@' + recv.ticket)  # it continues to serve others
        says('a connection was not let in', recv.process.text())


def opened():
    into, path = folder('open'), file('for everybody')
    process = here.start(ROCI, 'recv', '--open', '--port', '0', '--once', '--dir', into, plain=True, env=environment())
    try:
        port = wait_until('the port', lambda: re.search(r'listening on port (\d+)', process.text()))[1]
        says(f'--open: anyone who can reach port {port} can write files here\n', process.text())
        _, said = roci('send', path, f'127.0.0.1:{port}', status=USAGE)
        says('no terminal to ask on', said)
        _, said = roci('send', '--open', path, f'127.0.0.1:{port}')
        says('--open: any program that answers', said)
        check(process.wait(20) == OK, process.report())
    finally:
        process.end()


def ipv6():
    into, path = folder('ipv6'), file('six')
    process = here.start(ROCI, 'recv', '--open', '--port', '0', '--bind', '::1', '--dir', into, '--json', plain=True, env=environment())
    try:
        port = wait_until('the port', lambda: events(process, 'listening'))[0]['port']
        roci('send', '--open', path, f'[::1]:{port}')
        _, said = roci('send', '--open', path, f'[::1:{port}', status=USAGE)
        says('the closing bracket is missing', said)
        _, said = roci('send', '--open', path, '[::1]:99999', status=USAGE)
        says('must be a number from 1 to 65535', said)
    finally:
        process.end()
    check(os.listdir(into) == ['six'], os.listdir(into))


def nobody():
    path = file('nobody')
    _, said = roci('send', '--open', path, '127.0.0.1:9', status=NO_CONNECT)
    says('nobody listens at 127.0.0.1 port 9; is `roci recv` running there', said)
    roci('send', '--open', path, 'no.such.host.invalid', status=NO_CONNECT)
    _, said = roci('send', '--open', path, './here', status=USAGE)
    says('this is a path', said)


def several_addresses():
    """The sender tries all addresses of a host, or those of the family of --bind. An address that does not answer within
    --timeout, or that has no route, does not keep it from trying the next one."""
    into, path = folder('addresses'), file('second address')
    hosts = os.path.join(base, 'hosts')
    write(hosts, b'::1 both.test\n127.0.0.1 both.test\n')
    # only roci may load the thread sanitizer's runtime: the shell would crash
    with_hosts = ('env', '-u', 'LD_PRELOAD', 'unshare', '-m', 'sh', '-c', f'mount --bind {hosts} /etc/hosts && exec "$@"', 'sh',
                  'env', *(f'{name}={value}' for name, value in environment().items()))
    with Receiver(here, into, '--open') as recv:
        roci('send', '--open', path, f'both.test:{recv.port}', prefix=with_hosts)
        check(os.listdir(into) == ['second address'], os.listdir(into))
        roci('send', '--open', '--bind', '127.0.0.1', path, f'both.test:{recv.port}', prefix=with_hosts)
        _, said = roci('send', '--open', '--bind', '::1', path, f'both.test:{recv.port}', prefix=with_hosts, status=NO_CONNECT)
        says('nobody listens at both.test', said)
        _, said = roci('send', '--open', '--bind', '::1', path, f'127.0.0.1:{recv.port}', status=NO_CONNECT)
        says('127.0.0.1 has no IPv6 address, which --bind ::1 needs', said)
        for command in ('link add swallows type veth peer name nowhere', 'link set swallows arp off up', 'link set nowhere up',
                        'address add 2001:db8::1/64 dev swallows nodad'):
            here.run('ip', *command.split())
        try:
            write(hosts, b'2001:db8::2 both.test\n127.0.0.1 both.test\n')
            os.unlink(os.path.join(into, 'second address'))
            roci('send', '--open', '--timeout', '5s', path, f'both.test:{recv.port}', prefix=with_hosts)
            check(os.listdir(into) == ['second address'], os.listdir(into))
            _, said = roci('send', '--open', '--timeout', '1s', path, '[2001:db8::2]:9', status=NO_CONNECT)
            says('no answer from 2001:db8::2 port 9; is `roci recv` running there, on a device of the same kind, ', said)
        finally:
            here.run('ip', 'link', 'delete', 'swallows')
    write(hosts, b'127.0.0.1 both.test\n2001:db8::2 both.test\n')
    _, said = roci('send', '--open', path, 'both.test:9', prefix=with_hosts, status=NO_CONNECT)
    says('nobody listens at both.test port 9', said)


def missing():
    path = file('there')
    _, said = roci('send', '--open', os.path.join(base, 'not there'), '127.0.0.1', status=LOCAL_IO)
    says('not there: No such file', said)
    roci('send', path, '@' + os.path.join(base, 'no ticket'), status=LOCAL_IO)
    _, said = roci('recv', '--dir', path, '--port', '0', status=LOCAL_IO)
    says('Not a directory', said)
    _, said = roci('recv', '--ticket-file', os.path.join(base, 'not/there'), '--dir', base, '--port', '0', status=LOCAL_IO)
    says('cannot write the ticket', said)


UNPRIVILEGED = ('setpriv', '--bounding-set=-dac_override,-dac_read_search', '--')  # root, but file modes apply


def unreadable():
    """A FIFO is left out with a warning. An entry that cannot be read makes the exit status PARTLY."""
    into, source = folder('unreadable'), folder('unreadable-source')
    write(os.path.join(source, 'one'), b'1')
    os.mkfifo(os.path.join(source, 'fifo'))
    with Recv('--dir', into, '--keep-ticket') as recv:
        _, said = roci('send', source, '@' + recv.ticket)
        says(r'/fifo: a FIFO; left out\n', said)
        os.makedirs(os.path.join(source, 'l' * 255, 'm' * 255, 'locked'))
        os.chmod(os.path.join(source, 'l' * 255, 'm' * 255, 'locked'), 0)
        _, said = roci('send', source, '@' + recv.ticket, status=PARTLY, prefix=UNPRIVILEGED)
        says(r'/locked: Permission denied; left out\n', said)
        says('1 of 5 entries could not be sent; the others arrived', said)
        out, _ = roci('send', '--json', source, '@' + recv.ticket, status=PARTLY, prefix=UNPRIVILEGED)
        ended = json_events(out)[-1]
        check(ended['entries_failed'] == 1 and ended['entries_done'] == 4 and ended['entries_total'] == 5, ended)
        _, said = roci('send', os.path.join(source, 'l' * 255, 'm' * 255) + '/', '@' + recv.ticket, status=LOCAL_IO, prefix=UNPRIVILEGED)
        says('the one entry could not be sent', said)
    check(os.listdir(os.path.join(into, 'unreadable-source', 'l' * 255, 'm' * 255)) == [], 'locked')


def few_descriptors():
    """More files than the limit of open files, with a low soft limit and with a low hard limit."""
    into, source = folder('many'), folder('many-source')
    for number in range(1500):
        write(os.path.join(source, str(number)), b'.')
    with Recv('--dir', into, '--keep-ticket') as recv:
        for limit in ('256:', '100'):
            roci('send', source, '@' + recv.ticket, prefix=('prlimit', '--nofile=' + limit, '--'))
            check_same(source, os.path.join(into, 'many-source'))
            shutil.rmtree(os.path.join(into, 'many-source'))


def slow_disk(gate, *variables):
    libraries = [*environment().get('LD_PRELOAD', '').split(), program('slow_disk.so')]
    return ['env', 'SLOW_DISK=' + gate, 'LD_PRELOAD=' + ' '.join(libraries), *variables]


def killed_at_the_end():
    """A sender is killed after everything has arrived, but before it knows. It comes back with its ticket, and succeeds."""
    into, source, gate = folder('at-the-end'), folder('at-the-end-source'), os.path.join(base, 'folders gate')
    write(os.path.join(source, 'a'), b'small')
    write(gate, b'')
    with Receiver(here, into, argv_prefix=slow_disk(gate, 'SLOW_FOLDERS=1')) as recv:
        killed = recv.send(here, source)
        wait_until('the folders to be synced', lambda: os.path.exists(gate + '.waiting'))
        killed.end()
        os.unlink(gate)
        recv.take(here, source)
        says('unchanged', str(events(recv.process, 'entry_done')))
    check_same(source, os.path.join(into, 'at-the-end-source'))


def comes_again():
    """A sender is killed, and comes back while its data is still being written to the disk. It waits for that, longer than
    its own --timeout. If it takes too long, it fails with this reason, and the ticket stays valid."""
    into, source, gate = folder('comes-again'), folder('comes-again-source'), os.path.join(base, 'gate')
    for name in ('a', 'b'):
        write(os.path.join(source, name), b'small')
    write(os.path.join(source, 'c'), os.urandom(4 * MIB))
    write(gate, b'')
    with Receiver(here, into, argv_prefix=slow_disk(gate)) as recv:
        killed = recv.send(here, '--limit', '1M', source)
        wait_until('something to be synced', lambda: os.path.exists(gate + '.waiting'))
        killed.end()
        ended = recv.take(here, '--timeout', '8s', source, status=LOST)
        says('ending the former transfer with this ticket took too long', ended['text'])
        again = recv.send(here, '--timeout', '8s', source)
        try:
            wait_until('it to connect', lambda: any(e['text'].startswith('CONNECT') for e in events(again, 'step')))
            os.unlink(gate)
            check(again.wait(60) == OK, again.report())
        finally:
            again.end()
    check_same(source, os.path.join(into, 'comes-again-source'))


def without_a_ticket():
    """Many connections that prove no ticket do not keep out a sender that has one."""
    path = file('among others')
    with Receiver(here, folder('without a ticket'), '--max-sessions', '1') as recv:
        crowd = here.start(program('hostile_sender'), here.address, str(recv.port), 'crowd:0', base)
        try:
            wait_until('the oldest to go', lambda: any('others came before' in e['text'] for e in events(recv.process, 'warning')))
            recv.take(here, path)
            check(crowd.wait(60) == 0, crowd.report())
        finally:
            crowd.end()


def no_room_for_a_session():
    """A receiver runs out of file descriptors when a sender connects. It refuses the sender instead of not answering."""
    path, answers = file('no room'), []
    with Receiver(here, folder('no-room'), '--open') as recv:
        pid = recv.process.pid
        least = len(os.listdir(f'/proc/{pid}/fd'))
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        for more in range(8):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (least + more, before[1]))
            sender = recv.send(here, path)
            status = sender.wait(60)
            check(status is not None and 'is `roci recv` running there' not in sender.text(), f'{more}\n{sender.report()}')
            answers.append(status)
        check(answers[0] == NO_CONNECT, answers)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        recv.take(here, path)


def devices():
    path = file('device')
    for argv in (('send', '--open', path, '127.0.0.1'), ('recv', '--dir', base)):
        _, said = roci(*argv, '--device', 'mlx5_77', status=NO_DEVICE)
        says("no RDMA device 'mlx5_77'; available devices: .*embedded", said)
    # A stale variable must not make it believe that it is the second execution of itself.
    roci('send', '--open', path, '127.0.0.1:9', status=NO_DEVICE, env={'ROCI_EMBEDDED_REASON': 'x'})


# Output

def streams():
    content = os.urandom(3 * MIB + 17)
    out = os.path.join(base, 'out')
    ticket = os.path.join(base, 'ticket of a stream')
    with open(out, 'wb') as f:
        receiver = subprocess.Popen([ROCI, 'recv', '-', '--port', '0', '--ticket-file', ticket, '--json'], stdout=f,
                                    stderr=subprocess.PIPE, env=dict(os.environ, **environment()))
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or receiver.poll() is not None)
        roci('send', '--name', 'stream', '-', '@' + ticket, stdin=content)
        reported = [json.loads(line) for line in receiver.communicate(timeout=30 * SLOW)[1].splitlines()]
        check(receiver.returncode == OK and reported[-1]['event'] == 'ended', reported[-1])
    finally:
        receiver.kill()
        receiver.wait()
    with open(out, 'rb') as f:
        check(f.read() == content, 'standard output differs from the input')


def one_at_a_time():
    """With --once and with -, there is only one transfer, with or without a ticket. A second sender is refused and does not
    disturb the first one, even if it has the same ticket."""
    content = os.urandom(2 * MIB)
    other, ticket = file('other', b'in between'), os.path.join(base, 'ticket for one')
    for to_stdout, trust in ((False, ['--open']), (True, ['--open']), (False, ['--ticket-file', ticket]), (True, ['--ticket-file', ticket])):
        into = folder(f'one-at-a-time-{to_stdout}{trust[0]}')
        out = os.path.join(into, 'first')
        with open(out if to_stdout else os.devnull, 'wb') as f:
            receiver = subprocess.Popen([ROCI, 'recv', *trust, '--port', '0', '--bind', '127.0.0.1', '--json',
                                         *(['-'] if to_stdout else ['--once', '--dir', into])], stdout=f if to_stdout else subprocess.PIPE,
                                        stderr=subprocess.PIPE if to_stdout else None, env=dict(os.environ, **environment()))
        lines = receiver.stderr if to_stdout else receiver.stdout
        first = None
        try:
            port = next(e for e in map(json.loads, lines) if e['event'] == 'listening')['port']
            if '--open' not in trust:
                wait_until('the ticket', lambda: os.path.exists(ticket))
            first = subprocess.Popen([ROCI, 'send', *trust, '--quiet', '--name', 'first', '-', f'127.0.0.1:{port}'],
                                     stdin=subprocess.PIPE, env=dict(os.environ, **environment()))
            next(e for e in map(json.loads, lines) if e['event'] == 'connected')
            _, said = roci('send', *trust, other, f'127.0.0.1:{port}', status=NO_CONNECT)
            says('this receiver takes one transfer', said)
            first.communicate(content, timeout=60 * SLOW)
            check(first.returncode == OK, f'exit status {first.returncode}')
            reported = [json.loads(line) for line in lines]
            check(receiver.wait(30) == OK, reported[-1])
            check([e['status'] for e in reported if e['event'] == 'ended'] == ['ok'], reported[-1])
        finally:
            if first:
                first.kill()
                first.wait()
            receiver.kill()
            receiver.wait()
        check(os.listdir(into) == ['first'], os.listdir(into))
        with open(out, 'rb') as f:
            check(f.read() == content, 'it differs')


def json_events(text):
    reported = [json.loads(line) for line in text.splitlines()]
    check(reported[-1]['event'] == 'ended', f'the last event is {reported[-1]}')
    check(all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', event['time']) for event in reported), 'a time has another form')
    return reported


def as_json():
    source = folder('json-source')
    odd = {os.fsdecode(name) for name in (b'plain', 'gr\u00fcn'.encode(), b'\xff not', b'new\nline')}
    for name in odd:
        write(os.path.join(source, name), b'x')
    with Receiver(here, folder('json'), '--once') as recv:
        out, said = roci('send', '--json', source, '@' + recv.ticket_file)
        check(not said, said)
        check(recv.process.wait(20) == OK, recv.process.report())
        received = json_events(recv.process.text())
    reported = json_events(out)
    check(reported[-1]['status'] == 'ok' and reported[-1]['exit_status'] == 0 and reported[-1]['bytes_done'] == 4, reported[-1])
    for events_of in (reported, received):
        names = [e for e in events_of if e['event'] == 'entry_done']
        got = {os.fsdecode(base64.b64decode(e['name_base64'])) if 'name_base64' in e else e['name'] for e in names}
        check(got == {'json-source'} | {f'json-source/{name}' for name in odd}, got)
        check({e['event'] for e in events_of} >= {'connected', 'step', 'progress', 'entry_done', 'ended'}, 'events are missing')
    out, _ = roci('send', '--json', '--open', source, '127.0.0.1:9', status=NO_CONNECT)
    check(json_events(out)[-1]['status'] == 'no_connect', out)
    out, _ = roci('send', '--json', '--device', 'none', '--open', source, '127.0.0.1', status=NO_DEVICE)
    check(json_events(out)[-1]['status'] == 'no_device', out)


def dry_run():
    into, source = folder('dry'), folder('dry-source')
    write(os.path.join(source, 'one'), b'1' * 1000)
    with Recv('--dir', into, '--once') as recv:
        recv_ticket = recv.ticket
        out, said = roci('send', '--dry-run', source, '@' + recv_ticket)
        check(sorted(out.splitlines()) == ['dry-source', 'dry-source/one'], out)
        says('would send 2 entries, 1000 B', said)
        check(os.listdir(into) == [], os.listdir(into))
        recv.ends()


def escaped():
    source = folder('names')
    for name in (b'\x1b[2Jclear', b'\xc2\x9b31mred', '\u202etxt.exe'.encode(), b'\xc3\x28', b'back\\slash', 'sch\u00f6n'.encode()):
        write(os.path.join(os.fsencode(source), name), b'')
    with Recv('--dir', folder('names-there'), '--once', '--verbose') as recv:
        out, _ = roci('send', '--verbose', source, '@' + recv.ticket)
        for text in (out, recv.ends()):
            for name in (r'\x1b[2Jclear', r'\u{9b}31mred', r'\u{202e}txt.exe', r'\xc3(', r'back\\slash', 'sch\u00f6n'):
                check(f'names/{name}\n' in text, f'{name} is not in:\n{text}')
            check(not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]', text), 'a control character was printed')


def bar():
    into, path = folder('bar'), file('large', os.urandom(4 * MIB))
    for number, (env, color) in enumerate((({}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'dumb'}, None))):
        os.utime(path, ns=(number, number))
        with Recv('--dir', into, '--once') as recv:
            status, shown = on_terminal('env', *(f'{name}={value}' for name, value in env.items()), ROCI, 'send', '--limit', '8M', path,
                                        '@' + recv.ticket)
            check(status == OK, shown)
            recv.ends()
        check(bool(re.search(r'\d+%  [\d.]+ [KM]iB of 4\.00 MiB  .*iB/s  .* left  roci0 over udp', shown)) == (color is not None), shown)
        check(bool(re.search(r'\x1b\[\d+m', shown)) == bool(color), f'colour with {env}:\n{shown!r}')
        says(r'sent 1 entry, 4\.00 MiB in ', shown)
    with Recv('--dir', into, '--once', '--quiet') as recv:
        status, shown = on_terminal(ROCI, 'send', '--quiet', path, '@' + recv.ticket)
        check(status == OK and not shown, shown)
        check(not recv.ends(), recv.process.text())


def resumed():
    """A signal interrupts a transfer. The same command resumes it, and prints how much was kept."""
    into, source = folder('resumed'), folder('resumed-source')
    write(os.path.join(source, 'large'), os.urandom(24 * MIB))
    with Receiver(here, into) as recv:
        sender = recv.send(here, '--limit', '4M', source)
        try:
            wait_until('a third', lambda: any(e['bytes_done'] >= 6 * MIB for e in events(sender, 'progress')), 60)
            sender.popen.send_signal(signal.SIGINT)
            check(sender.wait(20) == INTERRUPTED, sender.report())
        finally:
            sender.end()
        check(not os.path.exists(os.path.join(into, 'resumed-source/large')), 'a part has the final name')
        _, said = roci('send', source, '@' + recv.ticket_file)
        kept = re.search(r'kept ([\d.]+) MiB from an earlier attempt', said)
        check(kept and 6 <= float(kept[1]) < 24, said)
        recv.end(signal.SIGTERM)
    check_same(source, os.path.join(into, 'resumed-source'))


def stopped():
    """A signal stops the receiver during a transfer, and while it waits for one."""
    source = file('slow', os.urandom(8 * MIB))
    with Receiver(here, folder('stopped-early'), '--once') as recv:
        sender = recv.send(here, '--limit', '2M', source)
        try:
            wait_until('progress', lambda: any(e['bytes_done'] for e in events(sender, 'progress')), 60)
            recv.end(signal.SIGTERM, INTERRUPTED)
            check(sender.wait(20) == INTERRUPTED, sender.report())
            says('the other side gave up: stopped', events(sender, 'ended')[-1]['text'])
        finally:
            sender.end()
    with Recv('--dir', folder('stopped'), '--once') as recv:
        recv.process.popen.send_signal(signal.SIGTERM)
        recv.ends(INTERRUPTED)
        check(not os.path.exists(recv.ticket), 'the ticket outlives its receiver')


def stopped_without_answer():
    """The other side is silent when a signal stops the sender. The reported reason is the signal."""
    source = file('unheard', os.urandom(8 * MIB))
    with Receiver(here, folder('unheard-there')) as recv:
        sender = recv.send(here, '--limit', '2M', source)
        try:
            wait_until('progress', lambda: any(e['bytes_done'] for e in events(sender, 'progress')), 60)
            recv.process.popen.send_signal(signal.SIGSTOP)
            sender.popen.send_signal(signal.SIGINT)
            check(sender.wait(30) == INTERRUPTED, sender.report())
            says('^stopped; sending again resumes from here$', events(sender, 'ended')[-1]['text'])
        finally:
            recv.process.popen.send_signal(signal.SIGCONT)
            sender.end()


# The demo

def demo(mode):
    out = os.path.join(base, 'demo-' + mode)
    text, said = roci('demo', '--mode', mode, '--out', out)
    check(not said, said)
    steps = {'write': ('GRANT', 'WRITE'), 'read': ('GRANT', 'READ'), 'send': ('SEND',)}[mode]
    for step in ('LISTEN', 'CONNECT', 'HELLO', 'TERMS', 'OFFER', 'VERDICT', *steps, 'FIN', 'ACK', 'END'):
        says(rf'ms  (receiver|sender  )  {step} ', text)
    check(len(text.splitlines()) < 120, text)
    says(r'Verified +all 16777\d+ bytes of the copy are equal', text)
    check(subprocess.run(['cmp', f'{out}/lines.txt', f'{out}/received/lines.txt']).returncode == 0, 'the copy differs')
    check(not os.path.exists(f'{out}/ticket'), 'the ticket is still there')
    return out


def demo_capture():
    need('tshark')
    out = demo('write')

    def count(what):
        done = subprocess.run(['tshark', '-r', f'{out}/roci-demo.pcapng', '-Y', what, '-T', 'fields', '-e', 'frame.number'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(not done.returncode, done.stderr)
        return len(done.stdout.split())
    check(count('_ws.malformed') == 0, 'Wireshark finds packets malformed')
    check(count('infiniband.bth.opcode == 6') >= 16, 'not every chunk was written by RDMA WRITE')
    check(count('infiniband.mad.attributeid == 0x10') > 0, 'there is no ConnectRequest')


def demo_given():
    path = file('given', b'a small file of the user')
    text, _ = roci('demo', path, env={'TMPDIR': base})
    out = re.search(r'rm -r (\S+)', text)[1]
    check(out.startswith(base), out)
    with open(f'{out}/received/given', 'rb') as f:
        check(f.read() == b'a small file of the user', 'the copy differs')
    _, said = roci('demo', '--out', out, path, status=USAGE)
    says('remove it, or choose another --out', said)
    roci('demo', '/dev/null', status=LOCAL_IO)


if __name__ == '__main__':
    isolate()
    sys.exit(tap([
        ('a ticket in a file, and @FILE', ticket_file), ('tickets by descriptor, and for many transfers', other_ways),
        ('the ticket is asked for', prompt), ('the ticket is shown, and is good once', shown_ticket),
        ('a file that is refused', refused), ('a ticket on the command line', ticket_on_the_command_line),
        ('a wrong ticket', wrong_ticket), ('--open', opened), ('IPv6', ipv6),
        ('nobody listens', nobody), ('several addresses', several_addresses), ('files that are not there', missing),
        ('folders that cannot be read', unreadable), ('few descriptors', few_descriptors), ('many connections without a ticket', without_a_ticket),
        ('a killed sender comes back', comes_again),
        ('a sender killed at the end comes back', killed_at_the_end), ('no room for a session', no_room_for_a_session),
        ('devices that are not there', devices), ('standard input to standard output', streams),
        ('one transfer at a time', one_at_a_time), ('--json', as_json), ('--dry-run', dry_run),
        ('names that would control a terminal', escaped), ('the progress bar', bar), ('an interrupted transfer resumes', resumed),
        ('a receiver that is stopped', stopped), ('stopped while the other side is silent', stopped_without_answer),
        ('demo and its capture', demo_capture), ('demo, --mode read', lambda: demo('read') and None),
        ('demo, --mode send', lambda: demo('send') and None), ('demo of a given file', demo_given),
    ]))
