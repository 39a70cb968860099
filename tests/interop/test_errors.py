"""Requests that fail, with the responder on either side: the status of every completion on both ends, and the state of both
queue pairs afterwards."""
import re
import sys

import world
from harness import Skip, check, tap

SUCCESS, LOC_LEN, LOC_QP_OP, LOC_PROT, FLUSH, REM_INV, REM_ACCESS, REM_OP, RETRY, RNR = 0, 1, 2, 4, 5, 9, 10, 11, 12, 13

# IBTA 9.7.5.1, 9.9.2 and 9.9.3. Each: statuses at the requester and at the responder, the state of the responder's QP.
ACCESS = ([REM_ACCESS, FLUSH, FLUSH], [FLUSH, FLUSH], 'ERR')
INVALID = ([REM_INV, FLUSH, FLUSH], [FLUSH, FLUSH], 'ERR')
EXPECTED = {
    'write: no such key': ACCESS,
    'write: behind the end': ACCESS,
    'write: before the start': ACCESS,
    'write: read-only memory': ACCESS,
    'write: read-only queue pair': INVALID,
    'write of many packets: behind the end': ACCESS,
    'write with immediate: no such key': ACCESS,
    'read: no such key': ACCESS,
    'read: behind the end': ACCESS,
    'read: memory without the right': ACCESS,
    'read: queue pair without the right': INVALID,
    'atomic: no such key': ACCESS,
    'atomic: memory without the right': ACCESS,
    'atomic: queue pair without the right': INVALID,
    'send: longer than the receive': ([REM_INV, FLUSH, FLUSH], [LOC_LEN, FLUSH], 'ERR'),
    'send of many packets: longer than the receive': ([REM_INV, FLUSH, FLUSH], [LOC_LEN, FLUSH], 'ERR'),
    'send with invalidate: no such key': ([SUCCESS], [REM_INV, FLUSH], 'ERR'),
    'send: never a receive': ([RNR, FLUSH, FLUSH], [], 'RTS'),
    'write with immediate: never a receive': ([RNR, FLUSH, FLUSH], [], 'RTS'),
    'send: a late receive': ([SUCCESS] * 3, [SUCCESS] * 3, 'RTS'),
    'read: into memory of no local write': ([LOC_PROT], [], 'RTS'),
    'send: nobody there': ([RETRY, FLUSH, FLUSH], [], 'RTS'),
}

# Where Soft-RoCE as the responder differs from the standard.
RXE_RESPONDER = {
    'write with immediate: no such key': ([REM_ACCESS, FLUSH, FLUSH], [REM_ACCESS, FLUSH], 'ERR'),
    'send: longer than the receive': ([REM_OP, FLUSH, FLUSH], [LOC_QP_OP, FLUSH], 'ERR'),
    'send of many packets: longer than the receive': ([REM_OP, FLUSH, FLUSH], [LOC_QP_OP, FLUSH], 'ERR'),
}


def outcomes(text):
    """{case: ([status], state)} of one end."""
    lines = [re.fullmatch(r'(.*):((?: \d+)*) (\w+)', line) for line in text.splitlines()]
    return {m[1]: ([int(s) for s in m[2].split()], m[3]) for m in lines if m}


results = {}  # by the kind of the requester: what the responder and the requester said


def run_all(server, client):
    ends = world.transfer(server, client, [world.program('errors')], '-g')
    results[client.kind] = [outcomes(text) for text in ends]


def judge(server, client, case):
    if client.kind not in results:
        raise Skip('the program did not come to its end')
    responder, requester = (end.get(case) for end in results[client.kind])
    expected = EXPECTED[case]
    if server.kind == 'rxe':
        expected = RXE_RESPONDER.get(case, expected)
    sent, received, state = expected
    want = (received, state), (sent, 'RTS' if set(sent) == {SUCCESS} else 'ERR')
    check((responder, requester) == want, f'responder and requester: {responder}, {requester}; expected: {want}')


def cases(rxe, roci):
    for server, client in ((rxe, roci), (roci, rxe)):
        way = f'{client.kind} to {server.kind}'
        yield f'{way}: all come to their end', lambda s=server, c=client: run_all(s, c)
        for case in EXPECTED:
            yield f'{way}: {case}', lambda s=server, c=client, n=case: judge(s, c, n)


if __name__ == '__main__':
    sys.exit(tap(list(cases(*world.rxe_and_roci()))))
