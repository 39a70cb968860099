# SPDX-License-Identifier: BSD-2-Clause
"""Requests that fail, with the responder on either side: the status of every completion on both ends, the state of both
queue pairs afterwards, the asynchronous event at the responder, and the memory of both."""
import platform
import re
import sys
from typing import NamedTuple

import world
from harness import Failure, Skip, check, tap

SUCCESS, LOC_LEN, LOC_QP_OP, LOC_PROT, FLUSH, LOC_ACCESS, REM_INV, REM_ACCESS, REM_OP, RETRY, RNR = 0, 1, 2, 4, 5, 8, 9, 10, 11, 12, 13


class End(NamedTuple):
    """What one end reports of a case: the status of each completion, its queue pair's state, and so on."""
    statuses: list
    state: str
    event: str = 'none'
    memory: str = 'kept'


class Outcome(NamedTuple):
    sent: list  # statuses at the requester
    responder: End


# IBTA 9.7.5.1, 9.9.2 and 9.9.3: a responder reports a refused request by an event if the request consumes no receive.
ACCESS = Outcome([REM_ACCESS, FLUSH, FLUSH], End([FLUSH, FLUSH], 'ERR', 'ACCESS_ERR'))
INVALID = Outcome([REM_INV, FLUSH, FLUSH], End([FLUSH, FLUSH], 'ERR', 'REQ_ERR'))
TOO_LONG = Outcome([REM_INV, FLUSH, FLUSH], End([LOC_LEN, FLUSH], 'ERR'))
NOT_READY = Outcome([RNR, FLUSH, FLUSH], End([], 'RTS'))
DONE = Outcome([SUCCESS] * 3, End([SUCCESS] * 3, 'RTS', memory='written'))
EXPECTED = {
    'write: no such key': ACCESS,
    'write: behind the end': ACCESS,
    'write: before the start': ACCESS,
    'write: read-only memory': ACCESS,
    'write: read-only queue pair': INVALID,
    'write of many packets: behind the end': ACCESS,
    'write with immediate: no such key': Outcome([REM_ACCESS, FLUSH, FLUSH], End([LOC_ACCESS, FLUSH], 'ERR')),
    'write: to a window': Outcome([SUCCESS] * 3, End([SUCCESS] * 2, 'RTS', memory='written')),
    'write: to a window that was invalidated': Outcome([SUCCESS, REM_ACCESS, FLUSH],
                                                       End([SUCCESS, FLUSH], 'ERR', 'ACCESS_ERR')),
    'read: no such key': ACCESS,
    'read: behind the end': ACCESS,
    'read: memory without the right': ACCESS,
    'read: queue pair without the right': INVALID,
    'read of many packets: memory without the right': ACCESS,
    'read of many packets: queue pair without the right': INVALID,
    'atomic: no such key': ACCESS,
    'atomic: memory without the right': ACCESS,
    'atomic: queue pair without the right': INVALID,
    'atomic write: no such key': Outcome([REM_ACCESS], ACCESS.responder),
    'atomic write: memory without the right': Outcome([REM_ACCESS], ACCESS.responder),
    'atomic write: queue pair without the right': Outcome([REM_INV], INVALID.responder),
    'send: longer than the receive': TOO_LONG,
    'send of many packets: longer than the receive': TOO_LONG,
    'send with invalidate: no such key': Outcome([SUCCESS], End([REM_INV, FLUSH], 'ERR', 'REQ_ERR', 'written')),
    'send: never a receive': NOT_READY,
    'send: never a receive in the SRQ': NOT_READY,
    'write with immediate: never a receive': NOT_READY,
    'send: a late receive': DONE,
    'send: a late receive in the SRQ': DONE,
    'write with immediate: a late receive': DONE,
    'write of many packets with immediate: a late receive': DONE,
    'read: into memory of no local write': Outcome([LOC_PROT], End([], 'RTS')),
    'send: nobody there': Outcome([RETRY, FLUSH, FLUSH], End([], 'RTS')),
}
if platform.release().startswith('6.1.'):  # its Soft-RoCE has no atomic writes
    EXPECTED = {case: outcome for case, outcome in EXPECTED.items() if not case.startswith('atomic write')}

# Where Soft-RoCE as the responder differs from the standard. It also reports no events.
RXE_RESPONDER = {
    'write with immediate: no such key': Outcome([REM_ACCESS, FLUSH, FLUSH], End([REM_ACCESS, FLUSH], 'ERR')),
    'send: longer than the receive': Outcome([REM_OP, FLUSH, FLUSH], End([LOC_QP_OP, FLUSH], 'ERR')),
    'send of many packets: longer than the receive': Outcome([REM_OP, FLUSH, FLUSH], End([LOC_QP_OP, FLUSH], 'ERR')),
}


def ends(text):
    """{case: End} of one side."""
    lines = [re.fullmatch(r'(.*):((?: \d+)*) (\w+) (\w+) (\w+)', line) for line in text.splitlines()]
    return {m[1]: End([int(s) for s in m[2].split()], *m.groups()[2:]) for m in lines if m}


def run_all(server, client, ipv6=False):
    """What the responder and the requester report of each case."""
    args = ['-w'] if 'atomic write: no such key' in EXPECTED else []
    if server.kind == 'rxe':
        args.append('-x')
    return [ends(text) for text in world.transfer(server, client, [world.program('errors')], '-g', ipv6, args)]


def judge(server, client, case, responder, requester):
    sent, received = EXPECTED[case]
    if server.kind == 'rxe':
        sent, received = RXE_RESPONDER.get(case, EXPECTED[case])
        received = received._replace(event='none')
    want = received, End(sent, 'RTS' if set(sent) == {SUCCESS} else 'ERR')
    check((responder, requester) == want, f'{case}: responder and requester: {responder}, {requester}; expected: {want}')


results = {}  # by the kind of the requester


def remember(server, client):
    results[client.kind] = run_all(server, client)


def judge_remembered(server, client, case):
    if client.kind not in results:
        raise Skip('the program did not end')
    judge(server, client, case, *(end.get(case) for end in results[client.kind]))


def ipv6(server, client):
    wrong = []
    reported = run_all(server, client, True)
    for case in EXPECTED:
        try:
            judge(server, client, case, *(end.get(case) for end in reported))
        except Failure as failure:
            wrong.append(str(failure))
    check(not wrong, '\n'.join(wrong))


def cases(rxe, roci):
    for server, client in ((rxe, roci), (roci, rxe)):
        way = f'{client.kind} to {server.kind}'
        yield f'{way}: all come to their end', lambda s=server, c=client: remember(s, c)
        for case in EXPECTED:
            yield f'{way}: {case}', lambda s=server, c=client, n=case: judge_remembered(s, c, n)
        yield f'{way}, IPv6: every one of them', lambda s=server, c=client: ipv6(s, c)


if __name__ == '__main__':
    sys.exit(tap(list(cases(*world.rxe_and_roci()))))
