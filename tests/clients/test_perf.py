# SPDX-License-Identifier: BSD-2-Clause
"""`roci perf` and `roci serve`: every operation, in each way; what is printed, as text and as JSON; what a stranger or the end of
either side may do to them. No figure is judged: this machine may be busy."""
import json
import os
import pty
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from browser import Browser
from harness import DEVICE, ROCI, SANITIZER, Skip, check, isolate, need, tap, transfer, veth_pair, wait_until
from mover import environment
from test_ping import Serve, json_events, target

GOOD, FAILED, CANNOT = range(3)
OPS = ('send', 'send-imm', 'write', 'write-imm', 'read', 'cas', 'faa')
PHASES = ('bandwidth', 'latency', 'tcp-bandwidth', 'tcp-latency')


def start(host, *argv, env=None):
    return host.start(ROCI, 'perf', '--device', 'embedded', *argv, plain=True, env=dict(environment(), **(env or {})))


def perf(host, *argv, status=GOOD, env=None):
    """Runs roci perf to its end. Returns what it printed."""
    process = start(host, *argv, env=env)
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


def over_ipv6(client, serve):
    text = perf(client, '--tcp', '--size', '64,4K', '--time', '50ms', '--json', *target(serve, serve.host.ipv6))
    check(len(results(text)) == 8 and json_events(text, 'start')[0]['address'] == serve.host.ipv6, text)


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


def without_packets(serve):
    """Both ends on one host: there are no packets, unless the wire is asked for."""
    for path, shared, words in (('local', True, 'over shared memory: no packets'), ('wire', False, 'packets of ')):
        argv, env = ['--size', '64', '--only', 'bandwidth', '--time', '20ms', *target(serve)], {'ROCI_PATH': path}
        text = perf(serve.host, *argv, env=env)
        check(f'to device roci0 (embedded), {words}' in text, text)
        check(json_events(perf(serve.host, '--json', *argv, env=env), 'start')[0]['shared_memory'] == shared, text)


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


def the_live_line(client, serve):
    """On a terminal a line tells what is measured, and it is gone at the end; the figures go to standard output without it."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen([*client.prefix, ROCI, 'perf', '--device', 'embedded', '--size', '64', '--time', '500ms', *target(serve)],
                               stdout=subprocess.PIPE, stderr=terminal, text=True, env=dict(os.environ, TERM='xterm', **environment()))
    os.close(terminal)
    shown = b''
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the terminal has no writer any more
        pass
    out = process.communicate(timeout=60)[0]
    os.close(ours)
    check(process.returncode == GOOD and b'1 of 2  bandwidth of 64 B' in shown and b'2 of 2  latency of 64 B' in shown, (shown, out))
    check(shown.endswith(b'\r\x1b[K') and '\x1b' not in out and '99.99 %' in out, (shown, out))


def recording(name, figures, op='write'):
    """A file as of --json, with these rates (bytes/s) of parts of the time, by size."""
    with open(name, 'w') as file:
        print(json.dumps({'event': 'start', 'op': op, 'qps': 1}), 'no JSON at all', json.dumps({'event': 'progress'}), sep='\n', file=file)
        for size, rates in figures.items():
            parts = [{'end_ns': (i + 1) * 10 ** 7, 'messages': int(rate * 0.01 / size)} for i, rate in enumerate(rates)]
            print(json.dumps({'event': 'result', 'phase': 'bandwidth', 'bytes': size, 'bytes_per_s': sum(rates) / len(rates),
                              'intervals': parts}), file=file)


def compared(client, serve):
    """What changed by more than the noise is better or worse, whatever else is in the files."""
    with tempfile.TemporaryDirectory() as folder:
        before, after, empty = (os.path.join(folder, name) for name in ('before.json', 'after.json', 'empty.json'))
        noisy = [1e9 * (1 + (i % 2) / 2) for i in range(20)]
        recording(before, {64: [1e9] * 20, 4096: [1e9] * 20, 65536: noisy, 1: [1e9] * 20})
        recording(after, {64: [1.1e9] * 20, 4096: [0.9e9] * 20, 65536: [r * 1.05 for r in noisy]}, op='read')
        text = perf(client, '--compare', before, after, status=FAILED)
        check('op was "write", and is "read"' in text, text)
        rows = {line.split(' bandwidth')[0].strip(): line.split()[-1] for line in text.splitlines() if ' bandwidth ' in line}
        check(rows == {'64 B': 'better', '4 KiB': 'worse', '64 KiB': 'same'}, text)
        check('+10.0 %' in text and '-10.0 %' in text, text)
        changes = json_events(perf(client, '--compare', '--json', before, after, status=FAILED), 'change')
        check([c['verdict'] for c in changes] == ['better', 'worse', 'same'], changes)
        open(empty, 'w').close()
        for argv, words in (((before, empty), 'has no figures of `roci perf`'), ((before, folder + '/none'), 'No such file'),
                            ((before,), 'needs two files')):
            text = perf(client, '--compare', *argv, status=CANNOT)
            check(words in text, text)
        for name in (before, after):  # files of the command itself
            with open(name, 'w') as file:
                file.write(perf(client, '--size', '64,4K', '--time', '100ms', '--json', *target(serve)))
        process = start(client, '--compare', before, after)
        check(process.wait(60) in (GOOD, FAILED) and process.text().count('latency of 99 %') == 2, process.report())


def the_picture(client, serve):
    """It is an SVG that any viewer can read, with a line for each size."""
    with tempfile.NamedTemporaryFile(suffix='.svg') as file:
        perf(client, '--tcp', '--size', '64,4K', '--time', '200ms', '--plot', file.name, *target(serve))
        root = xml.etree.ElementTree.parse(file.name).getroot()
    texts = [''.join(e.itertext()) for e in root.iter('{http://www.w3.org/2000/svg}text')]
    for words in ('Bandwidth', 'Latency', '64 B', 'TCP 4 KiB', '50 %', 'RDMA WRITE'):
        check(words in texts, f'no "{words}" in {texts}')
    for option in ('--plot', '--histogram'):
        text = perf(client, option, '/nowhere/figures.svg', *target(serve), status=CANNOT)
        check(f'{option} /nowhere/figures.svg: No such file' in text and 'bandwidth' not in text, f'it measured first: {text}')
    for option, name in (('--plot', 'mine.html'), ('--plot', 'mine.svg'), ('--histogram', 'mine')):
        with tempfile.TemporaryDirectory() as folder:
            mine = os.path.join(folder, name)
            with open(mine, 'w', encoding='utf-8') as file:
                file.write('<!doctype html>\n<p>mine\n')
            text = perf(client, option, mine, *target(serve), status=CANNOT)
            with open(mine, encoding='utf-8') as file:
                check('left as it is' in text and file.read() == '<!doctype html>\n<p>mine\n', text)
            # A file of before is replaced.
            os.remove(mine)
            for _ in range(2):
                perf(client, '--size', '64', '--only', 'latency', '--time', '100ms', option, mine, *target(serve))
    text = perf(client, '--plot', 'figures.png', *target(serve), status=CANNOT)
    check('FILE.html' in text, text)


DRAG = '''const box = document.querySelector('#latency .brush .background').getBoundingClientRect();
const at = x => ({bubbles: true, clientX: box.left + x * box.width, clientY: box.top + 50, view: window});
document.querySelector('#latency .brush .background').dispatchEvent(new MouseEvent('mousedown', at(0.3)));
window.dispatchEvent(new MouseEvent('mousemove', at(0.6)));
window.dispatchEvent(new MouseEvent('mouseup', at(0.6)));'''


def the_page(client, serve):
    """In a browser: it draws without an error, hides lines, zooms and shows all again, and has the same figures in its tables."""
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, 'figures.html')
        text = perf(client, '--tcp', '--size', '64,1K,4K', '--time', '200ms', '--json', '--plot', page, *target(serve))
        browser = Browser()
        try:
            browser.open(page)
            check(browser.js('return document.documentElement.dataset.drawn') == 'yes' and not browser.console(), browser.console())
            check(browser.js('return [...document.querySelectorAll("figure")].map(f => f.id)')[:4] ==
                  ['bandwidth', 'messages', 'latency-sizes', 'latency'],
                  browser.texts('h2'))
            check(browser.count('#bandwidth .plot path.series') == 2 and browser.count('#bandwidth circle') == 6, 'lines')
            check(browser.count('#numbers tbody tr') == len(results(text)) == 12, browser.texts('#numbers td'))
            browser.click('#bandwidth .legend button')
            check(browser.count('#bandwidth circle') == 3, 'a click in the legend hides a line')
            before = browser.js('return document.querySelector("#latency .plot path.series").getAttribute("d")')
            browser.js(DRAG)
            zoomed = browser.js('return document.querySelector("#latency .plot path.series").getAttribute("d")')
            check(zoomed != before and browser.count('#latency .reset[hidden]') == 0, 'a drag zooms')
            browser.key('Escape')
            after = browser.js('return document.querySelector("#latency .plot path.series").getAttribute("d")')
            check(after == before and browser.count('#latency .reset[hidden]') == 1, 'Escape shows all')
            check(not browser.console(), browser.console())
            browser.media('print')
            check(browser.js('return getComputedStyle(document.querySelector("#bandwidth .legend [aria-pressed=false]")).display') == 'none',
                  'paper has the name of a line that it does not have')
            browser.media('')
            browser.size(480, 800)
            browser.open(page)
            height = browser.js('return document.querySelector("#bandwidth .axis text").getBoundingClientRect().height')
            check(height > 9, f'the numbers of an axis are {height} pixels high in a narrow window')
            check(browser.js('return document.documentElement.scrollWidth <= innerWidth'), 'the page is wider than a narrow window')
            check(browser.js('return [...document.querySelectorAll(".plot")].every(plot => plot.scrollWidth <= plot.clientWidth)'),
                  'a part of a chart is out of sight')
            numbers = browser.js('''return [...document.querySelectorAll('#latency .x text')].map(text => text.getBoundingClientRect())
                                    .map(box => [box.left, box.right]).sort((a, b) => a[0] - b[0])''')
            check(all(a[1] < b[0] for a, b in zip(numbers, numbers[1:])) and len(numbers) > 2, f'the numbers of an axis are at {numbers}')
        finally:
            browser.close()


PERFTEST = {  # of roci perf's operations: the programs, and their arguments
    'send': ('ib_send_bw', 'ib_send_lat'), 'write': ('ib_write_bw', 'ib_write_lat'), 'read': ('ib_read_bw', 'ib_read_lat'),
}


def of_perftest(server, client, program, size):
    """The figure of a perftest program: Gbit/s, or the typical latency in us."""
    latency = program.endswith('_lat')
    text = transfer(server, client, [program, '-d', DEVICE, '-F', '-c', 'RC', '-s', str(size), '-n', '2000',
                                     *(() if latency else ('--report_gbits',))],
                    ['-x', server.gid_index(server.address)], ['-x', client.gid_index(client.address)], seconds=90)[1]
    lines = [line.split() for line in text.splitlines() if line.split()[:1] == [str(size)]]
    check(lines, text)
    return float(lines[-1][4 if latency else 3])


def beside_perftest(server, client):
    """The same operations on the same path, one after the other. The figures are printed; how fast they are is not judged."""
    need('ib_write_bw')
    if SANITIZER:
        raise Skip('perftest has leaks of its own')
    note = []
    with Serve(server) as serve:
        for op, (bandwidth, latency) in PERFTEST.items():
            text = perf(client, '--op', op, '--size', '64,64K', '--time', '500ms', '--json', *target(serve))
            ours = {(r['phase'], r['bytes']): r for r in results(text)}
            gbits = ours['bandwidth', 65536]['bytes_per_s'] * 8 / 1e9
            median = ours['latency', 64]['percentiles_ns']['50'] / 1e3
            note.append(f'{op} of 64 KiB: roci perf {gbits:.2f} Gbit/s, {bandwidth} {of_perftest(server, client, bandwidth, 65536):.2f}; '
                        f'of 64 B: roci perf {median:.2f} us, {latency} {of_perftest(server, client, latency, 64):.2f}')
            check(gbits > 0 and median > 0, text)
    return '\n'.join(note)


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
            (['--depth', '0'], '--depth'), (['--qps', '16', '--depth', '16384', '--size', '64'], 'use --depth 4096')):
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
            ('over IPv6', on(over_ipv6)),
            ('many queue pairs', on(many_queue_pairs)),
            ('a rate is kept', on(a_rate_is_kept)),
            ('text for people', on(text_for_people)),
            ('the live line', on(the_live_line)),
            ('the log of histograms', on(the_log_of_histograms)),
            ('two files compared', on(compared)),
            ('the picture', on(the_picture)),
            ('the page', on(the_page)),
            ('beside perftest', lambda: beside_perftest(server, client)),
            ('interrupted', on(interrupted)),
            ('the far end goes', lambda: the_far_end_goes(server, client)),
            ('the near end goes', on(the_near_end_goes)),
            ('arguments', on(arguments)),
            ('without packets', lambda: without_packets(serve)),
            ('nobody there', lambda: nobody_there(client)),
            ('several at once', on(several_at_once)),
            ('strangers', lambda: strangers(serve)),
            ('one too many', lambda: one_too_many(server, client)),
        ])


if __name__ == '__main__':
    sys.exit(main())
