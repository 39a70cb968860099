# SPDX-License-Identifier: BSD-2-Clause
"""What a capture records beside the packets: the posts, completions, states and connection events of each process, and
which process a packet belongs to. Wireshark's and libpcap's tools read the file as if the records were not there."""
import collections
import os
import re
import subprocess
import sys
import tempfile

import records
from harness import ROCI, SLOW, Host, check, isolate, run, tap, wait_until

SERVE_PORT = '18600'
SUCCESS, FLUSHED, RTS = 0, 5, 3
COUNT = 3


def captured():
    """`roci serve` and a client of it write one file."""
    serve = here.start(ROCI, 'serve', '--device', 'embedded', '--port', SERVE_PORT, env=env, plain=True)
    wait_until('roci serve', lambda: 'waiting' in serve.text() or 'port' in serve.text() or not serve.running())
    here.call(ROCI, 'ping', '--device', 'embedded', '--port', SERVE_PORT, '-c', str(COUNT), '-i', '0', '127.0.0.1', env=env,
              plain=True)
    serve.end(subprocess.signal.SIGTERM)
    check(serve.popen.returncode == 0, serve.report())
    found.extend(sorted(records.read(path), key=lambda r: r.time))
    return ', '.join(f'{n} {kind}' for kind, n in collections.Counter(r.kind for r in found).items())


def of(kind):
    return [r for r in found if r.kind == kind]


def two_processes():
    names = {r.pid: r.text for r in of('process')}
    check(sorted(names.values()) == ['roci ping', 'roci serve'], f'processes {names}')
    check({p.pid for p in of('packet')} == set(names), 'a packet names no process')
    for pid in names:
        check({p.outbound for p in of('packet') if p.pid == pid} == {True, False}, 'both directions of each process')


def posts_and_completions():
    sends = of('post send')
    check(len(sends) >= 2 * COUNT, f'{len(sends)} posts')
    done = collections.Counter((c.pid, c.qpn, c.wr_id) for c in of('completion') if c.opcode < 128)
    posted = collections.Counter((s.pid, s.qpn, s.wr_id) for s in sends)
    check(done == posted, f'{posted - done} were posted and not completed, {done - posted} completed and not posted')
    received = [c for c in of('completion') if c.opcode >= 128 and c.status == SUCCESS]
    check(sorted(c.length for c in received) == sorted(s.length for s in sends), 'lengths at both ends')
    for completion in of('completion'):
        post = [p for p in found if p.kind.startswith('post') and (p.pid, p.qpn, p.wr_id) == completion[2:3] + (
            completion.qpn, completion.wr_id) and p.time <= completion.time]
        check(post, f'completion of wr_id {completion.wr_id} before its post')
    check(all(c.status in (SUCCESS, FLUSHED) for c in of('completion')), 'errors')


def packets_between():
    """Between a post and its completion its packet leaves, and an acknowledgement comes."""
    for post in of('post send'):
        done = next(c for c in of('completion') if (c.pid, c.qpn, c.wr_id) == (post.pid, post.qpn, post.wr_id)
                    and c.opcode < 128 and c.time >= post.time)
        between = [p for p in of('packet') if p.pid == post.pid and post.time <= p.time <= done.time]
        check(any(p.outbound and p.bytes[28] == 4 and int.from_bytes(p.bytes[33:36], 'big') == post.peer for p in between),
              'no SEND to the peer between post and completion')
        check(any(not p.outbound for p in between), 'nothing came between post and completion')


def connection():
    states = collections.defaultdict(list)
    for r in of('state'):
        states[r.pid, r.qpn].append(r.status)
    check(len(states) == 2 and all(s[:3] == [1, 2, RTS] for s in states.values()), f'states {dict(states)}')
    peers = {r.qpn: r.peer for r in of('state') if r.status == RTS}
    check(all(peers[peer] == qpn for qpn, peer in peers.items()), f'peers {peers}')
    events = {r.opcode for r in of('cm')}
    check({0, 1, 2} <= events, f'connection events {events}: a request, a reply, established')


def faults():
    """Each fault that the device counts is recorded: which packet, which way."""
    file = os.path.join(directory, 'fault.pcapng')
    told = here.call(ROCI, 'ping', '--device', 'embedded', '--loopback', '-c', '30', '-s', '40000', '-i', '0', plain=True, env={
        'ROCI_CAPTURE': file, 'ROCI_FAULT': 'loss=0.05,dup=0.05,reorder=0.05,corrupt=0.02,seed=5', 'ROCI_STATS': '1'})
    counted = {(way, what): int(n) for way, what, n in re.findall(r'fault_(send|receive)_(\w+) +(\d+)', told)}
    names = {1: 'lost', 2: 'duplicated', 3: 'reordered', 4: 'corrupted'}
    all_of = records.read(file)
    seen = collections.Counter(('send' if r.flags else 'receive', names[r.status]) for r in all_of if r.kind == 'fault')
    if ('receive', 'corrupted') in seen:  # where the ICRC would not show it, it is undone after it was told
        check(seen.pop(('receive', 'corrupted')) >= counted.pop(('receive', 'corrupted'), 0), 'corrupted')
    check(seen == {k: n for k, n in counted.items() if n}, f'counted {counted}, recorded {dict(seen)}')
    gone = [r for r in all_of if r.kind == 'fault' and r.status == 1 and not r.flags]
    came = {(p.bytes[28], int.from_bytes(p.bytes[33:36], 'big'), int.from_bytes(p.bytes[37:40], 'big'))
            for p in all_of if p.kind == 'packet' and not p.outbound and p.bytes[0] == 0x45}
    missing = [r for r in gone if (r.opcode, r.qpn, r.imm) not in came]
    check(gone and not missing, f'lost after it came, but it never came: {missing[:3]}')
    return f'{sum(seen.values())} faults'


def not_a_capture():
    """Where ROCI_CAPTURE cannot be written, the device is not opened, and says which file it is and why."""
    mine = os.path.join(directory, 'mine')
    with open(mine, 'w') as file:
        file.write('my notes')
    for path, said in ((mine, f'ROCI_CAPTURE={mine}, which is no capture of Rocinante and is left as it is'), ('/nowhere/x', 'ROCI_CAPTURE=/nowhere/x: No such')):
        told = subprocess.run([ROCI, 'run', '--', 'ibv_devinfo'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * SLOW,
                              env=dict(os.environ, ROCI_CAPTURE=path))
        check(told.returncode and said in told.stdout and open(mine).read() == 'my notes', told.stdout)


def wireshark():
    shown = subprocess.run(['tshark', '-r', path, '-T', 'fields', '-e', 'frame.number', '-e', 'frame.interface_queue', '-e',
                            '_ws.malformed'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    noise = [line for line in shown.stderr.splitlines() if 'Running as user' not in line]
    check(shown.returncode == 0 and not noise, f'tshark: {noise}')
    rows = [line.split('\t') for line in shown.stdout.splitlines()]
    packets = [p for p in records.read(path) if p.kind == 'packet']
    check([int(row[1]) for row in rows] == [p.pid for p in packets], 'tshark sees other packets, or other processes')
    check(not any(row[2] for row in rows), 'malformed packets')
    pcap = os.path.join(directory, 'plain.pcap')
    run('editcap', '-F', 'pcap', path, pcap)
    check(os.path.getsize(pcap) > 1000, 'editcap')


def cases():
    yield 'roci serve and roci ping write one capture', captured
    yield 'each process has a name, and its packets name it', two_processes
    yield 'each post has its completion, at both ends', posts_and_completions
    yield 'packets go between post and completion', packets_between
    yield 'states of QPs and events of connections', connection
    yield 'each injected fault is recorded', faults
    yield 'a capture that cannot be written', not_a_capture
    yield 'tshark and editcap skip the records', wireshark


if __name__ == '__main__':
    isolate()
    here = Host('here')
    found = []
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'both.pcapng')
        env = {'ROCI_CAPTURE': path}
        sys.exit(tap(list(cases())))
