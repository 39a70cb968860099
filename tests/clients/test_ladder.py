# SPDX-License-Identifier: BSD-2-Clause
"""`roci ladder`: its commands, and its page in a headless Chromium: it loads, folds, filters, obeys keys, shows losses and errors,
draws little of much, and runs nothing that a capture says."""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import roce_pcap
from browser import Browser
from harness import ROCI, SLOW, Host, check, isolate, tap, wait_until
from made_capture import A, B, HEAD, T0, block, packet, record
from mover import environment

PACKETS = 100000
MOST_ELEMENTS = 3000  # that are drawn at a time, whatever the capture has
EVIL = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">'


def path(name):
    return os.path.join(directory, name)


def roci(*argv, stdin=None):
    """Runs roci to its end. Returns its exit status, and what it wrote to standard output and to standard error."""
    done = subprocess.run([ROCI, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin or subprocess.DEVNULL, timeout=60 * SLOW + 60,
                          cwd=directory, env=dict(os.environ, **environment()))
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')


def ladder(*argv, status=0, stdin=None):
    """Runs `roci ladder`. Returns what it wrote to standard output, and to standard error."""
    got, out, err = roci('ladder', *argv, stdin=stdin)
    check(got == status, f'roci ladder {argv}: exit status {got}, not {status}\n{out[-500:]}\n{err}')
    return out, err


def data_of(page):
    with open(page, encoding='utf-8') as file:
        return json.loads(re.search(r'<script type="application/json" id="ladder-data">(.*?)</script>', file.read(), re.S)[1])


# ---- captures that no network has seen ----

def conversation(messages, packets_each, payload=b'x' * 64):
    """WRITEs of several packets, and an acknowledgement for each."""
    psn, now = 100, T0
    for _ in range(messages):
        for n in range(packets_each):
            first, last = n == 0, n == packets_each - 1
            opcode = 10 if first and last else 6 if first else 8 if last else 7
            reth = struct.pack('>QII', 0x1000, 0x77, len(payload) * packets_each) if first else b''
            yield packet(now, A, B, opcode, 0x22, psn, reth + payload, ack=last)
            psn, now = psn + 1, now + 700
        yield packet(now, B, A, 17, 0x11, psn - 1, struct.pack('>I', 0x1f000001))
        now += 900


# ---- commands ----

def of_a_program():
    out, err = ladder('-o', path('ping.html'), '--', ROCI, 'ping', '--device', 'embedded', '--loopback', '-c', '3', '-i', '0', '-s', '20000',
                      '--op', 'write')
    check('3 operations, 0 failed' in out, f'the program is not to be heard: {out}')
    check(f'open {path("ping.html")} in a browser' in err, err)
    data = data_of(path('ping.html'))
    check(len(data['ends']) == 2, f'ends {data["ends"]}')
    # A DREP ends its connection for who sends it, and the program may end before it has read the last of them: they are sent, and that is all.
    ways = list(zip(data['packets']['t'], data['packets']['arrived'], data['packets']['text']))
    while ways and ways[-1][1] == -1 and ways[-1][2].startswith('CM DREP'):
        ways.pop()
    wrong = [way for way in ways if way[1] < way[0]]
    check(ways and not wrong, f'a packet arrives before it leaves, or not at all: {wrong}')
    # The one that asks for the connection is at the left with all that it does.
    columns = data['packets']
    sides = {columns['from'][i] for i, text in enumerate(columns['text']) if 'CM REQ' in text or columns['opcode'][i] == 6}
    check(sides == {0}, f'requests come from {sides}')
    # SENDs are of connection management, and before the first packet a probe looks like a WRITE of nothing: no program posts them.
    work = [m for m in data['messages'] if m['kind'] != 'SEND' and (m['kind'], m['bytes']) != ('WRITE', 0)]
    check(len(work) >= 6 and all(m['post'] >= 0 and m['completion'] >= 0 for m in work), f'a message has no post or no completion: {work}')
    # A picture on standard output is alone there.
    one = ('--', ROCI, 'ping', '--device', 'embedded', '--loopback', '-c', '1')
    for option in (['--svg'], ['--text'], ['-o', '-']):
        out, err = ladder(*option, *one)
        check(out.startswith(('<svg', '# RDMA ladder', '<!doctype html>')) and '1 operation, 0 failed' in err, f'{option}: {out[:200]}\n{err}')
    ladder('-o', path('no.html'), '--', path('nowhere'), status=127)
    ladder('-o', path('no.html'), '--', 'false', status=1)
    check(not os.path.exists(path('no.html')), 'a picture of nothing')


def of_two_processes():
    """Each process is an end, and packets of connection management go the right way between two of one address."""
    capture = path('two.pcapng')
    serve = here.start(ROCI, 'serve', '--device', 'embedded', '--port', '18601', env={'ROCI_CAPTURE': capture, **environment()}, plain=True)
    wait_until('roci serve', lambda: 'waiting' in serve.text() or 'port' in serve.text() or not serve.running())
    here.call(ROCI, 'ping', '--device', 'embedded', '--port', '18601', '-c', '2', '-i', '0', '127.0.0.1', env={'ROCI_CAPTURE': capture, **environment()}, plain=True)
    serve.end(subprocess.signal.SIGTERM)
    ladder('-o', path('two.html'), capture)
    data = data_of(path('two.html'))
    names = [end['name'] for end in data['ends']]
    check(sorted(names) == ['roci ping', 'roci serve'], f'ends {data["ends"]}')
    ping = names.index('roci ping')
    for text, sender in zip(data['packets']['text'], data['packets']['from']):
        if 'CM REQ' in text or 'CM RTU' in text:
            check(sender == ping, f'{text} comes from {names[sender]}')
        if 'CM REP' in text:
            check(sender != ping, f'{text} comes from {names[sender]}')


def other_ways_in():
    """`roci ping --ladder` and `roci demo --ladder` draw what they have done."""
    status, out, err = roci('ping', '--loopback', '--ladder', path('p.html'), '-c', '2', '-i', '0')
    check(status == 0 and '2 operations, 0 failed' in out and path('p.html') in err, f'{status}\n{out}\n{err}')
    data = data_of(path('p.html'))
    check(len(data['ends']) == 2 and any('post SEND' in text for text in data['events']['text']), f'{data["ends"]}')
    with open(path('lines'), 'wb') as file:
        file.write(bytes(range(256)) * 2000)
    status, out, err = roci('demo', '--out', path('demo'), f'--ladder={path("d.html")}', path('lines'))
    check(status == 0 and path('d.html') in out, f'{status}\n{out}\n{err}')
    data = data_of(path('d.html'))
    check(sorted(end['name'] for end in data['ends']) == ['roci recv', 'roci send'], f'{data["ends"]}')
    check(any('post WRITE' in text for text in data['events']['text']), 'no WRITE')
    before = open(path('lines'), 'rb').read()
    status, out, err = roci('ping', '--loopback', '--ladder', path('lines'), '-c', '1')
    check(status == 2 and 'left as it is' in err and open(path('lines'), 'rb').read() == before, f'{status}\n{out}\n{err}')


def of_any_capture():
    """Captures of Soft-RoCE, from a file and from a pipe, in all three formats."""
    captures = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'captures')
    for name in sorted(os.listdir(captures)):
        if not name.endswith('.pcap'):
            continue
        capture = os.path.join(captures, name)
        text, _ = ladder('--text', capture)
        check(text.startswith('# RDMA ladder'), text[:100])
        with open(capture, 'rb') as file:
            page, err = ladder('-o', '-', '-', stdin=file)
        check(page.startswith('<!doctype html>') and page.endswith('</html>\n') and not err, f'{name}: {err}')
        svg, _ = ladder('--svg', capture)
        ElementTree.fromstring(svg)
    data = data_of_text(page)
    check(len(data['ends']) == 2, f'{data["ends"]}')


def data_of_text(text):
    return json.loads(re.search(r'id="ladder-data">(.*?)</script>', text, re.S)[1])


def several_in_a_frame():
    """tcpdump sees the packets of segmentation offload before the kernel divides them: one frame, three packets."""
    def headers(length, number):
        return (struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + 8 + length, number, 0x4000, 64, 17, 0, bytes(A), bytes(B)),
                struct.pack('>HHHH', 50000, 4791, 8 + length, 0))
    joined = b''
    for i, (opcode, payload) in enumerate(((0, 1024), (1, 1024), (2, 452))):
        rest = struct.pack('>BBHII', opcode, 0, 0xffff, 0x22, 500 + i) + b'x' * payload
        joined += rest + struct.pack('<I', roce_pcap.icrc(*headers(len(rest) + 4, i), rest))
    whole = b''.join(headers(len(joined), 0)) + joined
    def frame(time_ns, direction):
        return block(6, struct.pack('<IIIII', 0, 0, time_ns, len(whole), len(whole)) + whole + bytes(-len(whole) % 4)
                     + struct.pack('<HHI', 2, 4, direction) + bytes(4))
    with open(path('joined.pcapng'), 'wb') as file:
        file.write(HEAD + frame(1000, 2) + frame(4000, 1))
    text, _ = ladder('--text', 'joined.pcapng')
    check(all(f'PSN {500 + i}' in text for i in range(3)), text)
    columns = data_of_text(ladder('-o', '-', 'joined.pcapng')[0])['packets']
    check(columns['psn'] == [500, 501, 502] and columns['arrived'] == [3000] * 3, f'{columns["psn"]} arrive at {columns["arrived"]}')


def output_file():
    """A picture replaces a picture, and nothing else. What goes wrong names the way on."""
    with open(path('small.pcapng'), 'wb') as file:
        file.write(HEAD + b''.join(conversation(3, 2)))
    for option in ('--svg', '--text', '--max-packets=5'):
        ladder(option, '-o', path('again'), path('small.pcapng'))
    with open(path('mine'), 'w') as file:
        file.write('my notes')
    _, err = ladder('-o', path('mine'), path('small.pcapng'), status=2)
    check('left as it is' in err and open(path('mine')).read() == 'my notes', err)
    check('write `--` before it' in ladder('sleep', '1', status=2)[1], 'a program without --')
    check('usage' in ladder(status=2)[1], 'no usage')
    with open(path('text'), 'w') as f:
        f.write('hello, world')
    _, err = ladder(path('text'), status=1)
    check('neither a pcap nor a pcapng' in err and err.count('\n') == 1, err)
    # A place where no picture can be is refused before the program runs, and not when its work is done.
    for argv in (['ladder', '-o', '/nowhere/x.html', '--', 'echo', 'has run'], ['ladder', '--svg', '-o', path(''), '--', 'echo', 'has run'],
                 ['ping', '--loopback', '-c', '1', '--ladder', '/nowhere/x.html'], ['demo', '--ladder', '/nowhere/x.html', path('mine')]):
        status, out, err = roci(*argv)
        check(status == 2 and not out and ('/nowhere/x.html: No such file' in err or 'is a folder' in err), f'{argv}: {status}\n{out}\n{err}')
    ladder('-o', path('still.svg'), path('small.pcapng'))
    with open(path('still.svg')) as file:
        check(file.read(4) == '<svg', 'a name that ends with .svg')
    check('--svg or --text' in ladder('--svg', '--text', path('small.pcapng'), status=2)[1], 'both')
    check('--fault is for a program' in ladder('--fault', 'loss=0.1', path('small.pcapng'), status=2)[1], 'fault')
    check('loss' in ladder('--fault', 'loss=2', '--', 'true', status=2)[1], 'fault')
    with open(path('empty.pcapng'), 'wb') as file:
        file.write(HEAD)
    check('no packets' in ladder('-o', path('e.html'), path('empty.pcapng'), status=1)[1], 'empty')
    check(ladder('-o', path('e.html'), path('.'), status=1)[1].endswith('it is a directory; name a capture in it\n'), 'a directory')
    with open(path('cut.pcapng'), 'wb') as file:
        file.write((HEAD + b''.join(conversation(3, 2)))[:-30])
    check('cut off' in ladder('-o', path('cut.html'), path('cut.pcapng'), status=1)[1], 'cut off')
    check(len(data_of(path('cut.html'))['packets']['t']) == 8, 'what is good of a cut capture')
    data = data_of_text(ladder('-o', '-', '--max-packets', '5', path('small.pcapng'))[0])
    check(len(data['packets']['t']) == 5 and '--max-packets' in data['notes'][0], f'{data["notes"]}')


def damaged_captures():
    """Random damage: no crash, and the formats stay whole."""
    draw, runs = random.Random(7), 60
    good = HEAD + b''.join(conversation(3, 2)) + record(1, T0, 9, 'x') + record(2, T0 + 5, 9, qpn=0x11, length=1 << 40) + record(
        5, T0 + 9, 9, qpn=0x11, status=99)
    for n in range(runs):
        bad = bytearray(good)
        for _ in range(draw.randrange(1, 30)):
            bad[draw.randrange(100, len(bad))] = draw.randrange(256)
        with open(path('bad.pcapng'), 'wb') as file:
            file.write(bad)
        for option in (['--text'], ['--svg'], ['-o', '-']):
            status, out, err = roci('ladder', *option, path('bad.pcapng'))
            check(status in (0, 1), f'run {n}, {option}: exit status {status}\n{err[-1000:]}')
            if out and option == ['--svg']:
                ElementTree.fromstring(out)
            if out and option[0] == '-o':
                data_of_text(out)
    return f'{runs} captures'


# ---- the page ----

def opened(name):
    if name == 'ping.html' and not os.path.exists(path(name)):
        of_a_program()
    seconds = page.open(path(name))
    page.settle()
    told = page.console()
    check(not told, f'the console says {told}')
    return seconds


def loads():
    opened('ping.html')
    check(page.js('return document.title').startswith('roci ping'), 'title')
    check(page.count('.head-box') == 2 and page.count('.arrow') > 4 and page.count('.event') > 4, 'ends, arrows, events')
    check('2 ends' in page.texts('#summary')[0] and 'no problems' in page.texts('#next-problem')[0], page.texts('#summary')[0])


def folds():
    opened('ping.html')
    page.click('#unfold')
    check(page.count('[data-kind=message]') == 0, 'messages among packets')
    page.key('f')
    page.key('/', *'packets', 'Enter') # which stands in the labels of folded messages only
    check(page.count('.arrow[data-kind=message]') > 0, 'no message')
    check('packets' in page.texts('#detail h2')[0], f'selected: {page.texts("#detail h2")}')
    page.key('Escape')
    page.js("document.getElementById('scroller').focus()")
    before = page.count('.arrow[data-kind=packet]')
    page.key('Enter')
    check(page.count('.arrow[data-kind=packet]') > before, 'Enter opens no message')
    page.key('Enter')
    check(page.count('.arrow[data-kind=packet]') == before, 'Enter closes no message')


def filters():
    opened('ping.html')
    page.click('#fold')
    for n, selector in ((1, '.event .post'), (2, '.arrow.ack'), (3, '.event .other')):
        check(page.count(selector) > 0, f'{selector} is not there')
        page.click(f'#kinds button:nth-child({n})')
        check(page.count(selector) == 0, f'{selector} is still there')
        page.click(f'#kinds button:nth-child({n})')
        check(page.count(selector) > 0, f'{selector} does not come back')
    page.click('#kinds button:nth-child(3)')
    page.click('#legend button')
    check(page.count('.arrow') == 0 and 'Nothing is left' in ''.join(page.texts('#stage text')), 'a pair of QPs stays')


def keyboard():
    opened('ping.html')
    page.js("document.getElementById('scroller').focus()")
    page.key('ArrowDown', 'ArrowDown')
    first = page.texts('#now')[0]
    page.key('ArrowDown')
    check(page.texts('#now')[0] not in ('', first), 'the arrow key does not step')
    page.key('End')
    check(page.js("return document.getElementById('scroller').scrollTop") > 100, 'End does not scroll')
    page.key('Home')
    check(page.js("return document.getElementById('scroller').scrollTop") == 0, 'Home does not scroll')
    check(not page.js("return document.getElementById('panel').hidden"), 'no panel')
    page.key('Escape')
    check(page.js("return document.getElementById('panel').hidden"), 'Escape does not close')
    height = page.js("return document.getElementById('spacer').offsetHeight")
    page.key('+')
    check(page.js("return document.getElementById('spacer').offsetHeight") > height, '+ does not zoom')
    theme = page.js('return document.documentElement.dataset.theme')
    ground = page.js('return getComputedStyle(document.body).backgroundColor')
    page.key('t')
    check(page.js('return document.documentElement.dataset.theme') != theme, 't does not change the theme')
    check(page.js('return getComputedStyle(document.body).backgroundColor') != ground, 'the ground stays as it is')
    page.key('/', 'p', 's', 'n')
    check(re.match(r'\d+ rows', page.texts('#found')[0]), f'search finds {page.texts("#found")}')


def a_fault():
    ladder('-o', path('fault.html'), '--fault', 'loss=0.1,seed=3', '--', ROCI, 'ping', '--device', 'embedded', '--loopback', '-c', '4', '-i', '0',
           '-s', '30000', '--op', 'write', '--no-verify')
    data = data_of(path('fault.html'))
    lost = sum(bool(flags & 0x1c00) for flags in data['packets']['flags'])
    again = sum(bool(flags & 1) for flags in data['packets']['flags'])
    early = [i for i, flags in enumerate(data['packets']['flags']) if flags & 0x400 and not flags & 0x6000]
    check(early, 'nothing is lost before it is sent')
    columns = data['packets']
    repaired = [i for i in early for k in range(i + 1, len(columns['psn'])) if (columns['psn'][k], columns['flow'][k]) == (columns['psn'][i], columns['flow'][i])
                and columns['flags'][k] & 1]
    check(not any('lost' in columns['text'][i] for i in early), 'a label says it twice, beside the flag')
    check(repaired, 'nothing that was lost before it was sent is sent again')
    check(lost and again, f'{lost} lost, {again} sent again: choose another seed')
    opened('fault.html')
    summary = page.texts('#summary')[0]
    check(f'{lost} lost' in summary and f'{again} sent again' in summary, summary)
    for width in (1600, 1250, 1060): # the title gives way, not the figures
        page.size(width, 850)
        page.settle()
        check(page.js('const s = document.getElementById("summary"); return s.scrollWidth <= s.clientWidth'), f'the figures are cut at {width}')
        check(page.js('return document.documentElement.scrollWidth <= innerWidth'), f'the page is wider than {width}')
    page.size(1300, 850)
    page.js("document.getElementById('scroller').focus()")
    seen = set()
    for _ in range(lost + again + 20):
        page.key('n')
        seen |= {cls for cls in ('lost', 'again') if page.count(f'.arrow.at.{cls}')}
        if seen == {'lost', 'again'}:
            break
    check(seen == {'lost', 'again'}, f'`n` comes to {seen}')
    check(page.count('.arrow.lost .cross') or page.count('.arrow.again'), 'no cross')
    page.click('#fold')
    page.key('n')
    check(page.count('.arrow.lost, .arrow.again') > 0, 'folding hides a loss')
    page.key('/', *'packets', 'Enter')
    sizes = {label.split(' · ')[0] for label in page.texts('.arrow .label') if label.startswith('▸ WRITE')}
    check(sizes == {'▸ WRITE  29.3 KiB'}, f'messages of 30000 bytes are said to have {sizes}')
    page.key('Escape')
    return f'{lost} lost, {again} sent again'


def a_nak():
    """A NAK is not folded away with the acknowledgements of its message."""
    def answer(time, psn, syndrome):
        return packet(time, B, A, 17, 0x11, psn, struct.pack('>I', syndrome << 24 | 1))

    def part(time, opcode, psn):
        reth = struct.pack('>QII', 0x1000, 0x77, 256) if opcode == 6 else b''
        return packet(time, A, B, opcode, 0x22, psn, reth + b'x' * 64, ack=True)
    with open(path('nak.pcapng'), 'wb') as file:
        file.write(HEAD)
        file.writelines([part(T0, 6, 100), answer(T0 + 1000, 100, 0x1f), part(T0 + 2000, 7, 102), answer(T0 + 3000, 101, 0x60),
                         part(T0 + 4000, 7, 101), answer(T0 + 5000, 101, 0x1f), part(T0 + 6000, 7, 102), part(T0 + 7000, 8, 103),
                         answer(T0 + 8000, 103, 0x1f)])
    ladder('-o', path('nak.html'), path('nak.pcapng'))
    opened('nak.html')
    problems = page.texts('#next-problem')[0]
    page.click('#fold')
    check(page.count('.arrow.ack[data-kind=message]'), 'nothing is folded')
    bad = page.texts('.arrow.bad .label')
    check(len(bad) == 1 and 'NAK: PSN sequence error' in bad[0], f'red is {bad}')
    check(page.texts('#next-problem')[0] == problems, f'{problems} in packets, {page.texts("#next-problem")[0]} in messages')
    page.click('.arrow.bad .label')
    check('PSN SEQUENCE ERROR' in ''.join(page.texts('#detail .explain')), page.texts('#detail'))


def an_error():
    ladder('-o', path('error.html'), '--', ROCI, 'explain', '--provoke', 'REM_ACCESS_ERR')
    opened('error.html')
    for _ in range(20): # problems: the NAK, the completion, and on a busy machine that the WRITE was sent again
        page.key('n')
        if 'IBV_WC_REM_ACCESS_ERR' in page.texts('#detail')[0]:
            break
    check(page.count('.event.bad') == 1 and page.count('.arrow.bad') > 0, 'no red event, or no red arrow')
    text = page.texts('#detail')[0]
    check('REM_ACCESS_ERR' in text and 'Likely causes' in text and 'roci explain' in text, text)


def a_table():
    opened('ping.html')
    page.click('#table summary')
    rows = page.texts('#rows tr')
    data = data_of(path('ping.html'))
    check(int(page.js("return document.querySelector('table').getAttribute('aria-rowcount')")) == 1 + len(data['packets']['t']) + len(data['events']['t']),
          'the table has not all rows')
    check(len(rows) == 100 or len(rows) == len(data['packets']['t']) + len(data['events']['t']), f'{len(rows)} rows')
    check(any('post WRITE' in row for row in rows) and any('CM REQ' in row for row in rows), 'the story is another one')
    check(page.js("return document.querySelector('#stage').getAttribute('role')") == 'img', 'role')


def prints():
    opened('ping.html')
    page.js("dispatchEvent(new Event('beforeprint'))")
    check(page.count('#print svg .arrow') >= len(data_of(path('ping.html'))['packets']['t']), 'a packet is not printed')
    page.js("dispatchEvent(new Event('afterprint'))")
    check(page.count('#print svg') == 0, 'the print stays')


def luminance(colour):
    return sum(map(float, re.findall(r'[\d.]+', colour)[:3])) / 3


def prints_from_dark():
    """Paper is white, whatever the screen was."""
    opened('ping.html')
    if page.js('return document.documentElement.dataset.theme') != 'dark':
        page.key('t')
    page.media('print')
    page.js("dispatchEvent(new Event('beforeprint'))")
    colours = {selector: page.js('const found = document.querySelector(arguments[0]); const style = getComputedStyle(found); '
                                 'return found.namespaceURI.endsWith("svg") ? style.fill : style.color', selector)
               for selector in ('#title', '#summary', '#print .head-name', '#print .time', '#print .event .label')}
    ground = page.js('return getComputedStyle(document.querySelector("#print .head-box")).fill')
    page.js("dispatchEvent(new Event('afterprint'))")
    page.media('')
    page.key('t')
    check(luminance(ground) > 200 and all(luminance(colour) < 140 for colour in colours.values()), f'{colours} on {ground}')


def searches_in_messages():
    """A packet is found in a message that is folded, too."""
    opened('ping.html')
    data = data_of(path('ping.html'))['packets']
    inside = next(i for i, opcode in enumerate(data['opcode']) if opcode == 7) # WRITE Middle
    page.click('#fold')
    page.key('/', *f'psn {data["psn"][inside]}', 'Enter')
    check(page.texts('#found')[0].startswith('1 row') and page.count('.arrow.at[data-kind=message]'), f'{page.texts("#found")}')
    page.key('Escape')


def narrow():
    """A small window has room for the picture, and nothing sticks out of it."""
    with open(path('pairs of the queues of a name that is long.pcapng'), 'wb') as file:
        file.write(HEAD)
        file.writelines(packet(T0 + n * 1000, A, B, 4, 0x22 + n, 5, b'x' * 8) for n in range(12))
    ladder('-o', path('pairs.html'), path('pairs of the queues of a name that is long.pcapng'))
    page.size(480, 800)
    try:
        opened('pairs.html')
        used, room = page.js('return [document.querySelector("header").offsetHeight, innerHeight]')
        check(used < room / 3, f'what is above the picture has {used} of {room} pixels')
        check(page.js('return document.documentElement.scrollWidth <= innerWidth'), 'the page is wider than the window')
        check(page.js('return document.getElementById("title").scrollWidth <= document.getElementById("title").clientWidth + 1'), 'the title is cut')
        page.js("document.querySelector('#legend button:last-child').scrollIntoView()")
        page.click('#legend button:last-child')
        check(page.texts('#legend button')[0] == 'QP ? ↔ 0x000022', f'{page.texts("#legend button")}')
        check(page.count('#legend button[aria-pressed=false]') == 1, 'a pair of QPs is out of reach')
        page.click('#stage .arrow .label')
        check(not page.js('return document.getElementById("panel").hidden'), 'no panel')
        page.key('?')
        check(page.js("""const {left, bottom} = document.querySelector('#guide div:last-child').getBoundingClientRect();
                         return document.querySelector('#guide').contains(document.elementFromPoint(left + 20, Math.min(bottom, innerHeight) - 60))"""),
              'the panel covers the guide')
    finally:
        page.size(1300, 850)


def many():
    with open(path('many.pcapng'), 'wb') as file:
        file.write(HEAD)
        file.writelines(conversation(PACKETS // 20, 19))
    start = time.monotonic()
    ladder('-o', path('many.html'), path('many.pcapng'))
    drawn = time.monotonic() - start
    seconds = opened('many.html')
    check(str(f'{PACKETS:,} packets') in page.texts('#summary')[0], page.texts('#summary')[0])
    counts, rows = [], set()
    for fold in ('#fold', '#unfold'):
        page.click(fold)
        for place in (0, 0.31, 0.77, 1):
            page.js("const s = document.getElementById('scroller'); s.scrollTop = arguments[0] * s.scrollHeight", place)
            page.settle()
            counts.append(page.count('#stage *'))
            rows.add(page.texts('.time')[3])
            check(page.count('.arrow') > 5, f'{page.count(".arrow")} arrows at {place}')
    check(max(counts) < MOST_ELEMENTS, f'elements drawn: {counts}')
    check(len(rows) >= 7, f'scrolling shows {rows}')
    page.key('-', '-', '-', '-', '-', '-', '-', '-')
    check(page.count('#stage *') < 2 * MOST_ELEMENTS, f'{page.count("#stage *")} elements where it is small')
    check(page.count('#rows tr') <= 100, 'rows of the table')
    return f'drawn in {drawn:.1f} s, opened in {seconds:.2f} s, {os.path.getsize(path("many.html")) >> 20} MiB, at most {max(counts)} elements'


def hostile():
    """Names, bytes and the file's name are what a capture's writer chooses."""
    name = 'a<img src=x onerror=alert(1)>\'"&.pcapng'
    payload = b'</script><script>window.pwned=1</script>'
    with open(path(name), 'wb') as file:
        file.write(HEAD + record(1, T0, 4242, EVIL) + record(1, T0, 4243, '\x1b]0;title\x07\x1b[2J\u2028') + record(2, T0 + 1, 4242, qpn=0x11, wr_id=2**64 - 1, length=64)
                   + b''.join(conversation(2, 2, payload + b'    ')) + packet(T0 + 2, A, B, 10, 0x22, 90, struct.pack('>QII', 0, 1, 4) + b'abcd', pid=4242)
                   + record(5, T0 + 99999, 4243, qpn=5, status=77, opcode=99, wr_id=1))
    text, _ = ladder('--text', path(name))
    check(not re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f]', text), 'control characters reach the terminal')
    svg, _ = ladder('--svg', path(name))
    tree = ElementTree.fromstring(svg)
    with open(path('bytes.pcapng'), 'wb') as file: # names that are no UTF-8, or no XML
        file.write(HEAD + b''.join(record(1, T0, pid, 'NAME').replace(b'NAME', name.ljust(4, b'\0')) + record(2, T0 + pid, pid) for pid, name in enumerate(
            (b'\xff\xfe\xfd', b'\xed\xa0\x80', b'\xef\xbf\xbf', b'\xf4\x90\x80\x80', b'a\xc3'), 1)))
    ElementTree.fromstring(ladder('--svg', path('bytes.pcapng'))[0])
    data_of_text(ladder('-o', '-', path('bytes.pcapng'))[0])
    check(not [e for e in tree.iter() if e.tag.endswith(('script', 'img'))], 'elements in the SVG')
    ladder('-o', path('hostile.html'), path(name))
    opened('hostile.html')
    for key in ('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'End'):
        page.key(key)
    page.click('#table summary')
    check(page.js('return window.pwned') is None, 'a script of the capture has run')
    check(page.count('img') == 0 and page.count('script') == 2, 'elements of the capture are in the page')
    check(page.texts('#title')[0] == name, f'title {page.texts("#title")}')
    check('</script>' in ''.join(page.texts('.head-name')), f'the name is not shown as it is: {page.texts(".head-name")}')
    page.js("const s = document.createElement('script'); s.textContent = 'window.pwned = 2'; document.body.append(s)")
    check(page.js('return window.pwned') is None, "the page's policy lets other scripts run")
    page.console()


def cases():
    yield 'draws a program', of_a_program
    yield 'draws two processes', of_two_processes
    yield 'draws any capture', of_any_capture
    yield 'draws several packets in a frame', several_in_a_frame
    yield 'ping --ladder and demo --ladder', other_ways_in
    yield 'the output file, and complaints', output_file
    yield 'damaged captures', damaged_captures
    yield 'page: loads', loads
    yield 'page: folds', folds
    yield 'page: filters', filters
    yield 'page: keyboard', keyboard
    yield 'page: a fault', a_fault
    yield 'page: a NAK among acknowledgements', a_nak
    yield 'page: an error with its explanation', an_error
    yield 'page: the table', a_table
    yield 'page: prints', prints
    yield 'page: prints from a dark screen', prints_from_dark
    yield 'page: searches in messages', searches_in_messages
    yield 'page: a narrow window', narrow
    yield f'page: {PACKETS} packets', many
    yield 'page: hostile content', hostile


if __name__ == '__main__':
    isolate()
    here, page = Host('here'), None
    with tempfile.TemporaryDirectory() as directory:
        page = Browser()
        try:
            sys.exit(tap(list(cases())))
        finally:
            page.close()
