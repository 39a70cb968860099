#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/wan.py [--link NAME,...] [--with PROGRAM,...] [--rounds N] [--seconds N] [--minutes N] [--roci ROCI] [--json]
[--line] [--list]

One file over links that are far, narrow or lossy: `roci send` beside TCP with CUBIC and BBR (wan_tcp.c), between two network
namespaces that wan_link.c joins. The programs take turns, each with a link of its own. Prints the medians of the share of the link's
rate that each had, from the start of the sending program to its end, when the receiver (which stays) has all of the file; what ours is to the
better TCP; the round trips that pass between `roci send`'s look at the files and its first content; and whether the goal is met.
`shared` has a CUBIC flow (iperf3) beside each of them.

A file is as long as the link carries in --seconds (default: 8). Who needs four times that is stopped and not tried again: "not
done". After --minutes (default: 20) nothing new begins. Needs no root where user namespaces are allowed, and no netem. Nothing
here fails for being slow: exit status 1 means that something could not be measured.
"""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime

os.environ['PATH'] += ':/usr/sbin:/sbin'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
from harness import Failure, Host, check, isolate, next_port, wait_until  # noqa: E402

PATIENCE = 4  # times the seconds that the file takes at the link's rate
OURS = 'roci send'
PROGRAMS = (OURS, 'cubic', 'bbr')
MACS = ('02:00:00:00:00:01', '02:00:00:00:00:02')


@dataclasses.dataclass
class Link:
    title: str
    mbit: int
    delay_us: int  # one way
    queue: int = 0  # bytes; 0: a bandwidth-delay product
    lost_ppm: int = 0
    beside: str = ''  # a TCP flow that is there before
    goal: str = 'above both'


LINKS = {
    'lan': Link('1 Gbit/s, 0.2 ms', 1000, 100, 131072),
    'lan-lossy': Link('1 Gbit/s, 0.2 ms, 0.1% lost', 1000, 100, 131072, lost_ppm=1000, goal='above CUBIC'),
    'near-lossy': Link('300 Mbit/s, 0.8 ms, 0.5% lost', 300, 400, 131072, lost_ppm=5000, goal='above CUBIC'),
    'shallow': Link('300 Mbit/s, 5 ms, queue 32 KB', 300, 2500, 32768, goal='above CUBIC'),
    'short': Link('50 Mbit/s, 5 ms, queue 64 KB', 50, 2500, 65536, goal='0.9'),
    'far': Link('1 Gbit/s, 20 ms', 1000, 10000, goal='above both, 0.9 after the start'),
    'farther': Link('100 Mbit/s, 100 ms', 100, 50000),
    'wide': Link('1 Gbit/s, 300 ms', 1000, 150000),
    'satellite': Link('200 Mbit/s, 600 ms', 200, 300000),
    'far-lossy': Link('1 Gbit/s, 20 ms, 0.1% lost', 1000, 10000, lost_ppm=1000, goal='above BBR'),
    'farther-lossy': Link('100 Mbit/s, 100 ms, 1% lost', 100, 50000, lost_ppm=10000, goal='above BBR'),
    'shared': Link('100 Mbit/s, 20 ms, with CUBIC', 100, 10000, beside='cubic', goal='0.3 to 0.7'),
}


class Wan:
    """Two hosts and the link between them, which loses the packets that `seed` says."""
    count = 0

    def __init__(self, program, link, seed):
        Wan.count += 1
        outer = [f'wan{Wan.count}{end}' for end in 'ab']
        self.sleepers = [subprocess.Popen(['unshare', '-n', 'sleep', '1800']) for _ in range(2)]
        own = os.readlink('/proc/self/ns/net')
        for s, name in zip(self.sleepers, outer):
            wait_until('a namespace', lambda pid=s.pid: os.readlink(f'/proc/{pid}/ns/net') != own)
            run = ['ip', 'link', 'add', name, 'mtu', '1500', 'type', 'veth', 'peer', 'name', 'wan', 'netns', str(s.pid)]
            subprocess.run(run, check=True)
            subprocess.run(['ip', 'link', 'set', name, 'addrgenmode', 'none', 'up'], check=True)
        self.sender, self.receiver = [Host(name, s.pid, f'10.78.0.{i + 1}')
                                      for i, (name, s) in enumerate(zip(('sender', 'receiver'), self.sleepers))]
        for here, mac in ((self.sender, MACS[0]), (self.receiver, MACS[1])):
            here.run('ip', 'link', 'set', 'lo', 'up')
            here.run('ip', 'link', 'set', 'wan', 'mtu', '1500', 'txqueuelen', '10000', 'address', mac, 'addrgenmode', 'none', 'up')
        for here, there, mac in ((self.sender, self.receiver, MACS[1]), (self.receiver, self.sender, MACS[0])):
            here.run('ip', 'addr', 'add', here.address, 'peer', there.address, 'dev', 'wan')
            here.run('ip', 'neigh', 'add', there.address, 'lladdr', mac, 'dev', 'wan', 'nud', 'permanent')
            for name in ('tcp_rmem', 'tcp_wmem'):
                here.run('sysctl', '-q', '-w', f'net.ipv4.{name}=4096 131072 67108864')
        self.link = subprocess.Popen([program, '-r', str(link.mbit * 1000000), '-d', str(link.delay_us), '-q', str(link.queue),
                                      '-l', str(link.lost_ppm), '-s', str(seed), *outer], stdout=subprocess.PIPE, text=True)
        check(self.link.stdout.readline() == 'ready\n', 'wan_link did not start')
        self.did = {}

    def end(self):
        """Ends the link; `did` has what it says that it did."""
        self.link.terminate()
        self.did = json.loads(self.link.communicate()[0])

    def carried(self):
        """Bytes that the sender's host has sent."""
        return json.loads(self.sender.run('ip', '-s', '-j', 'link', 'show', 'dev', 'wan'))[0]['stats64']['tx']['bytes']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.link, *self.sleepers):
            if process.poll() is None:
                process.kill()
                process.wait()


def when(line):
    return datetime.fromisoformat(line['time'].replace('Z', '+00:00')).timestamp()


def first_content(text):
    """Seconds from the end of the walk to the first content, as `roci send --json` tells. None: it does not."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{')]
    walked = [when(line) for line in lines if line['event'] == 'offered']
    content = [when(line) for line in lines if line['event'] == 'step' and line['text'].split()[0] in ('WRITE', 'SEND', 'READ')]
    return content[0] - walked[0] if walked and content else None


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.file, self.size = os.path.join(scratch, 'file'), 0

    def make_file(self, size):
        block = os.urandom(1 << 20)
        with open(self.file, 'wb') as f:
            for number in range(size >> 20):
                f.write(number.to_bytes(8, 'big') + block[8:])
        self.size = size

    def roci(self, wan, target, seconds, more):
        """Returns the seconds that it took, and those before the first content."""
        port, ticket = next_port(), os.path.join(self.scratch, 'ticket')
        roci = self.options.roci
        if os.path.exists(ticket):
            os.unlink(ticket)
        receiver = wan.receiver.start(roci, 'recv', '--device', 'embedded', '--dir', target, '--port', str(port), '--ticket-file', ticket, '--bind', wan.receiver.address, '--quiet', plain=True)
        try:
            wait_until('the ticket', lambda: os.path.exists(ticket) and os.path.getsize(ticket) or not receiver.running())
            start = time.monotonic()
            sender = wan.sender.start(roci, 'send', '--device', 'embedded', '--json', *more, '--ticket-file', ticket, self.file,
                                      f'{wan.receiver.address}:{port}', plain=True)
            status = sender.wait(seconds)
            took = time.monotonic() - start
            if status is None:
                return None, None
            check(status == 0, sender.report())
            check(os.path.getsize(os.path.join(target, 'file')) == self.size, receiver.report())
            return took, first_content(sender.text())
        finally:
            receiver.end()
            subprocess.run(['rm', '-rf', target], check=True)

    def iperf(self, wan, control):
        """A flow that does not end: its client, and its server."""
        port = next_port()
        server = wan.receiver.start('iperf3', '-s', '-1', '-p', str(port), plain=True)
        try:
            wait_until('iperf3', lambda: wan.receiver.listens(port))
            return wan.sender.start('iperf3', '-c', wan.receiver.address, '-p', str(port), '-C', control, '-t', '600', plain=True), server
        except BaseException:
            server.end()
            raise

    def tcp(self, wan, target, seconds, control):
        """Returns the seconds that it took. None: too long."""
        port, program = next_port(), os.path.join(self.options.build, 'bench', 'wan_tcp')
        server = wan.receiver.start(program, str(port), os.path.join(target, 'file'), plain=True)
        try:
            wait_until('wan_tcp', lambda: wan.receiver.listens(port))
            start = time.monotonic()
            client = wan.sender.start(program, '-C', control, self.file, wan.receiver.address, str(port), plain=True)
            status = client.wait(seconds)
            took = time.monotonic() - start
            check(not status, client.report())
            return took if status == 0 else None
        finally:
            server.end()

    @staticmethod
    def line(did, took):
        there = did['there']
        return (f'{took or 0:.2f} s; the line {there["seconds"]:.2f} s, idle {there["idle_s"]:.2f} (longest {there["longest_idle_s"]:.3f}); '
                f'{there["packets"]} packets and {did["back"]["packets"]} back, {there["dropped"]} and {did["back"]["dropped"]} dropped; '
                f'late {did["late_s"]:.2f} s, {there["late_us"]:.0f} and {did["back"]["late_us"]:.0f} us in the mean, '
                f'{there["latest_us"]:.0f} at most; {there["overrun"] + did["back"]["overrun"] + there["failed"] + did["back"]["failed"]} '
                f'failed; processor {did["user_s"] + did["system_s"]:.2f} s')

    def take(self, link, program, seed):
        """The share of the link's rate, after the first content too, and the round trips before that. None: not done."""
        seconds = PATIENCE * self.options.seconds
        os.sync()  # the disk is done with what was written before
        with (Wan(os.path.join(self.options.build, 'bench', 'wan_link'), link, seed) as wan,
              tempfile.TemporaryDirectory(dir=self.scratch) as target):
            beside = self.iperf(wan, link.beside) if link.beside else ()
            try:
                if beside:  # until it has filled the queue
                    wait_until('the flow beside', lambda: wan.carried() > link.mbit * 125000)
                if program.startswith(OURS):
                    took, before = self.roci(wan, target, seconds, program.split()[2:])
                else:
                    took, before = self.tcp(wan, target, seconds, program), None
            finally:
                for process in beside:
                    process.end()
            wan.end()
            if self.options.line:
                print(f'{link.title}, {program}: {self.line(wan.did, took)}', file=sys.stderr)
        if took is None:
            return None
        least = self.size * 8 / (link.mbit * 1e6)
        return least / took, least / (took - (before or 0)), before and before / (2e-6 * link.delay_us)


def met(link, row):
    """Whether ours meets the link's goal. None: what it takes was not measured."""
    ours, rivals = row.get(OURS), [row[name] for name in ('cubic', 'bbr') if name in row]
    if not ours:
        return None
    if link.goal == '0.3 to 0.7':
        return 0.3 <= ours['share'] <= 0.7
    if link.goal == '0.9':
        return ours['share'] >= 0.9
    if link.goal in ('above BBR', 'above CUBIC'):
        rivals = [row[name] for name in row if name == link.goal.split()[1].lower()]
    elif len(rivals) < 2:
        return None
    if not rivals:
        return None
    return all(ours['share'] > r['share'] for r in rivals) and ('start' not in link.goal or ours['after_start'] >= 0.9)


def measure(bench, link, programs, ends_at):
    """{program: its medians}; a program that was not measured is not there. False: time is over, or something failed."""
    found, whole = {name: [] for name in programs}, True
    size = max(1, int(link.mbit * 125000 * bench.options.seconds * (0.5 if link.beside else 1)) >> 20) << 20
    bench.make_file(size)
    for number in range(bench.options.rounds):
        for name in programs[number % len(programs):] + programs[:number % len(programs)]:
            if None in found[name]:
                continue
            if time.monotonic() > ends_at:
                whole = False
                continue
            try:
                found[name].append(bench.take(link, name, number))
            except Failure as failure:
                print(f'wan.py: {link.title}, {name}: {failure}', file=sys.stderr)
                found[name].append(None)
                whole = False
    row = {}
    for name, figures in found.items():
        done = [f for f in figures if f]
        if not figures:
            continue
        columns = [statistics.median(f[i] for f in done) if done and None not in (f[i] for f in done) else 0 for i in range(3)]
        row[name] = dict(zip(('share', 'after_start', 'round_trips'), (0, 0, 0) if None in figures else columns))
        row[name]['shares'] = [f and round(f[0], 3) for f in figures]
    return row, whole


def show(link, programs, row):
    def cell(name):
        return '-' if name not in row else format(row[name]['share'], '.2f') if row[name]['share'] else 'not done'

    ours, best = row.get(OURS), max((row[n]['share'] for n in ('cubic', 'bbr') if n in row), default=0)
    ratio = format(ours['share'] / best, '.2f') if ours and best else '-'
    first = format(ours['round_trips'], '.1f') if ours and ours['round_trips'] and link.delay_us >= 2500 else '-'
    goal = {None: '-', True: 'yes', False: 'NO'}[met(link, row)]
    return (f'{link.title:29}' + ''.join(f'{cell(n):>{max(9, len(n) + 2)}}' for n in programs) +
            f'{ratio:>10}{first:>13}  {goal:4} {link.goal}')


def named(text, known, what):
    for name in text.split(','):
        if name not in known:
            sys.exit(f'wan.py: there is no {what} "{name}"; there are: {", ".join(known)}')
    return text.split(',')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    build = os.environ.get('ROCI_BUILD', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'build'))
    parser.add_argument('--link', default=','.join(LINKS), help=f'some of {", ".join(LINKS)}')
    parser.add_argument('--with', dest='programs', default=','.join(PROGRAMS), help='"roci send --mode send" is possible, too')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=8)
    parser.add_argument('--minutes', type=float, default=20)
    parser.add_argument('--build', default=build, help='where Meson has built')
    parser.add_argument('--roci', help='another roci than that of --build')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--line', action='store_true', help='say of each run what the link did')
    parser.add_argument('--list', action='store_true', help='print the links, and end')
    options = parser.parse_args()
    options.roci = options.roci or os.path.join(options.build, 'roci', 'roci')
    options.links = named(options.link, LINKS, 'link')
    options.programs = options.programs.split(',')
    for name in options.programs:
        if name.startswith(OURS):
            continue
        named(name, PROGRAMS, 'program')
    return options


def main():
    options = arguments()
    if options.list:
        print('\n'.join(f'{name:15} {link.title:32} {link.goal}' for name, link in LINKS.items()))
        return 0
    isolate(users=True)  # root may give the link's program its priority
    to = sys.stderr if options.json else sys.stdout
    load, processors = os.getloadavg()[0], os.cpu_count()
    if load > processors / 2:
        print(f'wan.py: the machine is busy (load {load:.0f}, {processors} processors): the figures say little', file=sys.stderr)
    head = ''.join(f'{name:>{max(9, len(name) + 2)}}' for name in options.programs)
    print(f'{"share of the rate":29}{head}{"best TCP":>10}{"first byte":>13}  goal', file=to)
    print(f'{"":29}{"":{len(head)}}{"ours / it":>10}{"round trips":>13}', file=to, flush=True)
    rows, whole, ends_at = {}, True, time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(dir='/dev/shm') as scratch:
        bench = Bench(options, scratch)
        for name in options.links:
            row, complete = measure(bench, LINKS[name], options.programs, ends_at)
            whole &= complete
            rows[name] = {**row, 'goal': LINKS[name].goal, 'met': met(LINKS[name], row)}
            print(show(LINKS[name], options.programs, row), file=to, flush=True)
    if options.json:
        print(json.dumps(rows))
    if time.monotonic() > ends_at:
        print(f'wan.py: {options.minutes:g} minutes were over; --minutes allows more, --link takes some of the links', file=sys.stderr)
    return 0 if whole else 1


if __name__ == '__main__':
    sys.exit(main())
