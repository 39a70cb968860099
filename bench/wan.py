#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/wan.py [--roci ROCI] [--seconds N] [--only NAME,...] [--with NAME,...] [--json]

One file over links that are far, narrow or lossy: `roci send` beside TCP with CUBIC and BBR (iperf3), between two network
namespaces that wan_link.c joins. Prints, for each link, the share of its rate that each of them had, from the start of the
sending program to its end; a file is as long as the link carries in N seconds (default: 8), and who needs five times that is
stopped. Needs no root where user namespaces are allowed, and no netem. Nothing here fails for being slow.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ['PATH'] += ':/usr/sbin:/sbin'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
import harness  # noqa: E402
from harness import Failure, Host, check, isolate, next_port, wait_until  # noqa: E402

MBIT = 1e6
# name: rate in Mbit/s, delay one way in us, queue in bytes (0: a bandwidth-delay product), loss in ppm
LINKS = {
    'lan': ('1 Gbit/s, 0.2 ms', 1000, 100, 131072, 0),
    'short': ('50 Mbit/s, 5 ms, queue 64 KB', 50, 2500, 65536, 0),
    'far': ('1 Gbit/s, 20 ms', 1000, 10000, 0, 0),
    'farther': ('100 Mbit/s, 100 ms', 100, 50000, 0, 0),
    'satellite': ('200 Mbit/s, 600 ms', 200, 300000, 0, 0),
    'far-lossy': ('1 Gbit/s, 20 ms, 0.1% lost', 1000, 10000, 0, 1000),
    'farther-lossy': ('100 Mbit/s, 100 ms, 1% lost', 100, 50000, 0, 10000),
}
PROGRAMS = ('roci send', 'roci send --mode send', 'cubic', 'bbr')


class Wan:
    """Two hosts and the link between them."""

    def __init__(self, program, rate, delay, queue, loss):
        self.sleepers = [subprocess.Popen(['unshare', '-n', 'sleep', '1800']) for _ in range(2)]
        own = os.readlink('/proc/self/ns/net')
        for s in self.sleepers:
            wait_until('a namespace', lambda pid=s.pid: os.readlink(f'/proc/{pid}/ns/net') != own)
        self.link = subprocess.Popen([program, '-r', str(rate * 1000000), '-d', str(delay), '-q', str(queue), '-l', str(loss),
                                      *[f'/proc/{s.pid}/ns/net' for s in self.sleepers]], stdout=subprocess.PIPE, text=True)
        check(self.link.stdout.readline() == 'ready\n', 'wan_link did not start')
        self.sender, self.receiver = [Host(name, s.pid, f'10.78.0.{i + 1}')
                                      for i, (name, s) in enumerate(zip(('sender', 'receiver'), self.sleepers))]
        for here, there in ((self.sender, self.receiver), (self.receiver, self.sender)):
            here.run('ip', 'link', 'set', 'lo', 'up')
            here.run('ip', 'link', 'set', 'wan', 'mtu', '1500', 'txqueuelen', '10000', 'up')
            here.run('ip', 'addr', 'add', here.address, 'peer', there.address, 'dev', 'wan')
            for name in ('tcp_rmem', 'tcp_wmem'):
                here.run('sysctl', '-q', '-w', f'net.ipv4.{name}=4096 131072 67108864')

    def end(self):
        for process in (self.link, *self.sleepers):
            process.kill()
            process.wait()


def roci(wan, size, scratch, options, seconds, more):
    port, ticket = next_port(), f'{scratch}/ticket'
    source, target = f'{scratch}/file', tempfile.mkdtemp(dir=scratch)
    if os.path.exists(ticket):
        os.unlink(ticket)
    with open(source, 'wb') as f:
        f.truncate(0)
        block = os.urandom(1 << 20)
        for _ in range(size >> 20):
            f.write(block)
    receiver = wan.receiver.start(options.roci, 'recv', '--device', 'embedded', '--dir', target, '--port', str(port), '--once',
                                  '--ticket-file', ticket, '--bind', wan.receiver.address, '--quiet', plain=True)
    try:
        wait_until('the ticket', lambda: os.path.exists(ticket) and os.path.getsize(ticket) or not receiver.running())
        start = time.monotonic()
        sender = wan.sender.start(options.roci, 'send', '--device', 'embedded', '--quiet', *more, '--ticket-file', ticket, source,
                                  f'{wan.receiver.address}:{port}', plain=True)
        status = sender.wait(seconds)
        took = time.monotonic() - start
        if status is None:
            sender.end()
            return None
        check(status == 0, sender.report())
        check(receiver.wait(30) == 0, receiver.report())
        return took
    finally:
        receiver.end()
        subprocess.run(['rm', '-rf', target], check=True)


def tcp(wan, size, options, seconds, control):
    port = next_port()
    server = wan.receiver.start('iperf3', '-s', '-1', '-p', str(port), plain=True)
    try:
        wait_until('iperf3', lambda: wan.receiver.listens(port))
        start = time.monotonic()
        client = wan.sender.start('iperf3', '-c', wan.receiver.address, '-p', str(port), '-n', str(size), '-C', control, '-J',
                                  plain=True)
        status = client.wait(seconds)
        if status is None:
            client.end()
            return None
        check(status == 0, client.report())
        return time.monotonic() - start
    finally:
        server.end()


def measure(wan, program, size, scratch, options, seconds):
    if program.startswith('roci send'):
        return roci(wan, size, scratch, options, seconds, program.split()[2:])
    return tcp(wan, size, options, seconds, program)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = os.environ.get('ROCI_BUILD', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'build'))
    parser.add_argument('--roci', default=os.path.join(build, 'roci', 'roci'))
    parser.add_argument('--seconds', type=float, default=8)
    parser.add_argument('--only', default=','.join(LINKS))
    parser.add_argument('--with', dest='programs', default=','.join(PROGRAMS))
    parser.add_argument('--json', action='store_true')
    options = parser.parse_args()
    isolate()
    programs, shares = options.programs.split(','), {}
    print(f'{"link":30}' + ''.join(f'{name:>24}' for name in programs), file=sys.stderr if options.json else sys.stdout)
    with tempfile.TemporaryDirectory(dir='/dev/shm') as scratch:
        for name in options.only.split(','):
            title, rate, delay, queue, loss = LINKS[name]
            size = max(1, int(rate * MBIT / 8 * options.seconds) >> 20) << 20
            row = shares.setdefault(name, {})
            for program in programs:
                wan = Wan(os.path.join(build, 'bench', 'wan_link'), rate, delay, queue, loss)
                try:
                    took = measure(wan, program, size, scratch, options, 5 * options.seconds)
                except Failure as failure:
                    print(failure, file=sys.stderr)
                    took = None
                finally:
                    wan.end()
                row[program] = round(size * 8 / took / (rate * MBIT), 3) if took else None
            cells = ''.join(f'{"not done" if row[p] is None else format(row[p], ".2f"):>24}' for p in programs)
            print(f'{title:30}{cells}', file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps(shares))


if __name__ == '__main__':
    main()
