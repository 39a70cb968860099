#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/mover.py [--roci ROCI] [--before ROCI] [--rounds N] [--gib N] [--files N] [--dir DIR] [--only NAME,...] [--json]

Files over the wire: `roci send` beside nc, rsync (its daemon, and over ssh) and scp, between two network namespaces joined by a
veth, and beside cp on one host. All move the same files: one large file, then a folder of many small ones. nc and rsync's daemon
do not encrypt; scp, rsync over ssh and `roci send` do, except with --no-encrypt.

`roci recv` returns when all is synced and the others do not sync, so each is timed twice: to its end, and to the end of a
`sync -f` after it. On a busy machine the time of the processors, at both ends together, says more. Each round starts with the
next program. Prints every round, the medians and the ratios; --json prints the medians as one JSON object, and the rest to
standard error.

A NAME of --only is one of those that the output has, or `roci send` with any options: --only 'roci send,roci send --qps 1,nc'.
`one host` is `roci send` with both ends in one namespace, where it takes the local path; cp is to be compared with it.
`before` stands for `roci send` of the build that --before names, to measure both in the same run, and takes options too.

Needs the packages of `scripts/install-deps.sh --bench`; ssh and scp need root, because sshd does. Nothing here fails for being slow.
"""
import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

os.environ['PATH'] += ':/usr/sbin:/sbin'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
import harness  # noqa: E402
from harness import Failure, check, next_port, veth_pair, wait_until  # noqa: E402

MIB = 1 << 20


def isolate():
    """Enters a network namespace. As root without a user namespace, because sshd does not run in one."""
    if os.geteuid() == 0 and not os.environ.get('ROCI_TEST_ISOLATED'):
        os.execvpe('unshare', ['unshare', '-n', '/usr/bin/python3', *sys.argv], dict(os.environ, ROCI_TEST_ISOLATED='1'))
    harness.isolate()


class Wire:
    """The two hosts, the files, and one method per program: each moves `source` into the empty folder `target`."""

    def __init__(self, roci, before, scratch, mtu):
        self.receiver, self.sender = veth_pair(mtu)
        self.roci, self.before, self.scratch = roci, before, scratch

    def call(self, host, *argv, **kw):
        return host.call(*argv, plain=True, seconds=600, **kw)

    def cp(self, source, target):
        self.call(self.sender, 'cp', '-a', source, target)

    def roci_send(self, source, target, *options, roci=None, receiver_host=None):
        roci, there = roci or self.roci, receiver_host or self.receiver
        port, ticket = next_port(), f'{self.scratch}/ticket'
        if os.path.exists(ticket):
            os.unlink(ticket)
        receiver = there.start(roci, 'recv', '--device', 'embedded', '--dir', target, '--port', str(port), '--once',
                               '--ticket-file', ticket, '--bind', there.address, '--quiet', plain=True)
        try:
            wait_until('the ticket', lambda: os.path.exists(ticket) and os.path.getsize(ticket) or not receiver.running())
            time.sleep(0.3)
            start = time.monotonic()
            self.call(self.sender, roci, 'send', '--device', 'embedded', '--quiet', *options, '--ticket-file', ticket, source,
                      f'{there.address}:{port}')
            took = time.monotonic() - start
            check(receiver.wait(30) == 0, receiver.report())
            return took
        finally:
            receiver.end()

    def nc(self, source, target):
        port = str(next_port())
        if os.path.isdir(source):
            take, give = f'tar -C {target} -xf -', f'tar -C {os.path.dirname(source)} -cf - {os.path.basename(source)}'
        else:
            take, give = f'cat > {target}/{os.path.basename(source)}', f'cat {source}'
        receiver = self.receiver.start('sh', '-c', f'nc -l {self.receiver.address} {port} | {take}', plain=True)
        try:
            wait_until('nc', lambda: self.receiver.listens(int(port)))
            start = time.monotonic()
            self.call(self.sender, 'sh', '-c', f'{give} | nc -N {self.receiver.address} {port}')
            check(receiver.wait(60) == 0, receiver.report())
            return time.monotonic() - start
        finally:
            receiver.end()

    def rsync(self, source, target):
        port, config = str(next_port()), f'{self.scratch}/rsyncd.conf'
        with open(config, 'w') as f:
            f.write(f'use chroot = no\nreverse lookup = no\n[to]\npath = {target}\nread only = no\nuid = {os.getuid()}\n'
                    f'gid = {os.getgid()}\n')
        daemon = self.receiver.start('rsync', '--daemon', '--no-detach', f'--config={config}', f'--port={port}',
                                     f'--address={self.receiver.address}', plain=True)
        try:
            wait_until('rsync', lambda: self.receiver.listens(int(port)))
            start = time.monotonic()
            self.call(self.sender, 'rsync', '-a', '-W', source, f'rsync://{self.receiver.address}:{port}/to/')
            return time.monotonic() - start
        finally:
            daemon.end(signal.SIGTERM)

    def with_sshd(self, copy):
        """Runs copy(port, options of ssh) while a daemon of ssh listens. Returns the seconds that it took."""
        port, key = str(next_port()), f'{self.scratch}/key'
        if not os.path.exists(key):
            subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key], check=True)
            os.makedirs('/run/sshd', exist_ok=True)
        daemon = self.receiver.start(shutil.which('sshd'), '-D', '-e', '-f', '/dev/null', '-h', key, '-p', port,
                                     '-o', f'ListenAddress={self.receiver.address}', '-o', 'StrictModes=no', '-o', 'UsePAM=no',
                                     '-o', f'AuthorizedKeysFile={key}.pub', '-o', 'PermitRootLogin=yes', '-o',
                                     f'PidFile={self.scratch}/sshd.pid', '-o', 'Subsystem=sftp internal-sftp', plain=True)
        try:
            wait_until('sshd', lambda: self.receiver.listens(int(port)) or not daemon.running())
            start = time.monotonic()
            copy(port, ['-i', key, '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR'])
            return time.monotonic() - start
        finally:
            daemon.end(signal.SIGTERM)

    def scp(self, source, target):
        return self.with_sshd(lambda port, ssh: self.call(self.sender, 'scp', '-q', '-r', '-p', '-P', port, *ssh, source,
                                                          f'{self.receiver.address}:{target}/'))

    def rsync_ssh(self, source, target):
        return self.with_sshd(lambda port, ssh: self.call(self.sender, 'rsync', '-a', '-W', '-e', ' '.join(['ssh', '-p', port, *ssh]),
                                                          source, f'{self.receiver.address}:{target}/'))

    def copy(self, name, source, target):
        """The program `name` of --only. Returns the seconds that it took, or None: all of the call."""
        words = name.split()
        if words[0] == 'before':
            return self.roci_send(source, target, *words[1:], roci=self.before)
        if words[:2] == ['one', 'host']:
            return self.roci_send(source, target, *words[2:], receiver_host=self.sender)
        if words[:2] == ['roci', 'send']:
            return self.roci_send(source, target, *words[2:])
        return getattr(self, OTHERS[name])(source, target)


OTHERS = {'nc': 'nc', 'rsync': 'rsync', 'rsync over ssh': 'rsync_ssh', 'scp': 'scp', 'cp (no network)': 'cp'}
NAMES = ['roci send', 'roci send --mode read', 'roci send --mode send', 'roci send --qps 1', 'roci send --qps 2',
         'roci send --qps 4', 'roci send --no-encrypt', 'roci send --no-encrypt --mode send', 'one host', 'before', *OTHERS]


def left_out(name, before=None):
    """Why a program of --only cannot be measured, or None."""
    if name.startswith('before'):
        return None if before else '--before names no build'
    if name.startswith(('roci send', 'one host')):
        return None
    check(name in OTHERS, f'no program {name}; there are: {", ".join(NAMES)}')
    tool = 'sshd' if name in ('scp', 'rsync over ssh') else name.split()[0]
    if not shutil.which(tool):
        return f'{tool} is not installed'
    mapped = os.path.exists('/proc/self/uid_map') and open('/proc/self/uid_map').read().split()[2] == '1'
    return 'sshd needs root' if tool == 'sshd' and mapped else None


def say(text):
    print(text, file=sys.stderr if options.json else sys.stdout, flush=True)


def cpu_seconds():
    """Of all programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(wire, name, source, keep):
    """Copies once and compares the result. Returns the seconds to the end, to the end of a sync, and of processors at both ends."""
    target = tempfile.mkdtemp(dir=wire.scratch)
    try:
        subprocess.run(['sync', '-f', target], check=True)
        start, cpu = time.monotonic(), cpu_seconds()
        took = wire.copy(name, source, target)
        ended, cpu = time.monotonic(), cpu_seconds() - cpu
        took = took or ended - start
        subprocess.run(['sync', '-f', target], check=True)
        synced = time.monotonic() - ended + took
        copy = f'{target}/{os.path.basename(source)}'
        check(subprocess.run(['diff', '-r', source, copy]).returncode == 0, f'{name}: the copy differs')
        return took, synced, cpu
    finally:
        if not keep:
            shutil.rmtree(target)


def compare(wire, names, title, source, size, rounds, keep=False):
    """Prints the comparison, and returns the medians as rows for --json. With `keep` the copies stay until the end: after many
    removals, ext4 is slow to make files for a minute."""
    took = {name: [] for name in names}
    for number in range(rounds):
        for name in names[number % len(names):] + names[:number % len(names)]:
            took[name].append(measure(wire, name, source, keep))
            say(f'{title}: round {number + 1}: {name:24} {took[name][-1][0]:7.2f} s, synced {took[name][-1][1]:7.2f} s, '
                f'processors {took[name][-1][2]:6.2f} s')
    ours = [statistics.median(t[i] for t in took[names[0]]) for i in (0, 1)]
    rows = []
    for name in names:
        done, synced, cpu = (statistics.median(t[i] for t in took[name]) for i in (0, 1, 2))
        say(f'{title}: median: {name:24} {done:7.2f} s {size / MIB / done:8.0f} MiB/s, synced {synced:7.2f} s '
            f'{size / MIB / synced:8.0f} MiB/s; {names[0]} takes {ours[0] / done:.2f} of its time, {ours[1] / synced:.2f} with '
            f'the sync; processors {cpu:6.2f} s')
        rows.append({'what': title, 'bytes': size, 'program': name, 'seconds': done, 'synced_seconds': synced,
                     'processor_seconds': cpu, 'times_as_fast': done / ours[0], 'synced_times_as_fast': synced / ours[1]})
    return rows


def make_large(path, size):
    with open(path, 'wb') as f:
        block = os.urandom(8 * MIB)
        for at in range(0, size, len(block)):
            f.write(at.to_bytes(8, 'big') + block[8:min(len(block), size - at)])
    return size


def make_small(path, count):
    size = 0
    for number in range(count):
        if number % 100 == 0:
            os.makedirs(f'{path}/{number // 100:03}')
        with open(f'{path}/{number // 100:03}/{number}', 'wb') as f:
            size += f.write(os.urandom(1 + (number * 7919) % 16000))
    return size


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--roci', default=os.path.join(os.path.dirname(__file__), '..', 'build', 'roci', 'roci'))
    parser.add_argument('--before', default=None, help='another build of roci')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--gib', type=float, default=1, help='size of the large file; 0: leave it out')
    parser.add_argument('--files', type=int, default=10000, help='number of small files; 0: leave them out')
    parser.add_argument('--mtu', type=int, default=9000)
    parser.add_argument('--dir', default=None, help='where to work: a folder on the file system to measure')
    parser.add_argument('--only', default=','.join(NAMES), help='which programs; the others are compared with the first')
    parser.add_argument('--json', action='store_true', help='print the medians as one JSON object')
    return parser.parse_args()


def main():
    roci = os.path.abspath(options.roci)
    check(os.access(roci, os.X_OK), f'{roci} is not built')
    isolate()
    names, rows = [], []
    for name in options.only.split(','):
        why = left_out(name, options.before)
        if why:
            say(f'left out: {name} ({why})')
        else:
            names.append(name)
    with tempfile.TemporaryDirectory(dir=options.dir) as scratch:
        wire = Wire(roci, options.before and os.path.abspath(options.before), scratch, options.mtu)
        if options.gib:
            size = make_large(f'{scratch}/large', int(options.gib * 1024) * MIB)
            rows += compare(wire, names, f'{options.gib:g} GiB', f'{scratch}/large', size, options.rounds)
            os.unlink(f'{scratch}/large')
        if options.files:
            size = make_small(f'{scratch}/small', options.files)
            rows += compare(wire, names, f'{options.files} files', f'{scratch}/small', size, options.rounds, keep=True)
    if options.json:
        print(json.dumps({'bench': 'mover', 'compared_with': names[0], 'rows': rows}, indent=1))


if __name__ == '__main__':
    options = arguments()
    try:
        main()
    except Failure as failure:
        sys.exit(f'mover.py: {failure}')
