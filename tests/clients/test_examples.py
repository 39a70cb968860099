# SPDX-License-Identifier: BSD-2-Clause
"""The lessons of examples/: each works on loopback and between two hosts, in both directions. A killed peer, a missing server and wrong
arguments end in a message that says what happened, and never in a hang. The Makefile beside them builds every lesson."""
import filecmp
import glob
import os
import re
import shutil
import sys
import tempfile

from harness import (HERE, SANITIZER, Host, check, isolate, next_port, need, program, run, run_pair, tap, veth_pair, wait_until)

SOURCES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples')
PROGRAMS = os.environ.get('ROCI_EXAMPLES', SOURCES)
FILE_BYTES = 1000001  # not a multiple of a chunk, and more chunks than are under way at a time

# What each side must have said at the end: (server, client).
PAIRS = {
    '01-send-receive': (['received: "hello, server"', 'send: "hello, client"', 'came back unused'],
                        ['received: "hello, client"', 'came back unused']),
    '02-write-read': (['my memory: "written by the client\'s device"'], ['read back: "written by the client\'s device"']),
    '04-bare-verbs': (['RESET -> INIT -> RTR -> RTS', 'my memory: "written without rdma_cm"'],
                      ['wrote: "written without rdma_cm"']),
    '05-datagrams': (['of them 40 for the GRH: "ping"'], ['of them 40 for the GRH: "pong"']),
}
FILES = {
    '06-file-write': (['told:  MR', 'heard: FIN'], ['wrote 16 chunks', 'heard: ACK']),
    '07-file-send': (['received 16 chunks', 'heard: FIN'], ['sent 16 chunks', 'heard: ACK']),
    '08-file-read': (['read 16 chunks', 'heard: ACK'], ['told:  MR', 'heard: FIN']),
}
ALONE = {
    '03-every-operation': ['SEND  ', 'SEND_IMM  ', 'SEND_INV  ', 'WRITE  ', 'WRITE_IMM  ', 'READ  ',
                           'CMP_SWAP      6 if it is 5: it was 5, it is 6', 'CMP_SWAP      7 if it is 5: it was 6, it is 6',
                           'FETCH_ADD     add 10: it was 6, it is 16', 'ATOMIC_WRITE  ', 'FLUSH  '],
    '09-errors': ['remote access error (10)', 'remote invalid request error (9)', 'RNR retry counter exceeded (13)',
                  'transport retry counter exceeded (12)', 'Work Request Flushed Error (5)'],
    '10-notifications': [r'two messages .*events: 1, completions: 2', r'one message .*events: 0, completions: 1',
                         r'armed after it .*events: 0, completions: 1'],
    '11-several-queues': ['of 6 completions 1 came from the first QP, 2 from the second, 3 from the third', 'third QP; the event is of CQ 3',
                          'first QP; the event is of CQ 1'],
}
ALL = {**PAIRS, **FILES}
GONE = re.compile('the (peer|other side) has gone')


def lesson(name):
    return os.path.join(PROGRAMS, name)


class Folder:
    """A file to send and a place for its copy; no arguments for lessons that move no file."""

    def __init__(self, name, size=FILE_BYTES):
        self.dir = tempfile.TemporaryDirectory()
        self.source, self.copy = (os.path.join(self.dir.name, f) for f in ('source', 'copy'))
        with open(self.source, 'wb') as f:
            f.write(os.urandom(size))
        self.server_args, self.client_args = ([self.copy], [self.source]) if name in FILES else ([], [])


def start(name, server_host, client_host, folder, server_args=(), client_args=(), port=None):
    port = port or next_port()
    server = server_host.start(lesson(name), '-p', str(port), *server_args, *folder.server_args)
    wait_until(f'{name} to wait for a client', lambda: 'waiting' in server.text() or not server.running())
    client = client_host.start(lesson(name), '-p', str(port), *client_args, *folder.client_args,
                               server_host.address)
    return server, client


def own_lines(text):
    """Without the device's counters."""
    return [line for line in text.splitlines() if not line.startswith('roci: ')]


def check_says(text, wanted):
    for words in wanted:
        check(words in text or re.search(words, text), f'nowhere: {words}\n{text}')
    check(own_lines(text)[-1] == 'done', text)


def pair(name, server_host, client_host, size=FILE_BYTES):
    folder = Folder(name, size)
    texts = run_pair(*start(name, server_host, client_host, folder))
    for text, wanted in zip(texts, ALL[name]):
        check_says(text, wanted if size == FILE_BYTES else [])
    if name in FILES:
        check(filecmp.cmp(folder.source, folder.copy, shallow=False), 'the copy differs')


def over_ipv6(name):
    """A server waits at every address, so a client may name one of IPv6."""
    pair(name, Host('at ::1', address='::1'), loopback)


def alone(name, host):
    check_says(host.call(lesson(name)), ALONE[name])


def killed(name, server_host, client_host, victim):
    """One side dies as by `kill -9`. The other one ends by itself, with status 1 and a reason. A client that only writes and reads
    the memory of the server, whose program takes no part, may be done before."""
    folder = Folder(name)  # exists as long as this name
    server, client = start(name, server_host, client_host, folder, **{f'{victim}_args': ['-k']})
    dead, survivor = (server, client) if victim == 'server' else (client, server)
    try:
        check(dead.wait(60) == -9, dead.report())
        status = survivor.wait(60)
        if status == 0 and (name, victim) == ('02-write-read', 'server'):
            check(own_lines(survivor.text())[-1] == 'done', survivor.report())
            return 'done before'
        check(status == 1, ('hangs\n' if status is None else '') + survivor.report())
        check(GONE.search(survivor.text()) or 'no answer came' in survivor.text(), survivor.report())
    finally:
        server.end()
        client.end()
    return own_lines(survivor.text())[-1]


def fails(host, argv, status, wanted, plain=False):
    process = host.start(*argv, plain=plain)
    got = process.wait(60)
    check(got == status and re.search(wanted, process.text()), f'not status {status} and "{wanted}":\n{process.report()}')


def nobody(name):
    folder = Folder(name)
    fails(loopback, [lesson(name), '-p', str(next_port()), *folder.client_args, '127.0.0.1'], 1,
          'does (the other side|a server) run there')


def wrong_arguments(name):
    usage = f'usage: {name} '
    folder = Folder(name)
    file = folder.client_args
    fails(loopback, [lesson(name), '-z'], 2, usage)
    fails(loopback, [lesson(name), *file, '127.0.0.1', 'more', 'and more'], 2, usage)
    fails(loopback, [lesson(name), '-h'], 0, usage)
    if name in ALL:
        fails(loopback, [lesson(name), '-p', '66666'], 2, '66666 is not a port: it must be a number from 1 to 65535')
        fails(loopback, [lesson(name), '-p', ''], 2, 'is not a port')
    if name in FILES:
        fails(loopback, [lesson(name)], 2, usage)
        fails(loopback, [lesson(name), '/proc/nonexistent', '127.0.0.1'], 1, '/proc/nonexistent: No such file')
    if name in ALONE:
        fails(loopback, [lesson(name), '-g', '-1'], 2, '-1 is not a GID index')
        fails(loopback, [lesson(name), '-d', 'mlx9_9'], 1, 'no RDMA device mlx9_9')


def no_such_case():
    fails(loopback, [lesson('09-errors'), 'nonsense'], 1, 'there is no case "nonsense"')
    text = loopback.call(lesson('09-errors'), 'rkey')
    check('rkey:' in text and 'range:' not in text, text)


def other_lesson():
    """The sides run different lessons: each says so, and neither hangs."""
    folder = Folder('06-file-write')
    port = str(next_port())
    server = loopback.start(lesson('08-file-read'), '-p', port, folder.copy)
    wait_until('the server', lambda: 'waiting' in server.text() or not server.running())
    client = loopback.start(lesson('06-file-write'), '-p', port, folder.source, '127.0.0.1')
    try:
        for side in client, server:
            check(side.wait(60) == 1, side.report())
        check('the other side runs lesson 6, and this is lesson 8' in server.text(), server.report())
        check(GONE.search(client.text()), client.report())
    finally:
        server.end()
        client.end()


def without_device(name):
    """On a machine without RDMA: what is missing, and what to do."""
    if os.path.exists('/dev/infiniband'):
        return
    folder = Folder(name)
    fails(loopback, [lesson(name), *folder.client_args, *(['127.0.0.1'] if name in ALL else [])], 1, '(?i)no RDMA device.*roci run', plain=True)


def makefile():
    need('make', 'gcc')
    with tempfile.TemporaryDirectory() as there:
        copy = os.path.join(there, 'examples')
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns('*.o', '.gitignore'))
        text = run('make', '-C', copy, 'CFLAGS=-O0 -Wall -Wextra -Werror')
        for name in (*ALL, *ALONE):
            check(os.access(os.path.join(copy, name), os.X_OK), f'no {name}:\n{text}')
        libraries = set(re.findall(r'\s-l(\w+)', text))
        check(libraries == {'ibverbs', 'rdmacm'}, f'it needs {libraries}')
        if not SANITIZER:
            loopback.call(os.path.join(copy, '03-every-operation'))


def short():
    """A lesson is read in one go."""
    for path in glob.glob(f'{SOURCES}/*.[ch]'):
        with open(path) as f:
            lines = len(f.readlines())
        check(lines < 200, f'{path} has {lines} lines')


def with_soft_roce(rxe, roci):
    """Between the kernel's device and roci0, and on the kernel's alone: for the guests of tests/interop. A kernel tells the
    peer that a process was killed; of a dead roci0 alone on its host nobody tells."""
    for name in ALONE:
        yield f'rxe: {name}', lambda n=name: alone(n, rxe)
    for server, client in (rxe, roci), (roci, rxe):
        way = f'{client.kind} to {server.kind}'
        for name in ALL:
            yield f'{way}: {name}', lambda n=name, s=server, c=client: pair(n, s, c)
    for name in '01-send-receive', '04-bare-verbs':
        yield f'rxe to roci: {name}, the client is killed', lambda n=name: killed(n, roci, rxe, 'client')


def cases():
    yield 'each file has less than 200 lines', short
    yield 'the Makefile builds every lesson', makefile
    for name in ALONE:
        yield f'{name}', lambda n=name: alone(n, loopback)
    yield '03-every-operation with FLUSH', lambda: check_says(loopback.call(program('every-operation-flush')), ['by everybody'])
    for name in ALL:
        yield f'{name} over loopback', lambda n=name: pair(n, loopback, loopback)
        yield f'{name} over IPv6', lambda n=name: over_ipv6(n)
        for server, client in (host_a, host_b), (host_b, host_a):
            yield f'{name} from {client.name} to {server.name}', lambda n=name, s=server, c=client: pair(n, s, c)
        for victim in 'server', 'client':
            yield f'{name}, the {victim} is killed', lambda n=name, v=victim: killed(n, loopback, loopback, v)
        yield f'{name}, nobody waits', lambda n=name: nobody(n)
    yield ('01-send-receive, the client is killed on another host',
           lambda: killed('01-send-receive', host_a, host_b, 'client'))
    for name in FILES:
        yield f'{name}, an empty file', lambda n=name: pair(n, loopback, loopback, 0)
    for name in (*ALL, *ALONE):
        yield f'{name}, wrong arguments', lambda n=name: wrong_arguments(n)
        yield f'{name}, no device', lambda n=name: without_device(n)
    yield '09-errors, one case', no_such_case
    yield 'two different lessons', other_lesson


QUICK = re.compile('lines|^0.-.*over loopback|^(03|09|10)-[a-z-]*$|01-.*(killed|arguments)|06-.*killed')

if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases()), quick=lambda name: QUICK.search(name) is not None))
