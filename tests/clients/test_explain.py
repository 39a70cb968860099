# SPDX-License-Identifier: BSD-2-Clause
"""roci explain: what it prints, and that every command that it names to see an error does make it happen."""
import json
import os
import re
import shlex
import sys

import command_line
from command_line import here, roci, says
from harness import ROCI, SANITIZER, check, need, tap

FAILED, USAGE, NO_CONNECT = 1, 2, 4


def people():
    out, _ = roci('explain', 'status', '12', 'vendor', 'err', '129')
    says(r'(?s)^IBV_WC_RETRY_EXC_ERR \(completion status 12\)\n.*\nWhere to look: .*\n  1\. .*See it happen on roci0:\n', out)
    check(max(len(line) for line in out.splitlines()) <= 100, f'a line is longer than 100 characters:\n{out}')
    out, _ = roci('explain', 'RDMA_CM_EVENT_REJECTED, error 28')
    says(r'(?s)^IB_CM_REJ_CONSUMER_DEFINED .*\n----\n\nRDMA_CM_EVENT_REJECTED ', out)
    out, _ = roci('explain', '12')
    says(r'(?s)^IBV_WC_RETRY_EXC_ERR.*The same number could also be:\n.*errno 12: ENOMEM', out)
    says(r'^EINVAL \(errno 22\)', roci('explain', '-22')[0])


def classics():
    """What people get wrong."""
    out, _ = roci('explain', 'WR_FLUSH_ERR')
    says('a consequence, not the cause', out)
    says('closed .* while receives were posted: not an error', ' '.join(out.split()))
    says('the peer had no receive posted', roci('explain', 'RNR_RETRY_EXC_ERR')[0])
    says('rkey, range, rights or PD', roci('explain', 'REM_ACCESS_ERR')[0])
    says('nobody listens on that port', roci('explain', 'REJ 8')[0])


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
    says('no way here', roci('explain', '--provoke', 'BAD_RESP_ERR', status=USAGE)[1])
    says('needs another program: roci run -- rping', roci('explain', '--provoke', 'REJ 8', status=USAGE)[1])
    check(json.loads(roci('explain', '--json', 'zzzzzz', status=FAILED)[0]) == {'found': [], 'also': []}, 'JSON of nothing')


def rows():
    return json.loads(roci('explain', '--list', '--json')[0])['found']


def as_json():
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


def provoke():
    """Each command that a page names makes its error happen."""
    need('rping')
    commands = {}
    for row in rows():
        if 'see' in row:
            commands.setdefault(row['see'], row['name'])
    check(len(commands) > 30, f'{len(commands)} commands')
    wrong = []
    for command, name in commands.items():
        argv = shlex.split(command)
        check(argv[0] == 'roci', command)
        if argv[1] == 'run':
            process = here.start(*argv[3:], env=command_line.environment())
        elif SANITIZER:
            process = here.start(ROCI, *argv[1:], env=command_line.environment())
        else:
            process = here.start(ROCI, *argv[1:], env=command_line.environment(), plain=True)
        status = process.wait(60)
        provoked = argv[1] == 'explain'
        if (status != 0 and provoked) or ('That is' if provoked else 'RDMA_CM_EVENT_REJECTED, error 8') not in process.text():
            wrong.append(f'{name}\n{process.report()}')
    check(not wrong, '\n'.join(wrong))
    return f'{len(commands)} commands'


def transfers():
    """A failed transfer names the explanation."""
    _, err = roci('send', '--device', 'embedded', '--open', __file__, '203.0.113.1', status=NO_CONNECT)
    says(r'cannot be reached: Network is unreachable\n  there is no route to that address; `roci explain ENETUNREACH` tells more', err)


if __name__ == '__main__':
    os.environ['ROCI_STATS'] = ''
    sys.exit(tap([('for people', people), ('the classics', classics), ('what is unknown', unknown), ('JSON', as_json),
                  ('every row', everything), ('a transfer that fails', transfers), ('every command makes its error happen', provoke)]))
