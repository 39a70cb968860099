# SPDX-License-Identifier: BSD-2-Clause
"""Transfers that are cut off: `roci send` and `roci recv` are killed, stopped, run out of disk space or lose the network.
Also many transfers at once. test_mover_broken.py [FILTER...]

Some cases choose a random point in time. The result must not depend on it: no file with its final name may be wrong, and
sending again must succeed.
"""
import filecmp
import os
import random
import select
import shutil
import signal
import stat
import sys
import time

from harness import ROCI, Host, check, isolate, tap, veth_pair, wait_until
from mover import (INTERRUPTED, LOCAL_IO, LOST, MIB, MISMATCH, NO_CONNECT, NO_TRUST, OK, PARTLY, REMOTE_IO, Receiver, check_no_wrong,
                   check_same, environment, events, like_fat, make_large, make_odd, make_small, scratch,
                   slow_disk, write)

isolate()
KILLS, MORE_KILLS = 3, 6
INTERRUPTED_SIZE = 32 * MIB  # many times what is sent before a case that waits for some of it acts, also where the machine is busy
here = Host('one')
near, far = veth_pair(9000)
workshop = scratch()
base = workshop.name
source = os.path.join(base, 'source')
os.makedirs(os.path.join(source, 'it'))
make_large(os.path.join(source, 'it', 'large'), 24 * MIB + 5)
make_small(os.path.join(source, 'it', 'small'), 200)
make_odd(os.path.join(source, 'it', 'odd'))


def fresh(name):
    folder = os.path.join(base, name)
    if os.path.exists(folder):
        for where, folders, _ in os.walk(folder):
            for sub in folders:
                os.chmod(os.path.join(where, sub), 0o700)
        shutil.rmtree(folder)
    os.mkdir(folder)
    return folder


def it():
    return os.path.join(source, 'it')


def begun(sender):
    """Waits until a transfer has begun, or has ended already."""
    wait_until('the transfer to begin', lambda: events(sender, 'connected') or not sender.running())


def resume(folder, *options):
    with Receiver(here, folder, '--once') as recv:
        ended = recv.take(here, it(), *options)
        check(recv.process.wait(20) == OK, recv.process.report())
    check_same(source, folder)
    return ended


def reached(sender, share):
    """Waits until this share of the bytes has arrived, or the transfer is over."""
    def far_enough():
        progress = events(sender, 'progress')
        return not sender.running() or progress and progress[-1]['bytes_done'] >= share * progress[-1]['bytes_total']
    wait_until(f'{share:.0%} of the bytes', far_enough, 60)


def kills(who, mode, count, seed):
    """54 points over both sides and the three modes; some before the first byte, some after the last. The last point of a case
    has something to keep before it, however slow the machine is."""
    rng = random.Random(f'{who} {mode} {seed}')
    kept = 0

    def case():
        nonlocal kept
        for number in range(count):
            folder = fresh('there')
            options = ['--mode', mode, '--qps', rng.choice(('1', '4')), '--limit', '60M', '--timeout', '3s']
            share = rng.uniform(-0.1, 1.1) if number < count - 1 else rng.uniform(0.6, 0.9)
            with Receiver(here, folder, '--timeout', '3s') as recv:
                sender = recv.send(here, it(), *options)
                try:
                    begun(sender)
                    if share > 0:
                        reached(sender, share)
                    time.sleep(rng.uniform(0, 0.1))
                    (sender if who == 'sender' else recv.process).end(signal.SIGKILL)
                    if who == 'receiver':
                        status = sender.wait(20)
                        check(status in (OK, LOST), f'exit status {status}\n{sender.report()}')
                    check_no_wrong(source, folder)
                    if who == 'sender':  # the same receiver and ticket, immediately
                        if any(e['text'].startswith('END') for e in events(recv.process, 'step')):
                            # The sender's device may have acknowledged END: then it was just too late, and there is another ticket.
                            wait_until('the end of the session', lambda: events(recv.process, 'ended'))
                        ended = recv.take(here, it(), *options)
                        check_same(source, folder)
                    else:
                        ended = resume(folder, *options)
                    kept += ended['bytes_kept'] + ended['bytes_unchanged']
                finally:
                    sender.end()
        check(kept, 'nothing was ever kept of an interrupted transfer')
        return f'{kept / MIB:.0f} MiB kept in all'
    return case


def stopped(who):
    """SIGTERM: the process ends with the status for that, tells the other side, and the transfer can be resumed."""
    folder = fresh('there')
    with Receiver(here, folder) as recv:
        sender = recv.send(here, it(), '--limit', '10M')
        try:
            begun(sender)
            wait_until('some of it on the disk', lambda: any(e['bytes_moved'] > 4 * MIB for e in events(recv.process, 'progress')))
            (sender if who == 'sender' else recv.process).popen.send_signal(signal.SIGTERM)
            status = sender.wait(20)
            check(status == (INTERRUPTED if who == 'sender' else LOST) or (who == 'receiver' and status == INTERRUPTED),
                  f'exit status {status}\n{sender.report()}\n{recv.process.report()}')
            check_no_wrong(source, folder)
            if who == 'sender':
                ended = recv.take(here, it())
                check_same(source, folder)
            else:
                check(recv.process.wait(20) == OK, recv.process.report())
                ended = resume(folder)
        finally:
            sender.end()
    check(ended['bytes_kept'] + ended['bytes_unchanged'], f'nothing was kept: {ended}')


def dry_run():
    """A dry run changes nothing: no mode, and no partial file that it could not resume. New folders are no error."""
    folder = fresh('there')
    with Receiver(here, folder, '--keep-ticket') as recv:
        sender = recv.send(here, os.path.join(it(), 'large'), '--limit', '10M', '--memory', '8M')
        try:
            begun(sender)
            # more than all windows hold, so that one was used twice: what it held at first is on the disk
            wait_until('some of it', lambda: any(e['bytes_done'] > 8 * MIB for e in events(sender, 'progress')))
        finally:
            sender.end(signal.SIGINT)
        wait_until('the receiver to notice', lambda: events(recv.process, 'ended'), 40)
        shutil.copy2(os.path.join(it(), 'small', '000', '7'), folder)
        os.chmod(os.path.join(folder, '7'), 0o400)

        def look():
            return {name: (s.st_mode, s.st_size, s.st_blocks, s.st_mtime_ns)
                    for name in os.listdir(folder) for s in [os.lstat(os.path.join(folder, name))]}
        before = look()
        check(len(before) == 3, before)
        recv.take(here, '--dry-run', '--chunk', '64K', os.path.join(it(), 'large'), os.path.join(it(), 'odd'),
                  os.path.join(it(), 'small', '000', '7'))
        check(look() == before, f'{before} became {look()}')
        done = {e['name']: e for e in events(recv.process, 'entry_done')}
        check(done['7']['outcome'] == 'unchanged' and done['large']['outcome'] == 'would', done)
        check(not any('text' in e for e in done.values()), [e for e in done.values() if 'text' in e])
        ended = recv.take(here, os.path.join(it(), 'large'))
        check(ended['bytes_kept'], f'nothing was kept: {ended}')
        recv.end(signal.SIGTERM)


def refused():
    """If the only entry is refused, both sides say why; if one of several is, that the others have arrived."""
    folder, link, one = fresh('there'), os.path.join(base, 'odd link'), os.path.join(it(), 'odd', 'size 1')
    os.mkdir(os.path.join(folder, 'size 1'))
    if not os.path.islink(link):
        os.symlink('nowhere', link)
    for options, here_status, there_status in (([], LOCAL_IO, REMOTE_IO), ([link], PARTLY, PARTLY)):
        with Receiver(here, folder, '--once') as recv:
            recv.take(here, *options, one, status=there_status)
            status = recv.process.wait(20)
            check(status == here_status, f'exit status {status}, not {here_status}\n{recv.process.report()}')
            reasons = [e.get('text') for e in events(recv.process, 'entry_done') if e['outcome'] == 'refused']
            check(reasons == ['it cannot be stored: a folder has its name; move that away and send again'], reasons)
    check(sorted(os.listdir(folder)) == ['odd link', 'size 1'], os.listdir(folder))


def in_the_way():
    """Where something is that an entry cannot replace, the reason says what it is and what to do. Nothing of it is changed."""
    folder, source = fresh('there'), os.path.join(base, 'in the way')
    for name in ('below a file', 'below a link', 'below a FIFO'):
        os.makedirs(os.path.join(source, name))
        write(os.path.join(source, name, 'file'), b'new')
    for name in ('fifo', 'socket', 'folder', 'free'):
        write(os.path.join(source, name), b'new')
    os.symlink('free', os.path.join(source, 'link'))
    os.mkdir(os.path.join(folder, 'elsewhere'))
    os.mkdir(os.path.join(folder, 'folder'))
    for name in ('fifo', 'link', 'below a FIFO'):
        os.mkfifo(os.path.join(folder, name))
    os.mknod(os.path.join(folder, 'socket'), stat.S_IFSOCK | 0o600)
    os.symlink('elsewhere', os.path.join(folder, 'below a link'))
    write(os.path.join(folder, 'below a file'), b'old')
    was = {name: os.lstat(os.path.join(folder, name)) for name in os.listdir(folder)}
    special, other = 'a FIFO, socket or device has its name', 'something else is where a folder has to be'
    expected = {'fifo': special, 'socket': special, 'link': special, 'folder': 'a folder has its name'}
    for name in ('below a file', 'below a link', 'below a FIFO'):
        expected[name] = expected[name + '/file'] = other
    with Receiver(here, folder, '--once') as recv:
        sender = recv.send(here, source + '/')
        check(sender.wait(60) == PARTLY, sender.report())
        for process, whose in ((sender, 'the receiver refused it: '), (recv.process, '')):
            reasons = {e['name']: e['text'] for e in events(process, 'entry_done') if e['outcome'] == 'refused'}
            check(reasons.keys() == expected.keys(), reasons)
            for name, reason in reasons.items():
                check(reason.startswith(f'{whose}it cannot be stored: {expected[name]}') and
                      reason.endswith('; move that away and send again'), f'{name}: {reason}')
    for name, old in was.items():
        now = os.lstat(os.path.join(folder, name))
        check((now.st_ino, now.st_mode, now.st_size) == (old.st_ino, old.st_mode, old.st_size), f'{name} has changed')
    check(os.listdir(os.path.join(folder, 'elsewhere')) == [], 'a link was followed')


def like_on_a_stick():
    """A file system like FAT takes few modes, and stores coarse times. Files arrive, a warning says so once, and the next time they
    are unchanged. One that has changed within the two seconds, and has another time there, is not."""
    folder, source = fresh('there'), fresh('stick')
    for name in ('sub', 'closed', 'private'):
        os.mkdir(os.path.join(source, name), 0o755 if name == 'sub' else 0o500)
    for number, name in enumerate(('one', 'two', 'sub/three')):
        write(os.path.join(source, name), name.encode(), 0o640, 1_700_000_001_000_000_000 + number)
    with Receiver(here, folder, '--keep-ticket', '--compare', argv_prefix=like_fat()) as recv:
        recv.take(here, source + '/')
        for options in ([], ['--checksum']):
            check_no_wrong(source, folder)
            check(sorted(os.listdir(folder)) == ['closed', 'one', 'private', 'sub', 'two'], os.listdir(folder))
            ended = recv.take(here, source + '/', *options)
            check(ended['bytes_moved'] == 0, ended)
        said = [(e['session'], e['text']) for e in events(recv.process, 'warning')]
        text = 'the file system does not take the modes of all files; of mode 640, stored with another: one'
        for number in (1, 2, 3):
            said.remove((number, 'mode or time of 2 folders could not be set (Operation not permitted): closed'))
        check(said == [(1, text), (3, text)], said)
        write(os.path.join(source, 'one'), b'six', 0o640, 1_700_000_002_000_000_000)
        ended = recv.take(here, source + '/')
        check(ended['bytes_moved'] == 3, ended)
        check_no_wrong(source, folder)
    with Receiver(here, folder, '--keep', '--once', argv_prefix=like_fat()) as recv:
        ended = recv.take(here, source + '/')
        check(ended['entries_unchanged'] == 3, ended)
    with Receiver(here, folder, '--once') as recv:  # where times are exact, other times are other files
        write(os.path.join(source, 'one'), b'new', 0o640, 1_700_000_002_000_000_001)
        recv.take(here, source + '/')
        check_same(source, folder)


def names_that_differ_in_case():
    """Where the file system ignores case, the second of two such names is refused, and does not replace the first one."""
    folder, source = fresh('there'), fresh('case')
    os.makedirs(os.path.join(source, 'sub'))
    content = {'README': b'1', 'Readme': b'22', 'other': b'4', 'sub/A': b'333', 'sub/a': b'4444', 'sub/b': b'5'}
    for name, bytes_ in content.items():
        write(os.path.join(source, name), bytes_)
    os.symlink('other', os.path.join(source, 'OTHER'))
    with Receiver(here, folder, '--keep-ticket', argv_prefix=like_fat()) as recv:
        for _ in range(2):
            sender = recv.send(here, source + '/')
            check(sender.wait(60) == PARTLY, sender.report())
            refused_ = {e['name'] for e in events(sender, 'entry_done') if 'differs from it only in case' in e.get('text', '')}
            there = {os.path.relpath(os.path.join(where, file), folder) for where, _, files in os.walk(folder) for file in files}
            check(there | refused_ == {*content, 'OTHER'} and not there & refused_, (there, refused_))
            for name in there - {'OTHER'}:
                with open(os.path.join(folder, name), 'rb') as f:
                    check(f.read() == content[name], name)
    with Receiver(here, folder, '--once') as recv:  # both fit where case counts
        recv.take(here, source + '/')
        check_same(source, folder)


def disk_full(size):
    """The receiver's disk is full. Both sides report it, no wrong file remains, and the receiver continues to serve. When
    there is space again, the transfer resumes."""
    folder = fresh('there')
    mount = ['unshare', '-m', 'sh', '-c', f'mount -t tmpfs -o size={size} tmpfs {folder} && exec "$@"', 'sh']
    with Receiver(here, folder, '--keep-ticket', argv_prefix=mount) as recv:
        inside = f'/proc/{recv.process.pid}/root{folder}'
        large = os.path.join(it(), 'large')
        process = recv.send(here, large)
        status = process.wait(60)
        check(status == REMOTE_IO, f'exit status {status}\n{process.report()}\n{recv.process.report()}')
        check('No space left' in process.text(), process.report())
        check_no_wrong(it(), inside)
        ended = wait_until('the end', lambda: events(recv.process, 'ended'))[-1]
        check(ended.get('part_files') == 1 and
              os.path.exists(os.path.join(inside, os.path.basename(ended['part_file']))), ended)
        recv.take(here, os.path.join(it(), 'odd', 'size 0'))  # an empty file needs no space
        here.run('nsenter', '-t', str(recv.process.pid), '-m', 'mount', '-o', 'remount,size=100m', folder)
        ended = recv.take(here, large)
        check(ended['bytes_kept'], f'nothing was kept: {ended}')
        for name in ('large', 'odd/size 0'):
            with open(os.path.join(it(), name), 'rb') as a, open(os.path.join(inside, os.path.basename(name)), 'rb') as b:
                check(a.read() == b.read(), f'{name} differs')
        recv.end(signal.SIGTERM)


def disk_full_at_a_long_name():
    """Both sides tell the reason, however long the name is. What is shown of it begins with a whole character."""
    folder, deep = fresh('there'), os.path.join(base, 'deep')
    inside = os.path.join(deep, 'd' * 200, '長' * 66)
    os.makedirs(inside)
    make_large(os.path.join(inside, 'largest'), 6 * MIB)
    mount = ['unshare', '-m', 'sh', '-c', f'mount -t tmpfs -o size=4m tmpfs {folder} && exec "$@"', 'sh']
    with Receiver(here, folder, argv_prefix=mount) as recv:
        ended = recv.take(here, deep, status=REMOTE_IO)
        check('/largest: No space left on device' in ended['text'], ended)
        ended = wait_until('the end', lambda: events(recv.process, 'ended'))[0]
        check('...長' in ended['text'] and ended['text'].endswith('長/largest: No space left on device'), ended)


def nobody_reads(who):
    """Nobody reads the output of `roci recv -`, and the pipe is full. Either side can still be stopped."""
    large, ticket, pipe = os.path.join(it(), 'large'), os.path.join(base, 'ticket'), os.path.join(base, 'pipe')
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recv = here.start('sh', '-c', 'out=$1; shift; exec "$@" >"$out"', 'sh', pipe, ROCI, 'recv', '-', '--device', here.device,
                      '--port', '0', '--json', '--bind', here.address, '--ticket-file', ticket, '--once',
                      plain=True, env=environment())
    sender = None
    try:
        wait_until('the receiver to listen', lambda: events(recv, 'listening') or not recv.running())
        wait_until('the ticket', lambda: os.path.exists(ticket) or not recv.running())
        sender = here.start(ROCI, 'send', '--device', here.device, '--json', large, '@' + ticket, plain=True, env=environment())
        wait_until('some of it', lambda: select.select([end], [], [], 0)[0] or not sender.running())
        (sender if who == 'sender' else recv).popen.send_signal(signal.SIGTERM)
        for process, stopped in ((sender, who == 'sender'), (recv, who == 'receiver')):
            status = process.wait(20)
            check(status == INTERRUPTED or (status == LOST and not stopped), f'exit status {status}\n{process.report()}')
    finally:
        os.close(end)
        recv.end(signal.SIGKILL)
        if sender:
            sender.end()
        os.unlink(pipe)
        if os.path.exists(ticket):
            os.unlink(ticket)


def cable_cut():
    """The network between the hosts goes away. Both sides notice, and the transfer resumes when it is back."""
    folder = fresh('there')
    with Receiver(far, folder, '--timeout', '3s') as recv:
        sender = recv.send(near, it(), '--limit', '10M', '--timeout', '3s', '--retry-for', '0')
        try:
            begun(sender)
            wait_until('some of it', lambda: any(e['bytes_done'] for e in events(sender, 'progress')))
            near.run('ip', 'link', 'set', near.link, 'down')
            status = sender.wait(40)
            check(status == LOST, f'exit status {status}\n{sender.report()}')
            wait_until('the receiver to notice', lambda: events(recv.process, 'ended'), 40)
            check(events(recv.process, 'ended')[0]['exit_status'] == LOST, recv.process.report())
            check_no_wrong(source, folder)
        finally:
            near.run('ip', 'link', 'set', near.link, 'up')
            sender.end()
        ended = recv.take(near, it())
        check_same(source, folder)
        check(ended['bytes_kept'] + ended['bytes_unchanged'], f'nothing was kept: {ended}')
        recv.end(signal.SIGTERM)


def frozen_sender():
    """The receiver gives up a silent sender, and serves others before that."""
    folder = fresh('there')
    with Receiver(far, folder, '--timeout', '3s', '--keep-ticket') as recv:
        sender = recv.send(near, it(), '--limit', '10M', '--retry-for', '0')
        try:
            begun(sender)
            sender.popen.send_signal(signal.SIGSTOP)
            other = os.path.join(base, 'another')
            write(other, b'x' * 100000)
            recv.take(far, other)
            wait_until('the receiver to give up', lambda: any(e['exit_status'] == LOST for e in events(recv.process, 'ended')), 40)
        finally:
            sender.popen.send_signal(signal.SIGCONT)
        status = sender.wait(40)
        check(status in (LOST, REMOTE_IO), f'exit status {status}\n{sender.report()}')
        recv.take(near, it())
        os.unlink(os.path.join(folder, 'another'))
        check_same(source, folder)
        recv.end(signal.SIGTERM)


def impatient(who):
    """One side gives up sooner than the other is used to say that it is there. The other one learns that, and says so more often."""
    folder, gate, few, soon = fresh('there'), os.path.join(base, 'gate'), os.path.join(base, 'few'), ['--timeout', '2s', '--retry-for', '0']
    if who == 'receiver':  # the sender has nothing to send for some time
        with Receiver(here, folder, '--once', *soon) as recv:
            sender = here.start('sh', '-c', 'exec 3<"$1"; shift; (sleep 5; cat <&3) | "$@"', 'sh', os.path.join(it(), 'large'), ROCI, 'send', '--device',
                                here.device, '--json', *recv.trust, '-', f'{recv.address}:{recv.port}', plain=True, env=environment())
            check(sender.wait(60) == OK and recv.process.wait(20) == OK, f'{sender.report()}\n{recv.process.report()}')
        return
    os.mkdir(few)
    make_small(few, 3)
    with Receiver(here, folder, '--once', argv_prefix=slow_disk(gate, 'SLOW_FOLDERS=1')) as recv:
        write(gate, b'')
        sender = recv.send(here, few, *soon)
        try:
            wait_until('folders to be synced', lambda: os.path.exists(gate + '.waiting') or not sender.running())
            time.sleep(5)  # the receiver has nothing to say for some time
        finally:
            os.unlink(gate)
        check(sender.wait(20) == OK and recv.process.wait(20) == OK, f'{sender.report()}\n{recv.process.report()}')
        os.unlink(gate + '.waiting')


def one_after_the_other():
    """Two senders send the same file, and the first is slow. The second waits, says so, and then has nothing to send."""
    folder, large = fresh('there'), os.path.join(it(), 'large')
    with Receiver(here, folder, '--keep-ticket') as recv:
        first = recv.send(here, large, '--limit', '2M')
        try:
            begun(first)
            wait_until('some of it', lambda: any(e['bytes_done'] for e in events(first, 'progress')))
            ended = recv.take(here, large)
            check(first.wait(60) == OK, first.report())
        finally:
            first.end()
        check(ended['entries_unchanged'] == 1, ended)
        check(any('another transfer of the same file: large' in e['text'] for e in events(recv.process, 'warning')),
              recv.process.report())
        recv.end(signal.SIGTERM)


def many_senders():
    """Eight senders at once, each with its own folder; and three senders with the same file."""
    folder, own = fresh('there'), fresh('own')
    for number in range(8):
        make_small(os.path.join(own, f'from {number}'), 50)
        write(os.path.join(own, f'from {number}', 'larger'), os.urandom(3 * MIB))
    same = os.path.join(own, 'the same')
    make_large(same, 5 * MIB)
    with Receiver(here, folder, '--keep-ticket') as recv:
        senders = [recv.send(here, os.path.join(own, f'from {n}'), '--mode', ('write', 'read', 'send')[n % 3], '--qps', '2')
                   for n in range(8)]
        senders += [recv.send(here, same) for _ in range(3)]
        try:
            for sender in senders:
                status = sender.wait(60)
                check(status == OK, f'exit status {status}\n{sender.report()}\n{recv.process.report()}')
        finally:
            for sender in senders:
                sender.end()
        check_same(own, folder)
        recv.end(signal.SIGTERM)


def few_descriptors():
    """A receiver with few file descriptors takes few files at a time."""
    folder = fresh('there')
    with Receiver(here, folder, '--compare', argv_prefix=['prlimit', '--nofile=200', '--']) as recv:
        recv.take(here, it(), '--checksum')
        check_same(source, folder)


def given_up():
    """A file that changes while it is sent is given up, and the other arrives. The receiver names what it has kept of the first one."""
    folder, file, other = fresh('there'), os.path.join(base, 'changes'), os.path.join(base, 'stays')
    make_large(file, INTERRUPTED_SIZE)
    write(other, b'x' * 1000)
    with Receiver(here, folder) as recv:
        sender = recv.send(here, file, other, '--limit', '4M', '--chunk', '64K')
        reached(sender, 0.1)
        os.truncate(file, 10)
        check(sender.wait(60) == PARTLY, sender.report())
        ended = wait_until('the end', lambda: events(recv.process, 'ended'))[-1]
        check(ended.get('part_files') == 1 and os.path.exists(ended['part_file']), ended)
        recv.take(here, file)
        check(sorted(os.listdir(folder)) == ['changes', 'stays'], os.listdir(folder))


def made_as_read():
    """Files of /proc and /sys, whose size is not that of their content, do not arrive empty: they are refused, with a way to send them.
    A file that is empty arrives."""
    folder, empty, more, less = fresh('there'), os.path.join(base, 'empty'), '/proc/version', '/sys/kernel/uevent_seqnum'
    write(empty, b'')
    check(os.stat(more).st_size == 0 and os.stat(less).st_size > len(open(less).read()), 'the kernel gives them other sizes')
    with Receiver(here, folder, '--keep-ticket') as recv:
        for path in (more, less):
            sender = recv.send(here, path, empty)
            check(sender.wait(60) == PARTLY, sender.report())
            reasons = {e['name']: e['text'] for e in events(sender, 'entry_done') if e['outcome'] == 'refused'}
            check(reasons == {os.path.basename(path): 'its size is not that of its content, as in /proc and /sys; `roci send - < FILE` '
                              'sends such a file'}, reasons)
            check(os.listdir(folder) == ['empty'], os.listdir(folder))
        recv.take(here, more, status=LOCAL_IO)
        sender = here.start('sh', '-c', 'exec "$@" </proc/version', 'sh', ROCI, 'send', '--device', here.device, *recv.trust, '-',
                            f'{recv.address}:{recv.port}', plain=True, env=environment())
        check(sender.wait(60) == OK, sender.report())
        with open(more, 'rb') as a, open(os.path.join(folder, 'stdin'), 'rb') as b:
            check(a.read() == b.read(), 'the stream differs')


def left_by(folder, file):
    """A transfer of the file with a ticket of its own has ended too early, and has left some of it."""
    with Receiver(here, folder) as recv:
        sender = recv.send(here, file, '--limit', '4M', '--chunk', '64K')
        try:
            reached(sender, 0.1)
            check(sender.running(), sender.report())
        finally:
            sender.end(signal.SIGINT)
        wait_until('the receiver to notice', lambda: events(recv.process, 'ended'))


def another_ticket():
    """A receiver that was started again has another ticket. The transfer resumes with it, but the receiver tells no digest of
    what the other ticket has left: it compares the sender's."""
    folder, file = fresh('there'), os.path.join(base, 'another ticket')
    make_large(file, INTERRUPTED_SIZE)
    left_by(folder, file)
    with Receiver(here, folder) as recv:
        sender = recv.send(here, file, '--chunk', '64K')
        check(sender.wait(60) == OK, sender.report())
        ended = events(sender, 'ended')[-1]
        check(ended['bytes_kept'] >= MIB and ended['bytes_moved'] + ended['bytes_kept'] == INTERRUPTED_SIZE, ended)
        told = [e['text'] for e in events(sender, 'step') if e['text'].startswith('HAVE')]
        check(told and all('no digests' in text for text in told), sender.report())
    check(filecmp.cmp(file, os.path.join(folder, 'another ticket'), shallow=False), 'another content')


def another_file_of_that_size():
    """What another ticket has left is of another file with the same size and time. The sender cannot know. The receiver
    refuses the file, once, and keeps nothing; then it arrives."""
    folder, file = fresh('there'), os.path.join(base, 'another file')
    for content in (b'x', b'y'):
        write(file, content * INTERRUPTED_SIZE, mtime_ns=10 ** 18)
        if content == b'x':
            left_by(folder, file)
    with Receiver(here, folder, '--keep-ticket') as recv:
        ended = recv.take(here, '--chunk', '64K', file, status=MISMATCH)
        check(not os.listdir(folder), os.listdir(folder))
        ended = recv.take(here, '--chunk', '64K', file)
        check(ended['bytes_moved'] == INTERRUPTED_SIZE, ended)
    check(filecmp.cmp(file, os.path.join(folder, 'another file'), shallow=False), 'another content')


def compared():
    """--checksum: the receiver compares contents only if it has --compare; if it has not, both sides say so."""
    folder = fresh('there')
    file, copy = os.path.join(base, 'compared'), os.path.join(folder, 'compared')
    write(file, b'x' * 3 * MIB, mtime_ns=10 ** 18)
    write(copy, b'x' * 2 * MIB + b'y' * MIB, mtime_ns=10 ** 18)
    with Receiver(here, folder) as recv:
        sender = recv.send(here, '--checksum', file)
        check(sender.wait(60) == OK, sender.report())
        check(events(sender, 'ended')[-1]['bytes_unchanged'] == 3 * MIB, sender.report())
        for side in (sender, recv.process):
            check('--compare' in ''.join(e['text'] for e in events(side, 'warning')), side.report())
    with Receiver(here, folder, '--compare') as recv:
        ended = recv.take(here, '--checksum', file)
        check(ended['bytes_kept'] == 2 * MIB and ended['bytes_moved'] == MIB, ended)
    with open(copy, 'rb') as f:
        check(f.read() == b'x' * 3 * MIB, 'another content')


def at_most_so_many():
    """A sender beyond --max-sessions is refused, with this reason."""
    folder = fresh('there')
    with Receiver(here, folder, '--keep-ticket', '--max-sessions', '1') as recv:
        first = recv.send(here, it(), '--limit', '10M')
        try:
            begun(first)
            second = recv.send(here, it())
            status = second.wait(20)
            check(status == NO_CONNECT and 'as many sessions' in second.text(), f'{status}\n{second.report()}')
        finally:
            first.end(signal.SIGKILL)
        wait_until('the receiver to notice', lambda: events(recv.process, 'ended'), 40)
        recv.take(here, it())
        check_same(source, folder)


def wrong_ticket():
    """A sender with another ticket, or without one, is refused and learns nothing. The right ticket still works."""
    folder = fresh('there')
    with Receiver(here, folder) as recv, Receiver(here, fresh('other')) as other:
        right = recv.trust
        for wrong in (other.trust, ['--open']):
            recv.trust = wrong
            process = recv.send(here, it())
            status = process.wait(20)
            check(status == NO_TRUST, f'exit status {status}\n{process.report()}')
            check(not os.listdir(folder), f'something was written: {os.listdir(folder)}')
        recv.trust = right
        recv.take(here, it())
        check_same(source, folder)
        with open(recv.ticket_file) as f:
            used_up = f.read()
        recv.take(here, it())  # with the next ticket
        check(used_up != '', 'no ticket')
        recv.end(signal.SIGTERM)


def nobody_listens():
    with Receiver(here, fresh('there')) as recv:
        recv.process.end()
        process = recv.send(here, it())
        status = process.wait(30)
        check(status == NO_CONNECT, f'exit status {status}\n{process.report()}')


cases = [(f'{who} killed, {mode}{more}', kills(who, mode, count, more)) for who in ('sender', 'receiver')
         for mode in ('write', 'read', 'send') for more, count in (('', KILLS), (', more', MORE_KILLS))]
cases += [(f'{who} stopped', lambda who=who: stopped(who)) for who in ('sender', 'receiver')]
cases += [(f'nobody reads, {who} stopped', lambda who=who: nobody_reads(who)) for who in ('sender', 'receiver')]
cases += [(f'impatient {who}', lambda who=who: impatient(who)) for who in ('sender', 'receiver')]
cases += [('refused', refused), ('in the way', in_the_way), ('a file system like FAT', like_on_a_stick), ('names that differ in case', names_that_differ_in_case), ('dry run', dry_run), ('disk full', lambda: disk_full('12m')),
          ('disk full at the end', lambda: disk_full('24m')), ('disk full at a long name', disk_full_at_a_long_name), ('cable cut', cable_cut),
          ('frozen sender', frozen_sender), ('many senders', many_senders), ('one after the other', one_after_the_other),
          ('few descriptors', few_descriptors), ('given up', given_up), ('files made as they are read', made_as_read), ('--checksum and --compare', compared),
          ('another ticket', another_ticket), ('another file of that size', another_file_of_that_size), ('no more than --max-sessions', at_most_so_many), ('wrong ticket', wrong_ticket),
          ('nobody listens', nobody_listens)]
sys.exit(tap(cases, quick=lambda name: not name.endswith('more')))
