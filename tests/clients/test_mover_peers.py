# SPDX-License-Identifier: BSD-2-Clause
"""Peers of the file mover that break the protocol or stop talking (hostile_sender.c, hostile_receiver.c). Each must get the
right answer, no forbidden file may be written, and the receiver must continue to serve. test_mover_peers.py [FILTER...]
"""
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

from harness import ROCI, SANITIZER, Host, Skip, check, isolate, program, tap, wait_until
from mover import OK, Receiver, environment, events, most_memory_mib, scratch, write

# Windows and what is remembered of chunks are bounded by 64 and 80 MiB; growing the latter takes as much again.
MEMORY_MIB = 2048 if SANITIZER else 400

isolate()
here = Host('one')
workshop = scratch()
base = workshop.name
outside = os.path.join(base, 'outside')
honest = os.path.join(base, 'honest')
os.mkdir(outside)
write(os.path.join(outside, 'untouched'), b'as it was')
write(honest, b'honest content' * 1000)
SHORTER = '/sys/class/net/lo/mtu'  # than its size is
large = os.path.join(base, 'large')
write(large, b'more than a chunk' * 100000)


def hostile_sender(name, variants):
    """Runs all variants of a case against one receiver. After each, the receiver must take a file from an honest sender."""
    def case():
        if name == 'many-refused' and resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2048:
            raise Skip('a receiver takes fewer entries where it may open so few files (ulimit -Hn)')
        folder = os.path.join(base, 'there')
        os.mkdir(folder)
        try:
            compare = ['--compare'] if name == 'huge-files' else []
            with Receiver(here, folder, '--open', '--timeout', '3s', *compare, links=name == 'through-a-symlink') as recv:
                for variant in range(variants):
                    peer = here.start(program('hostile_sender'), here.address, str(recv.port), f'{name}:{variant}', outside)
                    status = peer.wait(60)
                    check(status == OK, f'variant {variant}:\n{peer.report()}\n{recv.process.report()}')
                    recv.take(here, honest)
                    with open(os.path.join(folder, 'honest'), 'rb') as f:
                        check(f.read() == b'honest content' * 1000, 'the honest file differs')
                    os.unlink(os.path.join(folder, 'honest'))
                    left = {n for n in os.listdir(folder) if not n.startswith(('.roci-', 'huge '))}
                    check(left <= {'file', 'way'}, f'variant {variant} has left {left}')
                    if 'file' in left:  # sent correctly, before the attack
                        with open(os.path.join(folder, 'file'), 'rb') as f:
                            check(f.read() == b'0123456789', 'a wrong file')
                memory = most_memory_mib(recv.process.pid)
                check(memory < MEMORY_MIB, f'{memory} MiB')
                check(os.listdir(outside) == ['untouched'], f'outside there is {os.listdir(outside)}')
                check(os.listdir(base).count('evil') == 0, 'evil')
                recv.end(signal.SIGTERM)
                return f'{memory} MiB'
        finally:
            shutil.rmtree(folder)
    return case


def to_a_full_pipe(name):
    """The receiver writes to a pipe that nobody reads at first."""
    def case():
        pipe = os.path.join(base, 'pipe')
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        recv = here.start('sh', '-c', 'out=$1; shift; exec "$@" >"$out"', 'sh', pipe, ROCI, 'recv', '-', '--device', here.device, '--port', '0',
                          '--json', '--bind', here.address, '--open', plain=True, env=environment())
        try:
            wait_until('the receiver to listen', lambda: events(recv, 'listening') or not recv.running())
            check(recv.running(), recv.report())
            peer = here.start(program('hostile_sender'), here.address, str(events(recv, 'listening')[0]['port']), f'{name}:0', outside)
            wait_until('the pipe to be full', lambda: select.select([end], [], [], 0)[0] or not peer.running())
            time.sleep(1)  # what does not wait for the pipe happens now
            wait_until('the peer', lambda: (select.select([end], [], [], 0)[0] and not os.read(end, 1 << 20)) or not peer.running())
            check(peer.wait(60) == OK, f'{peer.report()}\n{recv.report()}')
        finally:
            os.close(end)
            os.unlink(pipe)
            recv.end()
    return case


def hostile_receiver(name, variants, expected):
    """Runs all variants of a case, each with a new sender."""
    def case():
        for variant in range(variants):
            peer = here.start(program('hostile_receiver'), here.address, f'{name}:{variant}')
            try:
                wait_until('the peer to listen', lambda: 'port ' in peer.text() or not peer.running())
                check(peer.running(), peer.report())
                port = peer.text().split('port ')[1].split()[0]
                what, feed = large, []
                if name == 'lane-refused':
                    what, feed = '-', ['sh', '-c', 'file=$1; shift; "$@" < "$file"', 'sh', large]
                elif name.startswith('refused'):
                    what = SHORTER
                sender = here.start(*feed, ROCI, 'send', '--device', 'embedded', '--open', '--qps', '1', '--timeout', '3s', what,
                                    f'{here.address}:{port}', plain=True, env=environment())
                status = sender.wait(60)
                check(status == expected, f'variant {variant}: exit status {status}, not {expected}\n{sender.report()}')
                check('\x1b[31m' not in sender.text(), 'the peer colours the screen')
                check(name != 'silent' or 'connecting again' not in sender.text(), f'it was never let in:\n{sender.report()}')
                check(peer.wait(30) == OK, f'variant {variant}:\n{peer.report()}')
            finally:
                peer.end()
    return case


def listed(name):
    text = subprocess.run([program(name), '--list'], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [(line.split()[0], *map(int, line.split()[1:])) for line in text.splitlines()]


cases = [(f'hostile sender: {name}', to_a_full_pipe(name) if name == 'given-up-unwritten' else hostile_sender(name, *rest)) for name, *rest in listed('hostile_sender')]
cases += [(f'hostile receiver: {name}', hostile_receiver(name, *rest)) for name, *rest in listed('hostile_receiver')]
sys.exit(tap(cases))
