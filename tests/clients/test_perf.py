# SPDX-License-Identifier: BSD-2-Clause
"""`roci perf` and `roci serve`: every operation, in each way; what is printed, as text and as JSON; what a stranger or the end of
either side may do to them. No figure is judged: this machine may be busy."""
import os
import random
import signal
import socket
import struct
import sys
import tempfile

from harness import ROCI, check, isolate, tap, veth_pair, wait_until
from mover import environment
from test_ping import Serve, json_events, target

GOOD, FAILED, CANNOT = range(3)
OPS = ('send', 'send-imm', 'write', 'write-imm', 'read', 'cas', 'faa')
PHASES = ('bandwidth', 'latency', 'tcp-bandwidth', 'tcp-latency')


def start(host, *argv):
    return host.start(ROCI, 'perf', '--device', 'embedded', *argv, plain=True, env=environment())


def perf(host, *argv, status=GOOD):
    """Runs roci perf to its end. Returns what it printed."""
    process = start(host, *argv)
    got = process.wait(60)
    check(got == status, f'exit status {got}, not {status}\n{process.report()}')
    return process.text()


def results(text, phase=None):
    return [r for r in json_events(text, 'result') if phase in (None, r['phase'])]


def check_result(r):
    """What must hold of any figure."""
    check(r['messages'] > 0 and r['ns'] > 0, r)
    check(sum(i['messages'] for i in r['intervals']) == r['messages'], r)
    check(r['near']['seconds'] > 0 and r['far']['seconds'] > 0, r)
    if 'latency' not in r['phase']:
        check(abs(r['messages_per_s'] * r['bytes'] / r['bytes_per_s'] - 1) < 1e-6, r)
        return
    p = r['percentiles_ns']
    order = [r['min_ns'], p['50'], p['90'], p['99'], p['99.9'], p['99.99'], r['max_ns']]
    check(0 < order[0] and order == sorted(order) and r['histogram'].startswith('HISTFA'), r)


def every_operation(client, serve, *options):
    for op in OPS:
        sizes = [] if op in ('cas', 'faa') else ['--size', '1,4K,64K']
        text = perf(client, '--op', op, *sizes, '--time', '100ms', '--json', *options, *target(serve))
        got = results(text)
        check(len(got) == (3 if sizes else 1) * (4 if '--tcp' in options else 2), text)
        for r in got:
            check_result(r)
        check(json_events(text, 'end')[-1]['complete'], text)
    check(not serve.events('problem') and not serve.events('refused'), serve.process.report())


def ranges_and_lists(client, serve):
    """Sizes come in the order that was asked for; a range has all powers of two."""
    text = perf(client, '--size', '3..40', '--time', '20ms', '--json', '--only', 'bandwidth', *target(serve))
    check([r['bytes'] for r in results(text)] == [4, 8, 16, 32], text)
    text = perf(client, '--size', '64,16,4K', '--time', '20ms', '--json', '--only', 'latency', *target(serve))
    check([(r['phase'], r['bytes']) for r in results(text)] == [('latency', s) for s in (64, 16, 4096)], text)


def many_queue_pairs(client, serve):
    for qps, cqs in ((2, 1), (7, 3), (64, 64)):
        text = perf(client, '--op', 'send', '--qps', str(qps), '--cqs', str(cqs), '--size', '4K', '--depth', '8', '--time', '100ms',
                    '--json', *target(serve))
        check(len(results(text)) == 2, text)
        start_event = json_events(text, 'start')[0]
        check((start_event['qps'], start_event['cqs']) == (qps, cqs), text)


def a_rate_is_kept(client, serve):
    """No more is sent than was asked for. Less may be: the machine is slow at times."""
    text = perf(client, '--rate', '1M', '--size', '4K', '--only', 'bandwidth', '--time', '500ms', '--json', *target(serve))
    r = results(text)[0]
    check(r['messages'] * 4096 <= (1 << 20) * r['ns'] / 1e9 * 1.2 + 16384, text)


def text_for_people(client, serve):
    text = perf(client, '--tcp', '--size', '64', '--time', '100ms', *target(serve))
    for words in ('PERF ', 'RDMA WRITE, 1 queue pair', 'bandwidth', 'CPU seconds per GB', 'latency: half of a round trip', '99.99 %',
                  ' x TCP'):
        check(words in text, f'no "{words}" in\n{text}')
    check('{' not in text and '\033' not in text, text)


def the_log_of_histograms(client, serve):
    """Its lines are those of the format, and their histograms add up to the result."""
    with tempfile.NamedTemporaryFile(suffix='.hlog') as file:
        text = perf(client, '--op', 'read', '--size', '64,4K', '--only', 'latency', '--time', '100ms', '--json', '--histogram',
                    file.name, *target(serve))
        lines = open(file.name).read().splitlines()
    check(lines[1] == '#[Histogram log format version 1.3]' and lines[2].startswith('#[StartTime: '), lines[:4])
    rows = [line.split(',') for line in lines[4:]]
    check({row[0] for row in rows} == {'Tag=read-64', 'Tag=read-4096'}, lines)
    check(all(len(row) == 5 and row[4].startswith('HISTFA') and float(row[3]) > 0 for row in rows), lines)
    for r in results(text):
        mine = [row for row in rows if row[0] == f'Tag=read-{r["bytes"]}']
        check(len(mine) == len(r['intervals']), lines)
        check(abs(max(float(row[3]) for row in mine) - r['max_ns'] / 1e6) < 0.001, lines)


def interrupted(client, serve):
    """^C: what was measured so far is printed, and the far end serves on."""
    process = start(client, '--size', '64,4K', '--time', '20s', '--only', 'bandwidth', '--json', *target(serve))
    wait_until('figures', lambda: any(p['messages'] for p in json_events(process.text(), 'progress')) or not process.running())
    process.popen.send_signal(signal.SIGINT)
    check(process.wait(20) == FAILED, process.report())
    got = results(process.text())
    check(len(got) == 1 and got[0]['interrupted'] and got[0]['messages'] > 0, process.report())
    check(not json_events(process.text(), 'end')[-1]['complete'] and not json_events(process.text(), 'failure'), process.report())
    perf(client, '--size', '64', '--time', '20ms', *target(serve))


def the_far_end_goes(server, client):
    with Serve(server) as serve:
        process = start(client, '--size', '64', '--time', '20s', '--only', 'bandwidth', *target(serve))
        wait_until('a client', lambda: serve.events('connected') or not process.running())
        serve.process.end(signal.SIGTERM)
        check(serve.process.popen.returncode == 0, serve.process.report())
    check(process.wait(30) == FAILED, process.report())
    check('roci perf: ' in process.text(), process.report())


def the_near_end_goes(client, serve):
    process = start(client, '--op', 'send', '--size', '64', '--time', '20s', *target(serve))
    before = len(serve.events('disconnected'))
    wait_until('a client', lambda: len(serve.events('connected')) > before or not process.running())
    process.end()
    wait_until('its end', lambda: len(serve.events('disconnected')) > before)
    perf(client, '--size', '64', '--time', '20ms', *target(serve))


def arguments(client, serve):
    """What cannot be is refused before anything is connected, with the cause and what to do."""
    for argv, words in (
            (['--size', '0'], 'from 1 to 16M'), (['--size', '8..4'], 'from 1 to 16M'), (['--size', '17M'], 'from 1 to 16M'),
            (['--size', '64,,4K'], 'from 1 to 16M'), (['--cqs', '2'], 'use --qps 2'), (['--op', 'cas', '--size', '64'], 'leave --size out'),
            (['--qps', '200'], 'use fewer or a smaller --size'), (['--op', 'flush'], 'send, send-imm'),
            (['--depth', '0'], '--depth')):
        text = perf(client, *argv, *target(serve), status=CANNOT)
        check(words in text, f'no "{words}" in\n{text}')
    text = perf(client, status=CANNOT)
    check('name one machine' in text, text)


def nobody_there(client):
    text = perf(client, '--port', '19999', client.address, status=CANNOT)
    check('is `roci serve` running there?' in text, text)


def several_at_once(client, serve):
    processes = [start(client, '--op', op, '--size', '4K', '--time', '200ms', '--json', *target(serve)) for op in ('send', 'read', 'write')]
    for process in processes:
        check(process.wait(60) == GOOD, process.report())
        check(len(results(process.text())) == 2, process.report())


def one_too_many(server, client):
    """The far end serves eight at once. The ninth learns it; when they have gone, there is room again."""
    with Serve(server) as serve:
        sockets = [socket.create_connection((server.address, serve.port + 1), timeout=20) for _ in range(8)]
        try:
            for s in sockets:
                s.sendall(hello()[:20])
            text = perf(client, '--size', '64', *target(serve), status=CANNOT)
            check('measures for as many clients as it takes at once' in text, text)
        finally:
            for s in sockets:
                s.close()
        wait_until('the places', lambda: len(serve.events('refused')) >= 9)
        perf(client, '--size', '64', '--time', '20ms', *target(serve))


def hello(op=3, flags=0, mtu=5, qps=1, cqs=1, depth=16, size=64):
    return struct.pack('>4s4B2H5IH2B16s', b'ROP1', 1, op, flags, mtu, qps, cqs, depth, size, 0x3ff, 0, 0, 0, 1, 0, b'')[:36].ljust(56, b'\0')


def strangers(serve):
    """Whatever a stranger sends, the far end ends it and serves on."""
    dice = random.Random(7)
    for _ in range(40):
        bytes_ = bytearray(hello(op=dice.randrange(12), qps=dice.randrange(300), cqs=dice.randrange(300),
                                 depth=dice.choice((0, 1, 2 ** 31)), size=dice.choice((0, 1, 2 ** 31))))
        for _ in range(dice.randrange(4)):
            bytes_[dice.randrange(4, 56)] = dice.randrange(256)
        with socket.create_connection((serve.host.address, serve.port + 1), timeout=20) as s:
            s.sendall(bytes(bytes_[:dice.randrange(3, 57)]))
            if dice.randrange(2):
                try:
                    s.sendall(dice.randbytes(dice.randrange(400)))
                except OSError:
                    pass
    check(serve.process.running(), serve.process.report())


def main():
    isolate()
    os.environ['ROCI_STATS'] = ''  # these tests compare the output
    server, client = veth_pair()
    with Serve(server) as serve:
        def on(function, *arguments_):
            return lambda: function(client, serve, *arguments_)
        return tap([
            ('every operation', on(every_operation)),
            ('every operation, both directions', on(every_operation, '--bidir')),
            ('every operation, events', on(every_operation, '--events', '--bidir', '--qps', '3', '--cqs', '2')),
            ('every operation, TCP beside', on(every_operation, '--tcp')),
            ('ranges and lists of sizes', on(ranges_and_lists)),
            ('many queue pairs', on(many_queue_pairs)),
            ('a rate is kept', on(a_rate_is_kept)),
            ('text for people', on(text_for_people)),
            ('the log of histograms', on(the_log_of_histograms)),
            ('interrupted', on(interrupted)),
            ('the far end goes', lambda: the_far_end_goes(server, client)),
            ('the near end goes', on(the_near_end_goes)),
            ('arguments', on(arguments)),
            ('nobody there', lambda: nobody_there(client)),
            ('several at once', on(several_at_once)),
            ('strangers', lambda: strangers(serve)),
            ('one too many', lambda: one_too_many(server, client)),
        ])


if __name__ == '__main__':
    sys.exit(main())
