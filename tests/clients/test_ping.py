# SPDX-License-Identifier: BSD-2-Clause
"""`roci ping` and `roci serve`: every operation on every type of QP, connected and waited for in each way; steps; what a stranger
or the end of either side may do to them."""
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile

from harness import ROCI, Host, check, isolate, next_port, tap, veth_pair, wait_until
from mover import environment
from operations import OPERATIONS_ON as ON

os.environ['ROCI_STATS'] = ''  # these tests compare the output
GOOD, FAILED, CANNOT = range(3)
REQUEST_BYTES = 56
CLIENTS = 32


def free_ports():
    """The first of two: rdma_cm's, and TCP's."""
    port = next_port()
    next_port()
    return port


class Serve:
    """A `roci serve` on a port of its own."""

    def __init__(self, host, *options, env=None, port=None):
        self.host = host
        self.port = port or free_ports()
        self.process = host.start(ROCI, 'serve', '--port', str(self.port), '--device', 'embedded', '--json', *options, plain=True,
                                  env=dict(environment(), **(env or {})))
        wait_until('roci serve', lambda: self.events('listening') or not self.process.running())
        check(self.process.running(), self.process.report())

    def events(self, name):
        lines = [line for line in self.process.text().splitlines() if line.startswith('{') and line.endswith('}')]
        return [event for event in map(json.loads, lines) if event['event'] == name]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.end()


def start(host, *argv, env=None):
    return host.start(ROCI, 'ping', '--device', 'embedded', *argv, plain=True, env=dict(environment(), **(env or {})))


def ping(host, *argv, status=GOOD, env=None):
    """Runs roci ping to its end. Returns what it printed. A machine may be so busy that an answer takes long."""
    process = start(host, *([] if '--timeout' in argv else ['--timeout', '20s']), *argv, env=env)
    got = process.wait(60)
    check(got == status, f'exit status {got}, not {status}\n{process.report()}')
    return process.text()


def target(serve, address=None):
    return '--port', str(serve.port), address or serve.host.address


def json_events(text, name):
    return [event for event in (json.loads(line) for line in text.splitlines() if line.startswith('{')) if event['event'] == name]


def check_all(text):
    """Each combination that can be has worked; each other one has a reason."""
    done = json_events(text, 'combination')
    check(not [c for c in done if c['possible'] and not c['good']], text)
    worked = {(c['op'], c['qp'], c['connect'], c['wait']) for c in done if c['possible']}
    expected = {(op, qp, way, wait) for qp in ON for op in ON[qp] for way in ('cm', 'socket') for wait in ('poll', 'event')}
    check(worked == expected, f'missing {expected - worked}, and {worked - expected} should not be')
    refused = [c for c in done if not c['possible']]
    check(len(refused) == 10 * 3 * 4 - len(expected) and all(len(c['reason']) > 20 for c in refused), refused)


def every_combination(server, client, address):
    with Serve(server) as serve:
        check_all(ping(client, '--op', 'all', '--json', '-c', '2', *target(serve, address)))
        seen = {(e['op'], e['qp'], e['connect']) for e in serve.events('connected')}
        check(len(seen) == 32, f'the server saw {len(seen)} kinds of connections')
        wait_until('all to disconnect', lambda: len(serve.events('disconnected')) == len(serve.events('connected')))
        check(not serve.events('problem'), serve.process.report())


def table():
    for locale, tick in ('C.UTF-8', '\u2713'), ('C', r'\+'):
        text = ping(loopback, '--loopback', '--op', 'all', '-c', '1', env={'LC_ALL': locale})
        for op in ON['rc']:
            cells = ''.join(f' +({tick if op in ON[qp] else "-"} ?){{2}} +({tick if op in ON[qp] else "-"} ?){{2}}' for qp in ON)
            check(re.search(f'^{op}{cells}$', text, re.MULTILINE), f'{op}:\n{text}')
        check('UD has no RDMA' in text and 'read on uc, cas on uc' in text and 'Failed' not in text, text)
        check('8 bytes' not in text and 'The first tick is --wait poll' in text, text)
    text = ping(loopback, '--loopback', '--op', 'all', '--size', '0', '--qp', 'uc', '-c', '1', env={'LC_ALL': 'C'})
    check(text.startswith(f'{"":16}UC\n{"":16}cm   socket\n') and re.search(r'^send +\+ \+  \+ \+$', text, re.MULTILINE), text)
    check('cas, faa and atomic-write are on 8 bytes always' in text, text)
    text = ping(loopback, '--loopback', '--op', 'all', '--connect', 'socket', '--wait', 'event', '-c', '1', env={'LC_ALL': 'C'})
    check(text.startswith(f'{"":16}RC       UC       UD\n{"":16}socket   socket   socket\n'), text)
    check(re.search(r'^send {12}\+ {8}\+ {8}\+ *$', text, re.MULTILINE) and 'Each tick is --wait event.' in text, text)
    text = ping(loopback, '--loopback', '--op', 'all', '--json', '--qp', 'uc', '--connect', 'cm', '--wait', 'poll')
    check(len(json_events(text, 'combination')) == 10, text)


def sizes():
    with Serve(loopback) as serve:
        for op in 'send', 'write', 'read', 'write-imm', 'flush', 'send-inv':
            for size in 0, 1, 7, 8, 4096, 4097, 1 << 20, 4 << 20:
                if op == 'flush' and not size:
                    continue  # the FLUSH of no bytes needs a valid range all the same
                text = ping(loopback, '--op', op, '--size', str(size), '-c', '3', '-i', '0', '--json', *target(serve))
                check(all(e['bytes'] == size for e in json_events(text, 'operation')), text)
        for op in 'send', 'write', 'read', 'flush':
            ping(loopback, '--op', op, '--size', '1003', '--sge', '5', '-c', '3', '-i', '0', *target(serve))
        for op in 'send', 'send-imm', 'write', 'write-imm', 'flush':
            ping(loopback, '--op', op, '--size', '100', '--sge', '2', '--inline', '-c', '3', '-i', '0', *target(serve))
        for qp in 'uc', 'ud':
            for size in 0, 1, 20, 1024:
                ping(loopback, '--qp', qp, '--size', str(size), '-c', '3', '-i', '0', *target(serve))
        ping(loopback, '--op', 'write', '--qp', 'uc', '--no-verify', '-c', '3', '-i', '0', *target(serve))
        text = ping(loopback, '--qp', 'ud', '--size', '100000', '-c', '1', *target(serve), status=CANNOT)
        check(re.search('takes at most [0-9]+ bytes', text), text)
        text = ping(loopback, '--inline', '--size', '100000', '-c', '1', *target(serve), status=CANNOT)
        largest = re.search('at most ([0-9]+): use --size', text)
        check(largest, text)
        ping(loopback, '--inline', '--size', largest.group(1), '-c', '1', *target(serve))
        text = ping(loopback, '--size', '1G', '--loopback', status=CANNOT)
        check('out of range' in text, text)


def far_peer():
    """ROCI_FAULT delays what comes: a round trip takes twice as long. Also where another process has the port, and hands packets over."""
    def all_take(least, spec, *argv):
        text = ping(loopback, '--loopback', '-c', '3', '-i', '0', '--json', *argv, env={'ROCI_FAULT': spec})
        took = [event['ns'] for event in json_events(text, 'operation')]
        check(len(took) == 3 and min(took) >= least, took)
    for wait in ('poll', 'event'):
        all_take(10e6, 'delay=5ms,jitter=1ms', '--wait', wait)
        all_take(4e6, 'delay=2ms,loss=0.1,seed=3', '--wait', wait)
    with tempfile.TemporaryDirectory() as other, Serve(loopback, env={'ROCI_RUNDIR': other}):
        all_take(10e6, 'delay=5ms')


def output():
    text = ping(loopback, '--loopback', '-c', '3', '-i', '0')
    check(re.match(r'PING [\d.]+: SEND of 64 bytes on RC, connected by rdma_cm\nfrom device roci0 .* to device roci0', text), text)
    check(len(re.findall(r'^64 bytes: send seq=\d time=[\d.]+ (us|ms|s)$', text, re.MULTILINE)) == 3, text)
    check(re.search(r'\n3 operations, 0 failed\nmin .*, median .*, p99 .*, max .*$', text), text)
    text = ping(loopback, '--loopback', '-c', '1', '-s', '1')
    check('SEND of 1 byte on' in text and '\n1 byte: send' in text, text)
    quiet = ping(loopback, '--loopback', '--verify', '-c', '1', '-q')
    check(re.fullmatch(r'1 operation, 0 failed\nmin .*', quiet.strip()), quiet)
    text = ping(loopback, '--loopback', '-c', '1', '--steps')
    check(re.search(r'\S\n\n1 operation, 0 failed\n', text), text)
    for argv, said in ((['--op', 'read', '--qp', 'ud', '--loopback'], 'UD has no RDMA'),
                       (['--op', 'cas', '--size', '16', '--loopback'], 'is on 8 bytes'),
                       (['--op', 'read', '--inline', '--loopback'], 'carries no data'),
                       (['--sge', '9', '--size', '8', '--loopback'], 'needs at least as many bytes'),
                       (['--op', 'all', '--steps', '--loopback'], 'needs one operation'),
                       (['--verify', '--no-verify', '--loopback'], 'leave one of them out'),
                       ([], 'name one machine'), (['a', 'b'], 'name one machine'), (['--loopback', 'a'], 'there is no HOST')):
        text = ping(loopback, *argv, status=CANNOT)
        check(said in text, f'{argv}: {said!r} is not in {text}')


def told(steps, end, step):
    """The time of a step, or None."""
    return next((s.get('us') for s in steps['steps'] if s['end'] == end and s['step'] == step), None)


def check_steps(op, qp, steps):
    """Each step that happens has its time, and they follow by necessity: a packet arrives after it left, and so on."""
    receives = op.startswith('send') or op == 'write-imm'
    ways = [[('near', 3), ('near', 4), ('near', 5), ('far', 6), ('far', 7)], [('near', 4), ('near', 9), ('near', 10)]]
    if qp == 'rc':
        ways.append([('far', 7), ('far', 8), ('near', 8), ('near', 9), ('near', 10)])
    if receives:
        ways.append([('far', 7), ('far', 9), ('far', 10)])
    for way in ways:
        times = [told(steps, *step) for step in way]
        check(None not in times and times == sorted(times), f'{op} on {qp}: {way} {times}\n{json.dumps(steps, indent=1)}')
    unknown = [s for s in steps['steps'] if s['happens'] and 'us' not in s]
    check(not unknown, f'{op} on {qp}: nothing tells when: {unknown}')
    check(told(steps, 'far', 1) < 0 and told(steps, 'near', 1) < 0, 'the memory was registered after the post')
    posted = next(s for s in steps['steps'] if s['end'] == 'far' and s['step'] == 2)
    check(posted['happens'] == receives, posted)


def steps_of(text):
    return json_events(text, 'steps')


def steps(server, client):
    with Serve(server, '--record') as serve:
        for qp, ops in ON.items():
            for op in ops:
                argv = ['--steps', '--json', '--op', op, '--qp', qp, '-c', '3', '-i', '0', '--wait', 'event', *target(serve)]
                got = steps_of(ping(client, *argv))
                check(len(got) == 3 and all(s['near_recorded'] and s['far_recorded'] and not s['clocks_differ'] for s in got), got)
                for each in got:
                    check_steps(op, qp, each)
        text = ping(client, '--steps', '--op', 'write', '--size', '9000', '-c', '1', *target(serve))
        check(re.search(r'RC RDMA WRITE First, [2-9] packets', text) and 'no receive' in text, text)


def answers():
    """The far end counts the operations that its program has answered, without the controls that ask for steps."""
    with Serve(loopback) as serve:
        for number, (op, expected) in enumerate((('read', 0), ('write', 0), ('send', 1), ('send-inv', 1)), 1):
            ping(loopback, '--op', op, '--steps', '-c', '1', *target(serve))
            wait_until('it to disconnect', lambda n=number: len(serve.events('disconnected')) == n)
            check(serve.events('disconnected')[-1]['answers'] == expected, f'{op}: {serve.process.report()}')
    people = loopback.start(ROCI, 'serve', '--port', str(free_ports()), '--bind', '127.0.0.1', '--device', 'embedded', plain=True,
                            env=environment())
    try:
        wait_until('roci serve', lambda: 'roci ping' in people.text() or not people.running())
        port = re.search('port ([0-9]+) of', people.text()).group(1)
        for number, op in enumerate(('read', 'send'), 1):
            ping(loopback, '--op', op, '-c', '1', '--port', port, '127.0.0.1')
            wait_until('it to disconnect', lambda n=number: people.text().count('disconnected') == n)
        check('on this machine, run:\n  roci ping 127.0.0.1' in people.text(), people.report())
        check(re.search(r'\[1\] \S+: disconnected\n', people.text()) and 'has answered 1 time\n' in people.text(), people.report())
    finally:
        people.end()


def steps_without_record():
    with Serve(loopback) as serve:
        text = ping(loopback, '--steps', '-c', '1', *target(serve))
        check('? at 6 to 9: the far end has no record' in text and all(re.search(rf'\? +far +{n} ', text) for n in (6, 7, 8)), text)
        check(not re.search(r'\? +near ', text), text)
    # A capture that goes elsewhere cannot be read again: as on devices that record nothing. A named pipe has a reader already.
    with tempfile.TemporaryDirectory() as directory:
        pipe = os.path.join(directory, 'pipe')
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        for capture in '/dev/null', pipe:
            text = ping(loopback, '--loopback', '--steps', '-c', '1', env={'ROCI_CAPTURE': capture})
            check('? at 4, 5, 8 and 9: only the embedded device records what it does (--device embedded), in memory' in text, text)
            check(all(re.search(rf'\? +near +{n} ', text) for n in (4, 5, 8, 9)) and not re.search(r'\? +near +(3|10) ', text), text)
        os.close(reader)
    both = steps_of(ping(loopback, '--loopback', '--steps', '--json', '-c', '2', '-i', '0'))
    for each in both:
        check_steps('send', 'rc', each)


def interrupted():
    with Serve(loopback) as serve:
        for argv in [], ['--wait', 'event', '--connect', 'socket'], ['--qp', 'ud', '-i', '30']:
            process = start(loopback, *argv, *target(serve))
            try:
                wait_until('an operation', lambda: 'seq=1 ' in process.text() or not process.running())
                process.end(signal.SIGINT)
            finally:
                process.end()
            check(process.popen.returncode == GOOD and ' 0 failed' in process.text() and 'median' in process.text(), process.report())
        wait_until('all to disconnect', lambda: len(serve.events('disconnected')) == 3)
        busy = start(loopback, '-i', '0', '-q', *target(serve))
        try:
            wait_until('a fourth', lambda: len(serve.events('connected')) == 4)
            for sig in signal.SIGTERM, signal.SIGINT:
                serve.process.end(sig)
                check(serve.process.popen.returncode == 0, serve.process.report())
            check(busy.wait(30) == FAILED, busy.report())
            check(re.search('disconnected|closed the connection', busy.text()), busy.report())
            check('retry counter' not in busy.text(), f'it waited for a far end that had said that it leaves\n{busy.report()}')
        finally:
            busy.end()


def server_killed():
    """SIGKILL, in the middle: the client says that it is lost. A new server on the same port serves."""
    for argv in [], ['--connect', 'socket', '--op', 'read'], ['--qp', 'ud']:
        with Serve(loopback) as serve:
            process = start(loopback, '-i', '200ms', *argv, *target(serve))
            try:
                wait_until('an operation', lambda: 'seq=2 ' in process.text() or not process.running())
                serve.process.end(signal.SIGKILL)
                if 'ud' in argv:  # nothing tells: each datagram is lost
                    wait_until('a loss', lambda: 'no answer within' in process.text() or not process.running())
                    process.end(signal.SIGINT)
                check(process.wait(60) == FAILED, process.report())
            finally:
                process.end()
            with Serve(loopback, port=serve.port) as again:
                ping(loopback, '-c', '2', '-i', '0', *argv, *target(again))


def at_once():
    """Many clients at the same time, of each kind."""
    with Serve(loopback) as serve:
        kinds = [['--op', op, '--connect', way] for op in ('send', 'write', 'read') for way in ('cm', 'socket')]
        clients = [start(loopback, *kind, '-i', '10ms', *target(serve)) for kind in kinds]
        try:
            for client in clients:
                wait_until('an operation', lambda c=client: 'seq=3 ' in c.text() or not c.running())
            check(len(serve.events('connected')) - len(serve.events('disconnected')) == len(kinds), serve.process.report())
            for client in clients:
                client.end(signal.SIGINT)
                check(client.popen.returncode == GOOD, client.report())
        finally:
            for client in clients:
                client.end()


def connect(serve):
    return socket.create_connection(('127.0.0.1', serve.port + 1), timeout=20)


def too_many():
    """A client more than there may be is sent away, and comes in when another one has gone."""
    with Serve(loopback) as serve:
        idle = [connect(serve) for _ in range(CLIENTS)]
        for way in 'cm', 'socket':
            text = ping(loopback, '--connect', way, '-c', '1', *target(serve), status=CANNOT)
            check('serves as many clients as it takes' in text, text)
        idle.pop().close()
        wait_until('a place', lambda: serve.events('problem'))
        ping(loopback, '-c', '1', *target(serve))
        for each in idle:
            each.close()


def garbage():
    """Bytes of strangers on the TCP port. Each is told no, or dropped, and the others are served."""
    rng = random.Random(5)
    with Serve(loopback) as serve:
        client = start(loopback, '-i', '10ms', *target(serve))
        try:
            wait_until('an operation', lambda: 'seq=1 ' in client.text() or not client.running())
            for number in range(60):
                with connect(serve) as stranger:
                    head = [b'', b'ROT1', b'ROT1\x01', b'ROT1\x63', b'GET / HTTP/1.0\r\n\r\n'][number % 5]
                    stranger.sendall(head + rng.randbytes(rng.choice((0, 1, 20, REQUEST_BYTES - 5, REQUEST_BYTES, 5000))))
                    try:
                        stranger.shutdown(socket.SHUT_WR)
                        while stranger.recv(4096):
                            pass
                    except OSError:  # it has been sent away already
                        pass
            check(serve.process.running(), serve.process.report())
            client.end(signal.SIGINT)
            check(client.popen.returncode == GOOD, client.report())
        finally:
            client.end()
        ping(loopback, '-c', '1', '--connect', 'socket', *target(serve))


def wrong_request():
    """A request that is well formed, but of a QP that is nowhere, asks for what UD has not, or is followed by more."""
    def request(op, qp, size):
        return b'ROT1' + bytes((1, op, qp << 4, 3)) + size.to_bytes(4, 'big') + b'seed' + b'\0\0\3\xff' + bytes(4) + \
            (77).to_bytes(4, 'big') + bytes(4) + bytes(2) + bytes(10) + b'\xff\xff\x7f\0\0\1' + bytes(6)
    with Serve(loopback) as serve:
        for op, qp, size, status in ((0, 0, 64, 0), (5, 2, 64, 4), (0, 2, 1 << 20, 5), (6, 0, 9, 2)):
            with connect(serve) as stranger:
                stranger.sendall(request(op, qp, size))
                offer = stranger.recv(4096)
                check(offer[:4] == b'ROT2' and offer[5] == status, f'{op} {qp} {size}: {offer}')
                stranger.sendall(bytes(1000))
        ping(loopback, '-c', '1', *target(serve))


SESSION = {'time', 'event', 'client', 'address', 'connect'}
REQUEST = {'op', 'qp', 'bytes'}


def serve_json():
    """Each event of `roci serve --json` has its members, and nothing but JSON is on standard output. Who connects and goes without
    a word, as `roci doctor` and a port scan do, is no event."""
    with Serve(loopback) as serve:
        connect(serve).close()
        with connect(serve) as stranger:
            stranger.sendall(b'ROT1')
        wait_until('a problem', lambda: serve.events('problem'))
        with connect(serve) as stranger:
            stranger.sendall(b'GET / HTTP/1.0\r\n\r\n'.ljust(REQUEST_BYTES))
            stranger.recv(4096)
        nowhere = b'ROT1' + bytes((1, 0, 0, 3)) + (64).to_bytes(4, 'big') + b'seed' + b'\0\0\3\xff' + bytes(4) + (77).to_bytes(4, 'big') + \
            bytes(4) + bytes(2) + bytes(10) + b'\xff\xff' + bytes((203, 0, 113, 1)) + bytes(6)
        with connect(serve) as stranger:
            stranger.sendall(nowhere)
            stranger.recv(4096)
        ping(loopback, '--op', 'write', '-s', '100', '-c', '1', *target(serve))
        wait_until('it to disconnect', lambda: serve.events('disconnected'))
        lines = [json.loads(line) for line in serve.process.text().splitlines()]
    check([e['event'] for e in lines] == ['listening', 'problem', 'refused', 'refused', 'connected', 'disconnected'], lines)
    listening, problem, refused, failed, connected, disconnected = lines
    check(set(listening) == {'time', 'event', 'address', 'port', 'tcp_port', 'device', 'embedded', 'lacks'}, listening)
    check(listening['tcp_port'] == listening['port'] + 1 and listening['device'] == 'roci0' and listening['embedded'], listening)
    check(set(problem) == SESSION | {'text'} and 'before it made a request' in problem['text'], problem)
    check(set(refused) == SESSION | {'text'} and 'understand' in refused['text'], refused)
    check(set(failed) == SESSION | REQUEST | {'text', 'explain', 'explanation'} and 'RTR' in failed['text'], failed)
    check(set(connected) == SESSION | REQUEST, connected)
    check(connected['op'] == 'write' and connected['qp'] == 'rc' and connected['connect'] == 'cm' and connected['bytes'] == 100, connected)
    check(set(disconnected) == SESSION | REQUEST | {'answers'} and disconnected['client'] == connected['client'], disconnected)
    check(all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', e['time']) for e in lines), lines)


def wrong_host():
    port = str(free_ports())
    for argv, said in ((['no-such-host.invalid'], 'no-such-host.invalid: '),
                       (['--port', port, '127.0.0.1'], 'is `roci serve` running there'),
                       (['--connect', 'socket', '--port', port, '127.0.0.1'], 'is `roci serve` running there'),
                       (['--qp', 'ud', '--port', port, '127.0.0.1'], 'SIDR status 1: is `roci serve` running there, on this port?\n  nobody listens'),
                       (['--qp', 'uc', '--port', port, '127.0.0.1'], 'is `roci serve` running there')):
        text = ping(loopback, *argv, status=CANNOT)
        check(said in text, f'{argv}: {text}')
    text = ping(loopback, '--port', port, '127.0.0.1', status=CANNOT)
    check('roci explain REJ 8' in text, text)
    with Serve(loopback) as serve:
        second = loopback.start(ROCI, 'serve', '--port', str(serve.port), '--device', 'embedded', plain=True, env=environment())
        check(second.wait(30) == CANNOT and 'another program listens there already' in second.text(), second.report())


def loss():
    """On UC and UD a lost message is a failure that is counted, and the next one is tried. RC repairs it."""
    env = {'ROCI_FAULT': 'loss=0.3,seed=4'}
    with Serve(loopback) as serve:
        ping(loopback, '-c', '50', '-i', '0', *target(serve), env=env)
        for qp in 'uc', 'ud':
            text = ping(loopback, '--qp', qp, '-c', '12', '-i', '0', '--timeout', '1500ms', '--json', '--connect', 'socket', *target(serve),
                        env=env, status=FAILED)
            summary = json_events(text, 'summary')[0]
            check(summary['operations'] == 12 and 0 < summary['failed'] < 12 and 'no answer within 1.5 s' in text, text)


if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    sys.exit(tap([
        ('every combination over loopback', lambda: every_combination(loopback, loopback, '127.0.0.1')),
        ('every combination between two hosts, IPv4', lambda: every_combination(host_a, host_b, host_a.address)),
        ('every combination between two hosts, IPv6', lambda: every_combination(host_a, host_b, host_a.ipv6)),
        ('the table', table),
        ('the output', output), ('a far peer', far_peer),
        ('sizes, pieces, inline', sizes),
        ('steps at both ends', lambda: steps(host_a, host_b)),
        ('what the far end has answered', answers),
        ('steps without a record', steps_without_record),
        ('^C', interrupted),
        ('the server is killed', server_killed),
        ('many at once', at_once),
        ('too many', too_many),
        ('garbage', garbage),
        ('wrong requests', wrong_request),
        ('roci serve as JSON', serve_json),
        ('wrong hosts', wrong_host),
        ('loss', loss),
    ]))
