# SPDX-License-Identifier: BSD-2-Clause
"""roci explain: what it prints, and that every command that it names to see an error does make it happen."""
import json
import os
import pathlib
import re
import shlex
import sys

import command_line
from command_line import here, roci, says
from harness import HERE, ROCI, SANITIZER, check, tap

FAILED, USAGE, NO_CONNECT = 1, 2, 4
SOURCES = pathlib.Path(HERE).parent.parent / 'src'


def people():
    out, _ = roci('explain', 'status', '12', 'vendor', 'err', '129')
    says(r'(?s)^IBV_WC_RETRY_EXC_ERR \(completion status 12\)\n.*\nWhere to look: .*\n  1\. .*See it happen on roci0:\n', out)
    check(max(len(line) for line in out.splitlines()) <= 100, f'a line is longer than 100 characters:\n{out}')
    out, _ = roci('explain', 'RDMA_CM_EVENT_REJECTED, error 28')
    says(r'(?s)^IB_CM_REJ_CONSUMER_DEFINED .*\n----\n\nRDMA_CM_EVENT_REJECTED ', out)
    out, _ = roci('explain', '12')
    says(r'(?s)^IBV_WC_RETRY_EXC_ERR.*The same number could also be:\n.*errno 12: ENOMEM', out)
    says(r'^EINVAL \(errno 22\)', roci('explain', '-22')[0])
    says(r'^EPIPE \(errno 32\)', roci('explain', 'rsend: Broken pipe')[0])


def classics():
    """What people get wrong."""
    out, _ = roci('explain', 'WR_FLUSH_ERR')
    says('a consequence, not the cause', out)
    says('closed .* while receives were posted: not an error', ' '.join(out.split()))
    says('the peer had no receive posted', roci('explain', 'RNR_RETRY_EXC_ERR')[0])
    says('rkey, range, rights or PD', roci('explain', 'REM_ACCESS_ERR')[0])
    says('nobody listens on that port', roci('explain', 'REJ 8')[0])
    says('a router or tunnel on the way .* carries less than both interfaces', ' '.join(roci('explain', 'REJ 26')[0].split()))


def unknown():
    _, err = roci('explain', 'RNR_RETY_EXC_ERR', status=FAILED)
    says('did you mean `roci explain RNR_RETRY_EXC_ERR`', err)
    _, err = roci('explain', 'IBV_WC_SUCCES', status=FAILED)
    says('did you mean `roci explain IBV_WC_SUCCESS`', err)
    _, err = roci('explain', 'status', '77', status=FAILED)
    says('77 is no completion status .0 to', err)
    _, err = roci('explain', 'zzzzzz', status=FAILED)
    says('`roci explain --list` lists', err)
    says('say what to explain', roci('explain', status=USAGE)[1])
    says('--list takes no WHAT', roci('explain', '--list', 'x', status=USAGE)[1])
    says('no way here', roci('explain', '--provoke', 'DEVICE_REMOVAL', status=USAGE)[1])
    says('another command shows it: roci explain --provoke RNR_RETRY_EXC_ERR', roci('explain', '--provoke', 'RNR NAK', status=USAGE)[1])


def rows():
    return json.loads(roci('explain', '--list', '--json')[0])['found']


def as_json():
    nothing = json.loads(roci('explain', '--json', 'zzzzzz', status=FAILED)[0])
    check(nothing['found'] == nothing['also'] == [] and '`roci explain --list` lists' in nothing['note'], nothing)
    note = json.loads(roci('explain', '--json', 'status', '77', status=FAILED)[0])['note']
    check(re.fullmatch(r'77 is no completion status \(0 to \d+\)', note), note)
    general = json.loads(roci('explain', '--json', 'ibv_create_cq: Network is unreachable')[0])
    check('Nothing is known about this errno of this call' in general.get('note', ''), general)
    check('note' not in json.loads(roci('explain', '--json', '12')[0]), 'a note where there is nothing to say')
    found = json.loads(roci('explain', '--json', '12')[0])
    check([e['name'] for e in found['found']] == ['IBV_WC_RETRY_EXC_ERR'], found)
    check('ENOMEM' in [e['name'] for e in found['also']], found)
    check(set(found['found'][0]) == {'kind', 'code', 'name', 'word', 'title', 'meaning', 'look', 'causes', 'try', 'see'}, found)


def everything():
    """Each row is found by its name, and its page names only words that are rows."""
    listed = roci('explain', '--list')[0]
    words = {row['word'] for row in rows()}
    for row in rows():
        check(row['name'] in listed, f'{row["name"]} is not listed')
        for line in row['causes'] + row['try'] + [row['meaning'], row['look'], row['title']]:
            for named in re.findall(r'\b[Ss]ee ([A-Z_]{4,}[A-Z])\b', line):
                check(named in words, f'{row["name"]}: there is no {named}')


def named(pattern, *files):
    """The words of the sources that match."""
    return {word for name in files for word in re.findall(pattern, (SOURCES / name).read_text())}


def in_room(room):
    return [str(path.relative_to(SOURCES)) for path in (SOURCES / room).glob('*.c')]


def produced():
    """The names of all codes that the device's sources make, of each kind."""
    return {
        'completion status': {'IBV_' + word[5:] for word in named(r'\bROCI_WC_[A-Z_]*(?:ERR|SUCCESS)\b', *in_room('engine'))},
        'CM reject reason': {'IB_CM' + word[4:] for word in named(r'\bROCI_REJ_[A-Z_]+\b', *in_room('cm'), *in_room('rdmacm'))},
        'rdma_cm event': named(r'\bRDMA_CM_EVENT_[A-Z_]+\b(?=[,;)]| \?)', 'rdmacm/upcall.c', 'rdmacm/event.c', 'rdmacm/resolve.c',
                               'rdmacm/option.c', 'rdmacm/mcast.c'),
        'asynchronous event': {'IBV' + word[4:] for word in named(r'\bROCI_EVENT_[A-Z_]+\b', *in_room('engine'), *in_room('device'))},
    }


def complete():
    """Every code that the device can produce has a command that makes it happen; a code without one is no code of the device,
    and its page says so."""
    table, by_kind = rows(), produced()
    for kind, names in by_kind.items():
        check(len(names) > 7, f'only {names} of {kind}')
        here_too = {row['name'] for row in table if row['kind'] == kind and 'see' in row and not row.get('foreign')}
        if kind == 'completion status':
            here_too.add('IBV_WC_BAD_RESP_ERR')  # it needs a peer that is none of ours
        if kind == 'CM reject reason':
            names = {name.replace('VENDOR_OPTION', 'VENDOR_OPTION_NOT_SUPPORTED') for name in names}
        check(names == here_too, f'{kind}: produced but not provoked {names - here_too}, provoked but not produced {here_too - names}')
    unseen = [row['name'] for row in table if row['kind'] == 'QP state' and 'see' not in row]
    check(not unseen, f'no command shows {unseen}')
    for row in [row for row in table if row['kind'] in by_kind]:
        page = roci('explain', row['name'])[0].split('\n----\n')[0]
        check(('See it happen on roci0:' in page) == ('see' in row and 'foreign' not in row), page)
        check(('roci0 can meet it, but never causes it.' in page) == ('foreign' in row), page)
        check(('roci0 never reports it.' in page) == ('see' not in row), page)


def provoke():
    """Each command that a page names makes its error happen: a new row without a way to it fails in complete()."""
    commands = {}
    for row in rows():
        if 'see' in row:
            commands.setdefault(row['see'], row['name'])
    check(len(commands) >= 90, f'{len(commands)} commands')
    wrong = []
    for command, name in commands.items():
        argv = [ROCI if word == 'roci' else word for word in shlex.split(command)]
        check(ROCI in argv and '--provoke' in argv, command)
        process = here.start(*argv, env=command_line.environment(), plain=not SANITIZER)
        if process.wait(60) != 0 or 'That is' not in process.text():
            wrong.append(f'{name}\n{process.report()}')
    check(not wrong, '\n'.join(wrong))
    return f'{len(commands)} commands'


def tools():
    """Every tool names the explanation of an error, for people and as JSON."""
    nowhere, foreign = '203.0.113.1', '192.0.2.1'
    for status, word, argv in ((NO_CONNECT, 'ENETUNREACH', ['send', '--device', 'embedded', '--open', __file__, nowhere]),
                               (3, 'EADDRNOTAVAIL', ['recv', '--device', 'embedded', '--open', '--bind', foreign]),
                               (USAGE, 'ENETUNREACH', ['ping', '--device', 'embedded', '--op', 'send', nowhere]),
                               (USAGE, 'ENETUNREACH', ['ping', '--device', 'embedded', '--op', 'all', '--qp', 'rc', nowhere]),
                               (USAGE, 'ENETUNREACH', ['ping', '--device', 'embedded', '--op', 'send', '--connect', 'socket', nowhere]),
                               (USAGE, 'EADDRNOTAVAIL', ['serve', '--device', 'embedded', '--bind', foreign])):
        out, err = roci(*argv, status=status)
        check(re.search(rf'`roci explain {word}`', out + err), f'{argv}\n{out}{err}')
        out, err = roci(*argv, '--json', status=status)
        lines = [json.loads(line) for line in out.splitlines()]
        check(any(line.get('explain') == word and line['explanation'] for line in lines), f'{argv}\n{out}{err}')


def transfers():
    """A failed transfer names the explanation."""
    _, err = roci('send', '--device', 'embedded', '--open', __file__, '203.0.113.1', status=NO_CONNECT)
    says(r'cannot be reached: Network is unreachable\n  there is no route to that address; `roci explain ENETUNREACH` tells more', err)
    _, err = roci('send', '--device', 'embedded', '--open', __file__, '127.0.0.1', status=NO_CONNECT)
    says(r'nobody listens at 127\.0\.0\.1 .*\n  nobody listens on that port at the far end; `roci explain REJ 8` tells more', err)


if __name__ == '__main__':
    os.environ['ROCI_STATS'] = ''
    sys.exit(tap([('for people', people), ('the classics', classics), ('what is unknown', unknown), ('JSON', as_json),
                  ('every row', everything), ('every code of the device', complete), ('a transfer that fails', transfers), ('every tool', tools), ('every command makes its error happen', provoke)]))
