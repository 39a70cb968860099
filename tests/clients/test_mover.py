# SPDX-License-Identifier: BSD-2-Clause
"""Moves files and folders by `roci send` and `roci recv`: test_mover.py one|veth [full] [FILTER...]

Every mode with 1, 4 and 16 queue pairs moves a folder with all kinds of entries. One or two of these combinations also move
10,000 small files and a file of 4 GiB; with `full`, all of them do (five to ten minutes, depending on the disk).
"""
import os
import shutil
import signal
import sys

from harness import Host, Skip, isolate, tap, veth_pair
from mover import MIB, Receiver, check_same, make_large, make_odd, make_small, scratch

isolate()
PLACE = sys.argv.pop(1) if len(sys.argv) > 1 else 'one'
FULL = len(sys.argv) > 1 and sys.argv[1] == 'full' and bool(sys.argv.pop(1))
MODES = ('write', 'read', 'send')
QPS = (1, 4, 16)

if PLACE == 'one':
    sender = receiver = Host('one')
else:
    sender, receiver = veth_pair(9000)
workshop = scratch()
base = workshop.name


def source(name, make, *arguments):
    """Makes the files when the first case needs them."""
    folder = os.path.join(base, 'source', name)
    if not os.path.exists(folder):
        os.makedirs(folder)
        make(os.path.join(folder, 'it'), *arguments)
    return folder


def there():
    return os.path.join(base, 'there')


def move(folder, *options, seconds=60):
    """Sends a folder and compares the copy. Sends it again: nothing may move. Removes the copy. Returns the first 'ended'."""
    os.mkdir(there())
    try:
        with Receiver(receiver, there(), '--keep-ticket') as recv:
            ended = recv.take(sender, os.path.join(folder, 'it'), *options, seconds=seconds)
            check_same(folder, there())
            again = recv.take(sender, os.path.join(folder, 'it'), *options, seconds=seconds)
            check_same(folder, there())
            assert again['bytes_moved'] == 0, again
            assert again['bytes_unchanged'] == again['bytes_total'], again
            recv.end(signal.SIGTERM)
        return ended
    finally:
        os.system(f'chmod -R u+w {there()}; rm -rf {there()}')


def rate(ended):
    return f'{ended["bytes_moved"] / MIB / ended["seconds"]:.0f} MiB/s, {ended["entries_done"] / ended["seconds"]:.0f} entries/s'


def odd(*options):
    move(source('odd', make_odd), *options)


def small(*options):
    return rate(move(source('small', make_small, 10000), *options, seconds=120))


def large(*options):
    if shutil.disk_usage(base).free < 10 << 30:
        raise Skip(f'needs 10 GiB at {base}')
    return rate(move(source('large', make_large, 4096 * MIB), *options, seconds=300))


cases = []
for mode in MODES:
    for qps in QPS:
        point = ('--mode', mode, '--qps', str(qps))
        cases.append((f'all kinds, {mode}, {qps} QPs', lambda point=point: odd(*point)))
        if FULL or (PLACE, mode, qps) in (('one', 'write', 4), ('veth', 'read', 1), ('veth', 'send', 4)):
            cases.append((f'small files, {mode}, {qps} QPs', lambda point=point: small(*point)))
        if FULL or (PLACE, mode, qps) in (('one', 'write', 4), ('veth', 'read', 4)):
            cases.append((f'4 GiB, {mode}, {qps} QPs', lambda point=point: large(*point)))
    for options in (['--no-encrypt'], ['--poll'], ['--no-uring'], ['--memory', '3M'], ['--chunk', '64K', '--qps', '64', '--cqs', '8'],
                    ['--chunk', '16M']):
        cases.append((f'all kinds, {mode}, {" ".join(options)}',
                      lambda options=options, mode=mode: odd('--mode', mode, *options)))

sys.exit(tap(cases, quick=lambda name: not name.startswith('4 GiB' if PLACE == 'one' else ('4 GiB', 'small files'))))
