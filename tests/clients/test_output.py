# SPDX-License-Identifier: BSD-2-Clause
"""The output of `roci send`, `roci recv` and `roci demo`: streams, JSON, names, the progress bar, summaries, the demo's story."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from command_line import Recv, after, base, file, folder, here, json_events, on_terminal, roci, says
from harness import HERE, ROCI, SANITIZER, SLOW, Skip, check, need, tap, wait_until
from mover import (INTERRUPTED, LOCAL_IO, LOST, MIB, NO_CONNECT, NO_DEVICE, OK, REMOTE_IO, USAGE, Receiver, check_same, environment, events,
                   write)


def to_standard_output(content, *what, stdin=b''):
    """`roci recv -` gets what `roci send` takes these arguments for. Both say the same of it."""
    out = os.path.join(base, 'out')
    ticket = os.path.join(base, 'ticket of a stream')
    with open(out, 'wb') as f:
        receiver = subprocess.Popen([ROCI, 'recv', '-', '--port', '0', '--ticket-file', ticket, '--json'], stdout=f,
                                    stderr=subprocess.PIPE, env=dict(os.environ, **environment()))
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or receiver.poll() is not None)
        sent = json_events(roci('send', '--json', *what, '@' + ticket, stdin=stdin)[0])
        reported = [json.loads(line) for line in receiver.communicate(timeout=30 * SLOW)[1].splitlines()]
        check(receiver.returncode == OK and reported[-1]['event'] == 'ended', reported[-1])
        for ended in (sent[-1], reported[-1]):
            check(ended['bytes_done'] == len(content) and ended['entries_done'] == 1, ended)
    finally:
        receiver.kill()
        receiver.wait()
    with open(out, 'rb') as f:
        check(f.read() == content, 'standard output differs from the input')


def streams():
    content = os.urandom(3 * MIB + 17)
    to_standard_output(content, '--name', 'stream', '-', stdin=content)
    sparse = file('sparse', content)
    os.truncate(sparse, 9 * MIB)
    with open(sparse, 'ab') as f:
        f.write(content)
    to_standard_output(content + bytes(9 * MIB - len(content)) + content, sparse)


def closed_streams():
    """A standard descriptor that is closed does not become another file."""
    with Recv('--dir', folder('closed'), '--once') as recv:
        _, said = roci('send', '-', '@' + recv.ticket, status=LOCAL_IO, prefix=('sh', '-c', 'exec "$@" <&-', 'sh'))
        says('stdin: it cannot be read: Bad file descriptor', said)
    ticket = os.path.join(base, 'ticket of a closed stream')
    recv = here.start(*after('sh', '-c', 'exec "$@" >&-', 'sh'), ROCI, 'recv', '-', '--port', '0', '--bind', '127.0.0.1', '--ticket-file', ticket,
                      plain=True)
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or not recv.running())
        check(os.readlink(f'/proc/{recv.pid}/fd/1') == '/dev/null', os.readlink(f'/proc/{recv.pid}/fd/1'))
        roci('send', file('for nobody'), '@' + ticket, status=REMOTE_IO)
        check(recv.wait(30) == LOCAL_IO, recv.report())
        says('writing standard output: Bad file descriptor', recv.text())
    finally:
        recv.end()
    _, said = roci('run', '--capture', '-', '--', 'true', status=USAGE, prefix=('sh', '-c', 'exec "$@" >&-', 'sh'))
    says('--capture -: Bad file descriptor', said)


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
            says('start another `roci recv`' if '--open' in trust else 'another sender with this ticket is at it', said)
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
        wait_until('the receiver to say so', lambda: 'would receive 2 entries' in recv.process.text())
        check('received' not in recv.process.text(), recv.process.text())
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
        check(bool(re.search(r'\d+%  [\d.]+ [KM]iB of 4\.00 MiB  .*iB/s  .* left  rtt [\d.]+ ms', shown)) == (color is not None), shown)
        check(bool(re.search(r'\x1b\[\d+m', shown)) == bool(color), f'colour with {env}:\n{shown!r}')
        says(r'sent 1 entry, 4\.00 MiB in ', shown)
    with Recv('--dir', into, '--once', '--quiet') as recv:
        status, shown = on_terminal(ROCI, 'send', '--quiet', path, '@' + recv.ticket)
        check(status == OK and not shown, shown)
        check(not recv.ends(), recv.process.text())


def colours():
    """They are for terminals that have them, unless NO_COLOR is set and not empty."""
    capture = os.path.join(HERE, '..', 'captures', 'rxe-6.1-rping2.pcap')
    for command in (['ladder', '--text', capture], ['demo', file('coloured', b'x')]):
        for env, color in (({}, True), ({'NO_COLOR': ''}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'dumb'}, False)):
            status, shown = on_terminal('env', f'TMPDIR={base}', *(f'{name}={value}' for name, value in env.items()), ROCI, *command)
            check(status == OK and bool(re.search(r'\x1b\[\d+m', shown)) == color, f'{command} with {env}:\n{shown!r}')
    status, shown = on_terminal(ROCI, 'ladder', '--text', capture, columns=30)
    check(status == OK and max(len(line) for line in re.sub('\x1b[^m]*m', '', shown).splitlines() if '|' in line) <= 60, shown)


def characters():
    """A locale without UTF-8 gets ASCII, at the same places."""
    capture = os.path.join(base, 'provoked.pcapng')
    roci('explain', '--provoke', 'REM_ACCESS_ERR', env={'ROCI_CAPTURE': capture})
    rich, plain = (roci('ladder', '--text', capture, env={'LC_ALL': locale})[0] for locale in ('C.UTF-8', 'C'))
    check(plain.isascii() and not rich.isascii() and 'QP \u2192 ERR' in rich and 'QP > ERR' in plain, plain)
    check([len(line) for line in plain.splitlines()] == [len(line) for line in rich.splitlines()], plain)


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


def cut_off():
    """Standard input and output cannot be continued, and nothing says so."""
    def begun(ticket, *options):
        sender = subprocess.Popen([ROCI, 'send', '--retry-for', '0', *options, '-', '@' + ticket], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, **environment()))
        sender.stdin.write(bytes(3 * MIB))  # more than a pipe takes: it has begun to read
        return sender

    def ends(sender, status):
        said = sender.communicate(timeout=60 * SLOW)[1].decode()
        check(sender.returncode == status and 'resume' not in said, f'exit status {sender.returncode}\n{said}')
        return said

    into = folder('cut-off')
    with Recv('--dir', into) as recv:
        sender = begun(recv.ticket)
        sender.send_signal(signal.SIGINT)
        says('roci send: stopped', ends(sender, INTERRUPTED))
        sender = begun(recv.ticket)
        recv.process.end()
        says('nobody can read standard input again', ends(sender, LOST))
    with Recv('--timeout', '3s', '-') as recv:
        sender = begun(recv.ticket)
        sender.kill()
        said = recv.ends(LOST)
        says('nobody can continue what went to standard output', said)
        check('resumes' not in said, said)
        sender.communicate()
    plain = file('cut-off-plain', os.urandom(8 * MIB))
    for how, status, text in (lambda recv, sender: recv.process.popen.kill(), LOST, "nobody can continue what went to the receiver's standard output"), \
                             (lambda recv, sender: sender.send_signal(signal.SIGINT), INTERRUPTED, 'roci send: stopped'):
        with Recv('--timeout', '3s', '-') as recv:
            sender = subprocess.Popen([ROCI, 'send', '--timeout', '3s', '--limit', '1M', plain, '@' + recv.ticket], stderr=subprocess.PIPE,
                                      env=dict(os.environ, **environment()))
            wait_until('content', lambda: os.fstat(recv.process.out.fileno()).st_size > MIB)
            how(recv, sender)
            says(text, ends(sender, status))

    def receiver(end, *options):
        """The receiver of a stream into a folder: what has arrived of it is dropped, and it says so."""
        with Recv('--dir', into, '--timeout', '3s', *options) as recv:
            sender = begun(recv.ticket)
            wait_until('a file for it', lambda: os.listdir(into) or not recv.process.running())
            end(recv, sender)
            said = recv.ends(OK)
            check('resume' not in said, said)
            sender.kill()
            sender.communicate()
        check(not os.listdir(into), os.listdir(into))
        return said

    def stop_receiver(recv, sender):
        recv.process.popen.send_signal(signal.SIGTERM)
        says('roci send: the other side gave up: stopped', ends(sender, INTERRUPTED))

    def kill_sender(recv, sender):
        sender.kill()
        wait_until('the end', lambda: "the sender's standard input" in recv.process.text() or not recv.process.running())
        recv.process.popen.send_signal(signal.SIGTERM)

    for name in os.listdir(into):
        os.unlink(os.path.join(into, name))
    says('roci recv: stopped', receiver(stop_receiver))
    says("nobody can read the sender's standard input again: what has arrived of it is dropped", receiver(kill_sender))


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
    with open(f'{out}/roci-demo.pcapng', 'rb') as f:
        check(b'of a file that crosses from process to process' in f.read(), 'the file is not in the capture')
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
    check(re.search(rf'rm -r {re.escape(out)}$', text, re.M), text)
    own = folder('own')
    precious = os.path.join(own, 'precious')
    write(precious, b'not of the demo')
    text, _ = roci('demo', '--out', own, path)
    proposed = re.search(r'rm -r (.*)', text)[1].split()
    check(proposed == [f'{own}/received', f'{own}/roci-demo.pcapng'], proposed)
    says('remove it, or choose another --out', said)
    roci('demo', '/dev/null', status=LOCAL_IO)


def one_command():
    """scripts/run.sh, the command of the README: from the sources to the first RDMA WRITE, told step by step. Here all is built; so
    ninja only tells whether it knows what it is to build."""
    need('ninja')
    if SANITIZER:
        raise Skip('a sanitizer is no judge of scripts')
    shims, out = folder('shims'), os.path.join(base, 'first-write')
    with open(os.path.join(shims, 'ninja'), 'w', opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
        f.write(f'#!/bin/sh\nexec {shutil.which("ninja")} -n "$@"\n')
    done = subprocess.run([os.path.join(HERE, '..', '..', 'scripts', 'run.sh'), '--out', out], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * SLOW,
                          env=dict(os.environ, **environment(), PATH=f'{shims}:{os.environ["PATH"]}',
                                   BUILD=os.path.dirname(os.path.dirname(ROCI))))
    check(done.returncode == 0, done.stdout)
    steps = re.findall(r'ms  (?:receiver|sender  )  ([A-Z]+) ', done.stdout)
    check(steps[:2] == ['LISTEN', 'CONNECT'] and 'WRITE' in steps and steps[-1] == 'END', done.stdout)
    says(r'call: ibv_post_send\(\) with IBV_WR_RDMA_WRITE', done.stdout)
    says(r'Verified +all \d+ bytes of the copy are equal', done.stdout)


def demo_fails():
    """Where not even loopback is up: the side that failed, the cause, and where there is more to read."""
    _, said = roci('demo', '--out', os.path.join(base, 'demo-fails'), status=NO_DEVICE, prefix=('unshare', '-n'))
    says(r'roci demo: the receiver failed: port 0 of 127\.0\.0\.1: Cannot assign requested address\n'
         r'  the address is not one of this host; `roci explain EADDRNOTAVAIL` tells more\n$', said)


if __name__ == '__main__':
    sys.exit(tap([
        ('standard input to standard output', streams), ('standard descriptors that are closed', closed_streams),
        ('one transfer at a time', one_at_a_time), ('--json', as_json),
        ('--dry-run', dry_run), ('names that would control a terminal', escaped), ('the progress bar', bar), ('colours', colours), ('characters', characters),
        ('an interrupted transfer resumes', resumed), ('a receiver that is stopped', stopped),
        ('stopped while the other side is silent', stopped_without_answer),
        ('what cannot be continued', cut_off), ('demo and its capture', demo_capture),
        ('demo, --mode read', lambda: demo('read') and None), ('demo, --mode send', lambda: demo('send') and None),
        ('demo of a given file', demo_given), ('the one command of the README', one_command), ('demo where it cannot work', demo_fails),
    ]))
