# SPDX-License-Identifier: BSD-2-Clause
"""The command line of `roci send` and `roci recv`: tickets, targets, devices, and transfers that fail."""
import os
import re
import resource
import shutil
import signal
import sys

from command_line import Recv, after, base, file, folder, here, json_events, on_terminal, roci, says
from harness import ROCI, check, program, tap, veth_pair, wait_until
from mover import (FAILED, LOCAL_IO, LOST, MIB, NO_CONNECT, NO_DEVICE, NO_TRUST, OK, PARTLY, REMOTE_IO, USAGE, Receiver, check_same,
                   environment, events, slow_disk, write)


def ticket_file():
    into, path = folder('ticket-file'), file('a file')
    with Recv('--dir', into, '--once') as recv:
        check(os.stat(recv.ticket).st_mode & 0o777 == 0o600, 'others can read the ticket')
        _, said = roci('send', path, '@' + recv.ticket)
        says(r'offering 1 entry, 8 B, device roci0 \(embedded: ', said)
        path = 'udp' if os.environ.get('ROCI_PATH') == 'wire' else 'shared memory'
        says(rf'connected to 127\.0\.0\.1 via roci0 over {path}, mode write, 1 QP\n', said)
        says(r'sent 1 entry, 8 B in ', said)
        said = recv.ends()
        says(r'listening on port \d+, device roci0 \(embedded', said)
        says(r'received 1 entry, 8 B in ', said)
        check(not os.path.exists(recv.ticket), 'the ticket is still there')
    check(os.listdir(into) == ['a file'], os.listdir(into))


def ticket_file_of_another():
    """A ticket takes the place of a ticket or of an empty file, and of nothing else: it is removed at the end."""
    into = folder('ticket-place')
    mine, link, empty, old = (os.path.join(into, name) for name in ('mine', 'link', 'empty', 'old'))
    write(mine, b'my notes')
    os.symlink(mine, link)
    write(empty, b'')
    write(old, b'roci1:127.0.0.1:1:0000\n')
    for path in (mine, link):
        _, said = roci('recv', '--dir', into, '--port', '0', '--once', '--ticket-file', path, status=LOCAL_IO)
        says('what is there is no ticket, and is left as it is', said)
    check(open(mine).read() == 'my notes' and os.path.islink(link), 'a file of the user is gone')
    for path in (empty, old):
        process = here.start(ROCI, 'recv', '--dir', into, '--port', '0', '--ticket-file', path, plain=True, env=environment())
        wait_until('the ticket', lambda: 'the ticket is in' in process.text() or not process.running())
        process.popen.send_signal(signal.SIGTERM)
        check(process.wait(30) == OK and not os.path.exists(path), process.report())


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
        # ^Z does not stop the one process of a terminal. It goes on as it does after a shell's `fg`.
        answers = [(b'ticket (', b'\x1a'), (b'\nticket (', ticket.encode() + b'\n')]
        status, shown = on_terminal(ROCI, 'send', path, '127.0.0.1', answers=answers)
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
        wait_until('what to run', lambda: '--open PATH' in process.text() or not process.running())
        says(rf'on (this|the other) machine, run:\n  roci send --open PATH\.\.\. \S+:{port}\n', process.text())
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
        _, said = roci('send', '--open', path, '[fe80::1]:4000', status=USAGE)
        says('a link-local address needs the interface that leads there, as in fe80::1%eth0', said)
        for command in (('send', '--open', path, '[fe80::1%nowhere]:4000'), ('send', '--open', '--bind', 'fe80::1%nowhere', path, '::1'),
                        ('recv', '--bind', 'fe80::1%nowhere'), ('serve', '--bind', 'fe80::1%nowhere')):
            says('this machine has no interface of that name', roci(*command, status=USAGE)[1])
        says('an interface must follow the %', roci('send', '--open', path, '[fe80::1%]:4000', status=USAGE)[1])
        says('an interface must follow the %', roci('recv', '--bind', 'fe80::1%', status=USAGE)[1])
        for command in ('recv', 'serve'):
            says('--bind fe80::1: a link-local address needs the interface', roci(command, '--bind', 'fe80::1', status=USAGE)[1])
        says("unexpected argument 'x'", roci('recv', '-', 'x', status=USAGE)[1])
        _, said = roci('send', '--open', path, '[::1]:99999', status=USAGE)
        says('must be a number from 1 to 65535', said)
    finally:
        process.end()
    check(os.listdir(into) == ['six'], os.listdir(into))


def link_local():
    """A link-local address in a ticket has no interface: the sender asks for its own. Without --bind a ticket has one only where the host
    has no other address, whatever the default route leaves from."""
    near, far = veth_pair(9000)
    try:
        shown = near.run('ip', '-6', '-o', 'addr', 'show', 'dev', near.link, 'scope', 'link')
        address = shown.split('inet6 ')[1].split('/')[0]
        bound_link_local(near, far, address)
        near.run('ip', '-4', 'addr', 'flush', 'dev', near.link, 'scope', 'global')
        near.run('ip', '-6', 'route', 'add', 'default', 'via', 'fe80::9', 'dev', near.link)
        own_ticket(near, near.ipv6, 'one')
        near.run('ip', '-6', 'addr', 'flush', 'dev', near.link, 'scope', 'global')
        own_ticket(near, address, 'two')
        near.run('ip', '-6', 'route', 'del', 'default')
        own_ticket(near, address, 'three', far)
        only_link_local(near, far, address)
    finally:
        near.run('ip', 'link', 'delete', near.link)


def bound_link_local(near, far, address):
    into, path = folder('link-local'), file('seven')
    with Receiver(near, into, address=f'{address}%{near.link}') as recv:
        with open(recv.ticket_file) as f:
            says(re.escape(f'[{address}]:{recv.port}:'), f.read())
        there = far.start(ROCI, 'send', '--device', 'embedded', path, '@' + recv.ticket_file, plain=True, env=environment())
        check(there.wait(30) == USAGE, there.report())
        says(f'the ticket in .* names the link-local address {address}; add the interface of this machine', there.text())
        recv.address = f'{address}%{far.link}'
        recv.take(far, path)
    check(os.listdir(into) == ['seven'], os.listdir(into))


def own_ticket(host, address, into, sender=None):
    """`roci recv` without --bind puts that address into its ticket, and a sender gets in there."""
    ticket = os.path.join(base, 'own ticket ' + into)
    process = host.start(ROCI, 'recv', '--dir', folder('ticket ' + into), '--device', 'embedded', '--port', '0', '--ticket-file', ticket, plain=True,
                         env=environment())
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or not process.running())
        with open(ticket) as f:
            says(re.escape(f'roci1:[{address}]:'), f.read())
        if sender:
            there = sender.start(ROCI, 'send', '--device', 'embedded', '--ticket-file', ticket, file('eight'), f'{address}%{sender.link}', plain=True,
                                 env=environment())
            check(there.wait(30) == OK, there.report())
    finally:
        process.end()


def only_link_local(near, far, address):
    """What `roci recv` and `roci serve` say to people, and `roci ping --loopback` there."""
    means = '(INTERFACE is the network interface of that machine that leads here, such as eth0)'
    recv = near.start(ROCI, 'recv', '--dir', folder('said'), '--device', 'embedded', '--port', '0', plain=True, env=environment())
    wait_until('the ticket', lambda: 'roci1:' in recv.text() or not recv.running())
    recv.end(signal.SIGINT)
    says(re.escape(f'roci send PATH... [{address}%INTERFACE]\n{means}\n'), recv.text())
    serve = near.start(ROCI, 'serve', '--device', 'embedded', plain=True, env=environment())
    try:
        wait_until('the server', lambda: 'roci ping' in serve.text() or not serve.running())
        says(re.escape(f'roci ping {address}%INTERFACE\n{means}\n'), serve.text())
        ping = far.start(ROCI, 'ping', '--device', 'embedded', '-c', '2', f'{address}%{far.link}', plain=True, env=environment())
        check(ping.wait(30) == OK, ping.report())
    finally:
        serve.end()
    alone = near.start(ROCI, 'ping', '--loopback', '--device', 'embedded', '-c', '2', plain=True, env=environment())
    check(alone.wait(30) == OK, alone.report())


def nobody():
    path = file('nobody')
    _, said = roci('send', '--open', '--bind', '203.0.113.1', path, '127.0.0.1:9', status=NO_DEVICE)
    says('--bind 203.0.113.1: Cannot assign requested address', said)
    _, said = roci('send', '--open', '--name', 'other', path, '127.0.0.1:9', status=USAGE)
    says('--name names standard input, and no PATH is -', said)
    _, said = roci('send', '--open', path, '127.0.0.1:9', status=NO_CONNECT)
    says('nobody listens at 127.0.0.1 port 9 by IPv4; is `roci recv` running there', said)
    roci('send', '--open', path, 'no.such.host.invalid', status=NO_CONNECT)
    _, said = roci('send', '--open', path, './here', status=USAGE)
    says('this is a path', said)
    for argv in (['', '127.0.0.1:9'], [path, '']):
        says("an argument is empty: '' is no PATH and no HOST", roci('send', '--open', *argv, status=USAGE)[1])


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
    says('cannot read .*/not there: No such file', said)
    os.mkfifo(os.path.join(base, 'a fifo'))
    for name, why in (('a fifo', 'it is no file, folder or symbolic link'), ('.roci-1.part', 'receivers do not take this name')):
        _, said = roci('send', '--open', os.path.join(base, name), '127.0.0.1', status=LOCAL_IO)
        says(f'cannot send .*/{name}: {why}', said)
    roci('send', path, '@' + os.path.join(base, 'no ticket'), status=LOCAL_IO)
    _, said = roci('recv', '--dir', path, '--port', '0', status=LOCAL_IO)
    says('cannot use the folder .*: Not a directory', said)
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


def whose_side():
    """An entry that fails: the sender cannot read one, the receiver has a folder in the way of another. Both say whose side it is."""
    into, source, ticket = folder('whose-side'), folder('whose-side-source'), os.path.join(base, 'ticket')
    for name in ('in the way', 'secret', 'open'):
        write(os.path.join(source, name), b'1')
    os.chmod(os.path.join(source, 'secret'), 0)
    os.makedirs(os.path.join(into, 'in the way', 'full'))
    recv = here.start(ROCI, 'recv', '--once', '--port', '0', '--bind', '127.0.0.1', '--ticket-file', ticket, '--dir', into, plain=True,
                      env=environment())
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or not recv.running())
        _, said = roci('send', source + '/', '@' + ticket, status=PARTLY, prefix=UNPRIVILEGED)
        says('send: in the way: the receiver refused it: it cannot be stored: a folder has its name; move that away and send again\n', said)
        says('send: secret: it cannot be read: Permission denied\n', said)
        recv.wait(20)
        says('recv: in the way: it cannot be stored: a folder has its name; move that away and send again\n', recv.text())
        says('recv: secret: the sender gave it up: it cannot be read: Permission denied\n', recv.text())
    finally:
        recv.end()
    check(sorted(os.listdir(into)) == ['in the way', 'open'], os.listdir(into))


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
        ended = recv.take(here, '--timeout', '8s', '--retry-for', '0', source, status=LOST)
        says('ending the former connection of this transfer took too long', ended['text'])
        again = recv.send(here, '--timeout', '8s', source)
        try:
            wait_until('it to connect', lambda: any(e['text'].startswith('CONNECT') for e in events(again, 'step')))
            os.unlink(gate)
            check(again.wait(60) == OK, again.report())
        finally:
            again.end()
    check_same(source, os.path.join(into, 'comes-again-source'))


def without_a_ticket():
    """Many connections that prove no ticket do not keep out a sender that has one. They get no place, and one line for all."""
    path = file('among others')
    with Receiver(here, folder('without a ticket'), '--max-sessions', '1') as recv:
        crowd = here.start(program('hostile_sender'), here.address, str(recv.port), 'crowd:0', base)
        try:
            wait_until('them to be refused', lambda: any('did not prove' in e['text'] for e in events(recv.process, 'warning')))
            recv.take(here, path)
            check(crowd.wait(60) == 0, crowd.report())
        finally:
            crowd.end()
        check(len(events(recv.process, 'warning')) == 1, recv.process.report())


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


def openssl_lacks():
    """OpenSSL has no provider of algorithms, as a configuration for FIPS lacks some. Both ends say what is missing."""
    path, configuration = file('without crypto'), os.path.join(base, 'openssl.cnf')
    write(configuration, b'openssl_conf = a\n[a]\nproviders = b\n[b]\nbase = c\n[c]\nactivate = 1\n')
    env = {'OPENSSL_CONF': configuration}
    _, said = roci('recv', '--dir', base, '--open', '--port', '0', status=FAILED, env=env)
    says('OpenSSL is configured without TLS 1.3', said)
    with Recv('--dir', base, '--keep-ticket') as recv:
        _, said = roci('send', path, '@' + recv.ticket, status=FAILED, env=env)
        says('OpenSSL is configured without TLS 1.3', said)


def path_is_like():
    """The line on a terminal, and --json in both roles, tell the rate, the round trip, and what was sent again. --limit-rate."""
    into, path, lossy = folder('path-like'), os.path.join(base, 'six'), {'ROCI_FAULT': 'loss=0.02,seed=7'}
    write(path, os.urandom(6 * MIB))
    with Recv('--dir', into, '--keep-ticket') as recv:
        status, shown = on_terminal('env', *(f'{k}={v}' for k, v in lossy.items()), 'TERM=xterm', 'COLUMNS=200', ROCI, 'send',
                                    '--limit-rate', '3M', path, '@' + recv.ticket, answers=[])
        check(status == OK, shown)
        says(r' [KM]iB/s  .*rtt [0-9.]+ ms, [0-9]+ resent', shown)
        recv.process.popen.send_signal(signal.SIGTERM)
        recv.ends()
    into = folder('path-like-json')
    with Receiver(here, into, '--once') as recv:
        sender = here.start(
            ROCI, 'send', '--device', here.device, '--json', *recv.trust, '--limit', '3M', path, f'{recv.address}:{recv.port}', plain=True,
            env=dict(environment(), **lossy))
        check(sender.wait(60) == OK and recv.process.wait(30) == OK, f'{sender.report()}\n{recv.process.report()}')
        for process in (sender, recv.process):
            last = events(process, 'progress')[-1]
            check(last['bytes_per_second'] > 0 and 0 < last['round_trip_seconds'] < 60, last)
        check(events(sender, 'progress')[-1]['packets_resent'] > 0, sender.report())


def disk_full(*once):
    """The receiver says where what has arrived is, how the transfer goes on, and how to get rid of it."""
    into, path, ticket = folder('full' + ''.join(once)), os.path.join(base, 'larger than the disk'), os.path.join(base, 'ticket')
    write(path, os.urandom(12 * MIB))
    process = here.start(*after('unshare', '-m', 'sh', '-c', f'mount -t tmpfs -o size=6m tmpfs {into} && exec "$@"', 'sh'), ROCI, 'recv', *once,
                         '--port', '0', '--bind', '127.0.0.1', '--ticket-file', ticket, '--dir', into, plain=True)
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or not process.running())
        _, said = roci('send', path, '@' + ticket, status=REMOTE_IO)
        says('when that is put right, run the same command again: it sends what is missing', said)
        wait_until('the end', lambda: 'No space left' in process.text() and 'delete it' in process.text())
        again = 'run `roci recv` again and send' if once else 'send'
        says(rf'when this is put right, {again} the same again: it goes on from here\n'
             rf'  what has arrived is in {into}/\.roci-[0-9a-f]+\.part; delete it, and its \.journal, if the transfer is not to go on\n', process.text())
    finally:
        process.end()
        if os.path.exists(ticket):
            os.unlink(ticket)


def stdout_full():
    """Nothing of what went to standard output can be continued, and neither side says that."""
    path, ticket = file('for standard output'), os.path.join(base, 'ticket')
    process = here.start(*after('sh', '-c', 'exec "$@" >/dev/full', 'sh'), ROCI, 'recv', '--port', '0', '--bind', '127.0.0.1', '--ticket-file',
                         ticket, '-', plain=True)
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) or not process.running())
        _, said = roci('send', path, '@' + ticket, status=REMOTE_IO)
        check(process.wait(20) == LOCAL_IO, process.report())
        says("nobody can continue what went to the receiver's standard output\n", said)
        says('nobody can continue what went to standard output\n', process.text())
        check('what is missing' not in said + process.text(), said + process.text())
    finally:
        process.end()


if __name__ == '__main__':
    sys.exit(tap([
        ('a ticket in a file, and @FILE', ticket_file), ('a ticket file that is something else', ticket_file_of_another),
        ('tickets by descriptor, and for many transfers', other_ways),
        ('the ticket is asked for', prompt), ('the ticket is shown, and is good once', shown_ticket),
        ('a file that is refused', refused), ('a ticket on the command line', ticket_on_the_command_line),
        ('a wrong ticket', wrong_ticket), ('--open', opened), ('IPv6', ipv6), ('a link-local address', link_local),
        ('nobody listens', nobody), ('several addresses', several_addresses), ('files that are not there', missing),
        ('folders that cannot be read', unreadable), ('whose side failed', whose_side), ('few descriptors', few_descriptors),
        ('many connections without a ticket', without_a_ticket), ('a killed sender comes back', comes_again),
        ('a sender killed at the end comes back', killed_at_the_end), ('no room for a session', no_room_for_a_session),
        ('a full disk', disk_full), ('standard output is full', stdout_full), ('a full disk, --once', lambda: disk_full('--once')), ('devices that are not there', devices), ('OpenSSL without algorithms', openssl_lacks), ('what the path is like', path_is_like),
    ]))
