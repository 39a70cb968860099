# SPDX-License-Identifier: BSD-2-Clause
"""Outages: `roci send` connects again by itself and goes on. test_mover_outage.py [FILTER...]

The network between two hosts goes away and comes back, at each phase of a transfer; or one of the two programs does. Nothing here
depends on how long anything takes: an outage ends when the sender has said that the connection has broken.
"""
import glob
import os
import resource
import signal
import subprocess
import sys
import time

from harness import HERE, ROCI, Host, check, hosts_with_relay, isolate, need, next_port, tap, veth_pair, wait_until
from mover import (INTERRUPTED, LOST, MIB, NO_CONNECT, NO_TRUST, OK, Receiver, check_no_wrong, check_same, environment, events,
                   make_large, make_odd, make_small, scratch, slow_disk, write)

isolate()
here = Host('one')
aside, middle, there = hosts_with_relay()
near, far = veth_pair(9000)
workshop = scratch()
base = workshop.name
source = os.path.join(base, 'source')
it = os.path.join(source, 'it')
os.makedirs(it)
make_large(os.path.join(it, 'large'), 12 * MIB + 5)
make_small(os.path.join(it, 'small'), 100)
make_odd(os.path.join(it, 'odd'))
SOON = ['--timeout', '2s']  # how soon either side takes a connection as broken


def fresh(name):
    folder = os.path.join(base, name)
    subprocess.run(['chmod', '-Rf', 'u+rwx', folder], check=False)
    subprocess.run(['rm', '-rf', folder], check=True)
    os.mkdir(folder)
    return folder


def cable(state):
    near.run('ip', 'link', 'set', near.link, state)


def steps(process, name):
    return [e for e in events(process, 'step') if e['text'].startswith(name)]


def some_of_it(sender):
    wait_until('some of it', lambda: any(e['bytes_done'] for e in events(sender, 'progress')) or not sender.running())


def broken(sender):
    wait_until('the sender to notice', lambda: events(sender, 'reconnecting') or not sender.running(), 60)
    check(sender.running(), sender.report())


def cut(sender):
    """The network goes away in the midst of the transfer."""
    some_of_it(sender)
    cable('down')
    broken(sender)


def finished(sender, recv, folder, once=False):
    """Both have finished, and the sender says that it connected again."""
    check(sender.wait(120) == OK, f'{sender.report()}\n{recv.process.report()}')
    check(events(sender, 'reconnecting') and len(events(sender, 'connected')) > 1, sender.report())
    check_same(source, folder)
    if once:
        check(recv.process.wait(60) == OK, recv.process.report())


def counts(sender, unheard=False):
    """Each entry is reported once, and nothing counts twice. `unheard`: the sender may not know that an entry was stored before the
    connection broke, and then finds it there."""
    ended, names = events(sender, 'ended')[-1], [e['name'] for e in events(sender, 'entry_done')]
    check(len(names) == len(set(names)) == ended['entries_done'] == ended['entries_total'], f'{len(names)} names: {ended}')
    check(ended['bytes_done'] == ended['bytes_total'], ended)
    check(unheard or not ended['entries_unchanged'] and not ended['bytes_unchanged'], ended)
    check(ended['bytes_kept'] == 0, ended)  # nothing is of an earlier command
    return ended


def outage(seconds, *options, once=True):
    """In the middle of the data. `seconds` 0: until the sender notices."""
    folder = fresh('there')
    with Receiver(far, folder, *(['--once'] if once else []), *([] if seconds else SOON)) as recv:
        sender = recv.send(near, it, '--limit', '6M', *([] if seconds else SOON), *options)
        try:
            some_of_it(sender)
            cable('down')
            time.sleep(seconds)
            if not seconds:
                broken(sender)
        finally:
            cable('up')
        finished(sender, recv, folder, once)
        ended = counts(sender)
        again = events(sender, 'reconnecting')[0]
        check(again['text'] and 0 < again['seconds_left'] <= 300, again)
        return f"{ended['bytes_moved'] / MIB:.0f} MiB moved of {ended['bytes_total'] / MIB:.0f}"


total_frames = []


def all_frames():
    """How many frames a transfer takes that nothing disturbs: about so many, since windows and acknowledgements vary."""
    if not total_frames:
        with Receiver(there, fresh('there'), '--once') as recv:
            relay = middle.start('/usr/bin/python3', f'{HERE}/outage.py', aside.link, there.link, str(1 << 40), plain=True)
            wait_until('the relay', lambda: 'on the path' in relay.text() or not relay.running())
            recv.take(aside, it)
            relay.end(signal.SIGTERM)
            total_frames.append(int(relay.text().split()[-2]))
    return total_frames[0]


def at_frame(number):
    """After so many frames nothing comes through any more, until the sender has said that the connection has broken. A negative
    number counts from the end: there the sender may have all that it needs."""
    limit = number if number > 0 else all_frames() + number
    folder = fresh('there')
    with Receiver(there, folder, '--once', *SOON) as recv:
        relay = middle.start('/usr/bin/python3', f'{HERE}/outage.py', aside.link, there.link, str(limit), plain=True)
        sender = None
        try:
            wait_until('the relay', lambda: 'on the path' in relay.text() or not relay.running())
            sender = recv.send(aside, it, '--retry-for', '90s', *SOON)
            wait_until('the sender to notice', lambda: events(sender, 'reconnecting') or not sender.running(), 60)
            check(number < 0 or 'outage' in relay.text() and sender.running(), f'{relay.report()}\n{sender.report()}')
            last = [e['text'].split()[0] for e in events(sender, 'step') if not e['text'].startswith('ERROR')][-1:] or ['nothing']
            broke = events(sender, 'reconnecting')
            relay.popen.send_signal(signal.SIGUSR1)
            check(sender.wait(120) == OK, f'{sender.report()}\n{recv.process.report()}')
            check(recv.process.wait(100) == OK, recv.process.report())
        finally:
            if sender:
                sender.end()
            relay.end(signal.SIGTERM)
    check_same(source, folder)
    counts(sender, unheard=True)
    return f"{'broken' if broke else 'not broken'} after {limit} frames; the last step was {last[0]}"


def time_is_over():
    """After the time both end, with the reason and the exit status of a lost connection. Nothing wrong is left, and the same
    command goes on by hand, as the same ticket is still good."""
    folder = fresh('there')
    with Receiver(far, folder, *SOON) as recv, Receiver(far, fresh('other'), '--once', '--retry-for', '2s', *SOON) as once:
        sender = recv.send(near, it, '--limit', '6M', '--retry-for', '1500ms', *SOON)
        other = once.send(near, it, '--limit', '6M', '--retry-for', '0', *SOON)
        try:
            some_of_it(sender)
            some_of_it(other)
            cable('down')
            check(sender.wait(60) == LOST, sender.report())
            text = events(sender, 'ended')[-1]['text']
            check('no other connection within 1.5 seconds' in text and events(sender, 'reconnecting'), sender.report())
            check(other.wait(60) == LOST and not events(other, 'reconnecting'), other.report())
            check(once.process.wait(60) == LOST, once.process.report())
            check('did not connect again' in once.process.text(), once.process.report())
        finally:
            cable('up')
        check_no_wrong(source, folder)
        ended = recv.take(near, it)
        check(ended['bytes_kept'] + ended['bytes_unchanged'], ended)
        check_same(source, folder)


def interrupted(who):
    """A signal ends either side also while it waits for the network."""
    folder = fresh('there')
    with Receiver(far, folder, '--once', *SOON) as recv:
        sender = recv.send(near, it, '--limit', '6M', *SOON)
        try:
            cut(sender)
            wait_until('the receiver to wait', lambda: events(recv.process, 'reconnecting') or not recv.process.running(), 60)
            process = sender if who == 'sender' else recv.process
            process.popen.send_signal(signal.SIGINT)
            check(process.wait(20) == INTERRUPTED, process.report())
        finally:
            cable('up')
            sender.end()


def receiver_killed():
    """Nobody listens there any more, and a new receiver has another ticket: the sender ends at once, and says so."""
    folder = fresh('there')
    with Receiver(far, folder, *SOON) as recv:
        sender = recv.send(near, it, '--limit', '6M', *SOON)
        some_of_it(sender)
        recv.process.end(signal.SIGKILL)
        check(sender.wait(60) == LOST, sender.report())
        check('the receiver has ended' in events(sender, 'ended')[-1]['text'], sender.report())
        check_no_wrong(source, folder)


def nobody_takes_over(trust):
    """While a receiver for one transfer waits for its sender, nobody else gets in, not even with the same kept ticket."""
    folder = fresh('there')
    with Receiver(far, folder, '--once', *trust, *SOON) as recv, Receiver(far, fresh('other')) as other:
        sender = recv.send(near, it, '--limit', '6M', *SOON)
        try:
            some_of_it(sender)
            sender.popen.send_signal(signal.SIGSTOP)
            wait_until('the receiver to wait', lambda: events(recv.process, 'reconnecting') or not recv.process.running(), 60)
            if trust:  # with a one-time ticket, who knows it is the sender
                for host in (far, near):
                    recv.take(host, os.path.join(it, 'small'), '--retry-for', '0', status=NO_CONNECT)
            if trust != ['--open']:
                recv.trust, right = other.trust, recv.trust
                recv.take(far, os.path.join(it, 'small'), status=NO_TRUST)
                recv.trust = right
        finally:
            sender.popen.send_signal(signal.SIGCONT)
        finished(sender, recv, folder, once=True)
        counts(sender)


def another_address():
    """The sender's host gets another address during the outage."""
    folder, address = fresh('there'), near.address
    with Receiver(far, folder, '--once', *SOON) as recv:
        sender = recv.send(near, it, '--limit', '6M', *SOON)
        try:
            cut(sender)
            near.run('ip', 'addr', 'del', f'{address}/24', 'dev', near.link)
            near.run('ip', 'addr', 'add', f"{address.rsplit('.', 1)[0]}.77/24", 'dev', near.link)
            cable('up')
            finished(sender, recv, folder, once=True)
            check(events(recv.process, 'connected')[-1]['address'].endswith('.77'), recv.process.report())
        finally:
            near.run('ip', 'addr', 'flush', 'dev', near.link, 'scope', 'global')
            near.run('ip', 'addr', 'add', f'{address}/24', 'dev', near.link)
            near.run('ip', 'addr', 'add', f'{near.ipv6}/64', 'dev', near.link, 'nodad')
            cable('up')


def one_family_lost():
    """The receiver listens at the IPv6 address only. The way there is lost, and at the IPv4 address of the same name nobody listens: that
    does not say that the receiver has ended."""
    folder, hosts = fresh('there'), os.path.join(base, 'hosts')
    write(hosts, f'{far.address} both\n{far.ipv6} both\n'.encode())
    mount = ['unshare', '-m', 'sh', '-c', f'mount --bind {hosts} /etc/hosts && exec "$@"', 'sh']
    near.run('ip', 'addr', 'replace', f'{near.ipv6}/64', 'dev', near.link, 'nodad')  # a link that goes down loses it
    with Receiver(far, folder, '--once', *SOON, address=far.ipv6) as recv:
        sender = near.start(*mount, 'env', *(f'{name}={value}' for name, value in environment().items()), ROCI, 'send', '--device', near.device, '--json',
                            *recv.trust, '--limit', '6M', *SOON, it, f'both:{recv.port}', plain=True)
        try:
            some_of_it(sender)
            near.run('ip', '-6', 'route', 'add', 'unreachable', f'{far.ipv6}/128', 'metric', '1')
            broken(sender)
            wait_until('attempts', lambda: len(events(sender, 'reconnecting')) > 3 or not sender.running())
        finally:
            near.run('ip', '-6', 'route', 'del', 'unreachable', f'{far.ipv6}/128', 'metric', '1')
        finished(sender, recv, folder, once=True)
        counts(sender)


def no_descriptors():
    """An attempt may fail before it is a connection: the sender has no file descriptors left. It pauses before the next all the same."""
    folder = fresh('there')
    with Receiver(far, folder, '--once', *SOON) as recv:
        sender = recv.send(near, it, '--limit', '6M', *SOON)
        before = resource.prlimit(sender.pid, resource.RLIMIT_NOFILE)
        try:
            cut(sender)
            resource.prlimit(sender.pid, resource.RLIMIT_NOFILE, (3, before[1]))
            wait_until('attempts', lambda: len(events(sender, 'reconnecting')) > 4 or not sender.running())
            time.sleep(1)
            attempts = len(events(sender, 'reconnecting'))
            check(attempts < 50 and any('descriptor' in e['text'] or 'files' in e['text'] for e in events(sender, 'reconnecting')),
                  f'{attempts} attempts\n{sender.report()}')
        finally:
            if sender.running():
                resource.prlimit(sender.pid, resource.RLIMIT_NOFILE, before)
            cable('up')
        finished(sender, recv, folder, once=True)
        seconds = 0
        for e in events(sender, 'reconnecting'):
            check(e['bytes_total'] == counts(sender)['bytes_total'] and e['seconds'] > seconds, e)
            seconds = e['seconds']
        return f'{attempts} attempts'


def killed_and_sent_again():
    """The sender is killed; the same command resumes, also where the receiver takes one transfer: the ticket proves it."""
    folder = fresh('there')
    with Receiver(here, folder, '--once', *SOON) as recv:
        sender = recv.send(here, it, '--limit', '6M')
        some_of_it(sender)
        sender.end(signal.SIGKILL)
        wait_until('the receiver to wait', lambda: events(recv.process, 'reconnecting') or not recv.process.running(), 60)
        ended = recv.take(here, it)
        check(ended['bytes_kept'] + ended['bytes_unchanged'], ended)
        check(recv.process.wait(60) == OK, recv.process.report())
        check_same(source, folder)


def killed_and_sent_again_at_once(*trust, forgotten=False):
    """... before the receiver has noticed: the second sender takes the place of the first one, because it has the number of its transfer,
    also where everybody is let in. `forgotten`: the number is gone, and the one-time ticket proves it, once the first one is known to be."""
    folder = fresh('there')
    with Receiver(far, folder, '--once', *trust) as recv:
        sender = recv.send(near, it, '--limit', '6M')
        some_of_it(sender)
        sender.end(signal.SIGKILL)
        check(not events(recv.process, 'ended'), recv.process.report())
        if forgotten:
            for name in glob.glob(f'/dev/shm/roci-{os.getuid()}/sender-*'):
                os.unlink(name)
        ended = recv.take(near, it, '--retry-for', '0')
        check(ended['bytes_kept'] + ended['bytes_unchanged'], ended)
        check(recv.process.wait(60) == OK, recv.process.report())
        check(bool(events(recv.process, 'reconnecting')), recv.process.report())
        check(forgotten != ('has connected again' in events(recv.process, 'ended')[0]['text']), recv.process.report())
        check_same(source, folder)


def two_with_one_ticket():
    """A second sender with the ticket of a transfer takes its place, and the first one does not fight for it."""
    folder = fresh('there')
    with Receiver(here, folder) as recv:
        first = recv.send(here, it, '--limit', '6M')
        try:
            some_of_it(first)
            recv.take(here, it)
            check(first.wait(60) not in (OK, LOST) and not events(first, 'reconnecting'), first.report())
        finally:
            first.end()
        check_same(source, folder)


SILENT = """add table inet silent; add chain inet silent out { type filter hook output priority 0; };
add rule inet silent out udp dport 4791 @th,64,8 0x11 drop; add rule inet silent out udp dport 4791 @th,64,8 >= 0xc0 drop"""


MUTE = """table inet silent; add chain inet silent out { type filter hook output priority 0; };
add rule inet silent out udp dport 4791 drop"""
gate = os.path.join(base, 'gate')


def send_with_end_of(recv, rules):
    """Sends a few files. When only END is missing, the sender's host gets these rules. Returns the sender, which has ended."""
    need('nft')
    few = fresh('few')
    make_small(few, 3)
    write(gate, b'')
    sender = recv.send(near, few, '--timeout', '60s')
    try:
        wait_until('the last ACK, and folders to be synced', lambda: not sender.running() or (
            os.path.exists(gate + '.waiting') and events(sender, 'offered') and
            len(events(sender, 'entry_done')) == events(sender, 'offered')[0]['entries_total']))
        near.run('nft', rules)
        os.unlink(gate)
        check(sender.wait(60) == OK, f'{sender.report()}\n{recv.process.report()}')
    finally:
        sender.end()
        near.run('sh', '-c', 'nft delete table inet silent || true')
    os.unlink(gate + '.waiting')
    return sender


def no_acknowledgement():
    """At the end none of the sender's acknowledgements arrives (ACK, and what says the same between two of ours). The receiver ends with
    its sender, which says that it has the END, and its ticket is used up."""
    with Receiver(far, fresh('there'), '--once', argv_prefix=slow_disk(gate, 'SLOW_FOLDERS=1')) as recv:
        send_with_end_of(recv, SILENT)
        check(recv.process.wait(60) == OK and not events(recv.process, 'reconnecting'), recv.process.report())
    with Receiver(far, fresh('there'), argv_prefix=slow_disk(gate, 'SLOW_FOLDERS=1')) as recv:
        send_with_end_of(recv, SILENT)
        wait_until('the next ticket', lambda: len(events(recv.process, 'ticket')) == 2 or not recv.process.running())


def unheard_bye():
    """At the end nothing of what the sender says arrives. A receiver that stays does not need to know that the sender has its END, so the
    sender ends."""
    with Receiver(far, fresh('there'), *SOON, argv_prefix=slow_disk(gate, 'SLOW_FOLDERS=1')) as recv:
        sender = send_with_end_of(recv, MUTE)
        check(not events(sender, 'reconnecting'), f'{sender.report()}\n{recv.process.report()}')
        wait_until('the receiver to go on', lambda: events(recv.process, 'ended') or not recv.process.running())
        check(recv.take(near, os.path.join(base, 'few'))['entries_unchanged'], 'the ticket is good until the receiver knows')


def standard_input():
    """Nobody can read standard input again: the transfer ends with the reason."""
    folder = fresh('there')
    with Receiver(far, folder, *SOON) as recv:
        sender = near.start('sh', '-c', 'file=$1; shift; (cat "$file"; exec sleep 60) | "$@"', 'sh', os.path.join(it, 'large'), ROCI, 'send',
                            '--device', near.device, '--json', *recv.trust, *SOON, '-', f'[{recv.address}]:{recv.port}', plain=True,
                            env=environment())
        try:
            some_of_it(sender)
            cable('down')
            wait_until('the sender to end', lambda: events(sender, 'ended'), 60)
            check(events(sender, 'ended')[0]['exit_status'] == LOST and not events(sender, 'reconnecting'), sender.report())
        finally:
            cable('up')
            sender.end()


def receiver_comes_later():
    """--retry-for that is given is also for the first connection: the receiver may be started after the sender."""
    folder, port = fresh('there'), str(next_port())
    sender = near.start(ROCI, 'send', '--device', near.device, '--json', '--open', '--retry-for', '60s', it, f'{far.address}:{port}', plain=True,
                        env=environment())
    recv = None
    try:
        broken(sender)
        recv = far.start(ROCI, 'recv', '--device', far.device, '--dir', folder, '--port', port, '--json', '--open', '--once', '--links', plain=True,
                         env=environment())
        check(sender.wait(100) == OK, sender.report())
        check(recv.wait(60) == OK, recv.report())
    finally:
        sender.end()
        if recv:
            recv.end()
    check_same(source, folder)


QUICK_FRAMES, MORE_FRAMES = (40, -6), (1, 4, 2, 9, 20, 100, 1000, -2, -4, -10, -16)
cases = [('12 s', lambda: outage(12)), ('noticed', lambda: outage(0)), ('40 s', lambda: outage(40)),
         ('noticed, not once', lambda: outage(0, once=False)), ('noticed, mode read', lambda: outage(0, '--mode', 'read')),
         ('noticed, mode send', lambda: outage(0, '--mode', 'send')),
         *[(f'after {n} frames', lambda n=n: at_frame(n)) for n in QUICK_FRAMES],
         *[(f'after {n} frames, too', lambda n=n: at_frame(n)) for n in MORE_FRAMES],
         ('the time is over', time_is_over), ('sender interrupted', lambda: interrupted('sender')),
         ('receiver interrupted', lambda: interrupted('receiver')), ('receiver killed', receiver_killed),
         ('nobody takes over', lambda: nobody_takes_over([])), ('nobody takes over, kept ticket', lambda: nobody_takes_over(['--keep-ticket'])),
         ('nobody takes over, open', lambda: nobody_takes_over(['--open'])), ('another address', another_address),
         ('no file descriptors', no_descriptors), ('one family lost', one_family_lost),
         ('killed and sent again', killed_and_sent_again), ('unheard BYE', unheard_bye), ('killed and sent again at once', killed_and_sent_again_at_once),
         ('killed and sent again at once, open', lambda: killed_and_sent_again_at_once('--open')),
         ('killed and sent again at once, kept ticket', lambda: killed_and_sent_again_at_once('--keep-ticket')),
         ('killed and sent again at once, no number', lambda: killed_and_sent_again_at_once(forgotten=True)), ('two with one ticket', two_with_one_ticket),
         ('no acknowledgement arrives', no_acknowledgement), ('standard input', standard_input), ('the receiver comes later', receiver_comes_later)]
QUICK = ('noticed', 'no ack', 'frames', 'time is over', 'sender interrupted', 'kept ticket', 'two with')
sys.exit(tap(cases, quick=lambda name: name == 'noticed' or (any(part in name for part in QUICK[1:]) and 'too' not in name)))
