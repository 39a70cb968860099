# SPDX-License-Identifier: BSD-2-Clause
"""roci run --why: a call that is refused, and a request that fails, say which check it was, the field, its value, and what is
allowed; at both ends of a connection."""
import os
import re
import sys

from harness import ROCI, SANITIZER, Host, check, isolate, need, next_port, program, run_pair, tap, wait_until

os.environ['ROCI_STATS'] = ''
isolate()
here = Host('here')
WHY = {'ROCI_WHY': '1'}

# `roci explain --provoke WHAT`, and what the lines say.
CALLS = {
    'ibv_reg_mr: EINVAL': r'ibv_reg_mr\w* answers EINVAL: access 0x2: .* need IBV_ACCESS_LOCAL_WRITE',
    'ibv_create_cq: EINVAL': r'ibv_create_cq answers EINVAL: cqe 0: 1 to \d+ are allowed',
    'ibv_create_qp: EINVAL': r'ibv_create_qp answers EINVAL: cap.max_send_wr 16777216: at most 32768',
    'ibv_create_qp: EOPNOTSUPP': r'ibv_create_qp answers EOPNOTSUPP: qp_type 8: roci0 has IBV_QPT_RC',
    'ibv_modify_qp to RTR: EINVAL': r'ibv_modify_qp answers EINVAL: attr_mask lacks IBV_QP_AV, .*IBV_QP_DEST_QPN, from INIT to RTR',
    'ibv_modify_qp: EINVAL': r'ibv_modify_qp answers EINVAL: qp_state RTS: this RC QP is in INIT',
    'ibv_modify_qp: EOPNOTSUPP': r'ibv_modify_qp answers EOPNOTSUPP: attr_mask 0x4001: .*IBV_QP_ALT_PATH',
    'ibv_post_send: ENOMEM': r'ibv_post_send answers ENOMEM: the send queue is full \(max_send_wr 4\)',
    'ibv_post_send: EINVAL': r'ibv_post_send answers EINVAL: the QP is in INIT',
    'ibv_post_recv: ENOMEM': r'ibv_post_recv answers ENOMEM: the receive queue is full: 4 are posted',
    'ibv_post_recv: EINVAL': r'ibv_post_recv answers EINVAL: num_sge 64: the queue has max_recv_sge 1',
    'ibv_create_ah: EINVAL': r'ibv_create_ah answers EINVAL: ah_attr.is_global 0',
    'ibv_destroy: EBUSY': r'ibv_destroy_cq answers EBUSY: queues of QPs use the CQ: 2',
    'rdma_bind_addr: EADDRNOTAVAIL': r'rdma_bind_addr answers EADDRNOTAVAIL: the address is not one of this host',
    'rdma_bind_addr: EADDRINUSE': r'rdma_bind_addr answers EADDRINUSE: port \d+',
    'rdma_create_qp: EINVAL': r'rdma_create_qp answers EINVAL: the id is new: .*and has no device',
    'rdma_connect: EINVAL': r'rdma_connect answers EINVAL: the id is new: .*RDMA_CM_EVENT_ROUTE_RESOLVED',
}
REQUESTS = {
    'LOC_LEN_ERR': r'refuses the RC SEND Only .*: the message has 100 bytes, and the receive \(wr_id 0x0\) has room for 10',
    'LOC_QP_OP_ERR': r'RDMA READ of 100 bytes .* completes with IBV_WC_LOC_QP_OP_ERR: max_rd_atomic of the QP is 0',
    'LOC_PROT_ERR': r'SEND of 100 bytes .* completes with IBV_WC_LOC_PROT_ERR: lkey 0x\w+ is of no region',
    'MW_BIND_ERR': r'BIND_MW .* completes with IBV_WC_MW_BIND_ERR: .* lacks IBV_ACCESS_MW_BIND',
    'REM_INV_REQ_ERR': r'with NAK invalid request: qp_access_flags of this QP lacks IBV_ACCESS_REMOTE_WRITE',
    'REM_ACCESS_ERR': r'with NAK remote access error: rkey 0x\w+ is of no region',
    'REM_OP_ERR': r'with NAK remote operational error: lkey 0x\w+ is of no region',
    'RETRY_EXC_ERR': r'IBV_WC_RETRY_EXC_ERR: the peer \(QP 0x\w+\) acknowledged nothing, also after retry_cnt 1; timeout 8',
    'RNR_RETRY_EXC_ERR': r'IBV_WC_RNR_RETRY_EXC_ERR: the peer \(QP 0x\w+\) has no receive posted, also after rnr_retry 0',
    'CQ_ERR': r'a CQ of \d+ entries has overflowed',
}
# Cases of tests/interop/errors.c, and what the responder says of them.
RESPONDER = [
    r'refuses the RC RDMA WRITE Only .*: rkey 0x\w+ is of no region',
    r'refuses the RC RDMA WRITE Only .*: 100 bytes at 0x\w+ leave the region, which has 4096 bytes',
    r'refuses the RC RDMA WRITE Only .*: rkey 0x\w+ lacks IBV_ACCESS_REMOTE_WRITE',
    r'refuses the RC RDMA READ Request .*: rkey 0x\w+ lacks IBV_ACCESS_REMOTE_READ',
    r'refuses the RC RDMA READ Request .*: qp_access_flags of this QP lacks IBV_ACCESS_REMOTE_READ',
    r'refuses the RC RDMA WRITE .*: rkey 0x\w+ is of a memory window that is not bound',
    r'refuses the RC SEND Only .*: the message has 101 bytes, and the receive .* has room for 100$',
    r'refuses the RC SEND Only .*: no receive is posted$',
    r'refuses the RC SEND Only .*: no receive is posted to the SRQ',
    r'a receive completes with IBV_WC_REM_INV_REQ_ERR: rkey 0x\w+ is of no memory window',
]

# Cases of refusals.c, and the line that comes of each.
REFUSALS = {
    'wr_read': r'ibv_wr_complete answers EINVAL: RDMA READ: send_ops_flags of the QP',
    'wr_flags': r'ibv_wr_complete answers EINVAL: wr_flags 0x100000: 0x100000 is unknown',
    'wr_many': r'ibv_wr_complete answers ENOMEM: more requests between ibv_wr_start\(\) and .* than max_send_wr \d+',
    'wr_lone_sge': r'ibv_wr_complete answers EINVAL: an SGE or inline data without a request',
    'wr_sges': r'ibv_wr_complete answers EINVAL: num_sge 40: the QP has max_send_sge \d+',
    'wr_inline': r'ibv_wr_complete answers EINVAL: 4096 bytes of inline data: max_inline_data of the QP is \d+',
    'wr_address': r'ibv_wr_complete answers EINVAL: ibv_wr_set_ud_addr\(\) takes a UD QP',
    'wr_state': r'ibv_wr_complete answers EINVAL: the QP is in INIT: sends can be posted from RTS on',
    'ud_qkey': r'QP 0x\w+ drops a datagram of QP 0x\w+: its Q_Key is 0x11111112, and this QP\'s 0x11111111',
    'ud_no_receive': r'QP 0x\w+ drops a datagram of QP 0x\w+: no receive is posted',
    'ud_short_receive': r'drops a datagram of QP 0x\w+: it needs 104 bytes with the 40 of its GRH, and the receive \(wr_id 0x7\) has room for 103',
    'ud_no_qp': r'a datagram of QP 0x\w+ is dropped: there is no QP 0x\w+ here',
    'ud_multicast': r'QP 0x\w+ drops a datagram of QP 0x\w+ to a multicast group: no receive is posted',
    'uc_no_receive': r'QP 0x\w+ drops a UC message of its peer \(UC SEND Only, PSN 0\): no receive is posted',
    'attach_rc': r'ibv_attach_mcast answers EINVAL: qp_type 2: only UD QPs can join',
    'attach_host': r'ibv_attach_mcast answers EINVAL: gid is no multicast address',
    'detach': r'ibv_detach_mcast answers EINVAL: the QP is not in the group',
    'attach_many': r'ibv_attach_mcast answers ENOMEM: 64 QPs of this process are in the group already',
    'destroy_member': r'ibv_destroy_qp answers EBUSY: the QP is in a multicast group',
    'join_stream': r'rdma_join_multicast answers EINVAL: the id is not for datagrams: use RDMA_PS_UDP',
    'join_early': r'rdma_join_multicast answers EINVAL: the id is new: .*a join comes after',
    'join_host': r'rdma_join_multicast answers EINVAL: addr is no multicast address',
    'leave': r'rdma_leave_multicast answers EADDRNOTAVAIL: the id has not joined this group',
    'port': r'ibv_query_port answers EINVAL: port_num 2: roci0 has port 1 only',
    'gid_index': r'ibv_query_gid answers EINVAL: index 999: the table of GIDs has \d+ entries, from 0 on',
    'gid_flags': r'ibv_query_gid_ex answers EOPNOTSUPP: flags 0x1: 0 is allowed',
    'resize': r'ibv_resize_cq answers EINVAL: cqe 0: 1 to \d+ are allowed',
    'rereg': r'ibv_rereg_mr answers EINVAL: flags 0x0: bits of 0x7 are allowed, at least one',
    'advise': r'ibv_advise_mr answers ENOENT: lkey 0x7 is of no region',
    'window': r'ibv_alloc_mw answers EINVAL: type 7: IBV_MW_TYPE_1 and IBV_MW_TYPE_2 are allowed',
    'xrc': r'ibv_open_xrcd answers EOPNOTSUPP: roci0 has no XRC',
    'device_memory': r'ibv_alloc_dm answers EOPNOTSUPP: roci0 has no memory of its own',
    'work_queue': r'ibv_create_wq answers EOPNOTSUPP: roci0 has no work queues outside of QPs',
    'flow': r'ibv_create_flow answers EOPNOTSUPP: roci0 has no flow steering',
    'import': r'ibv_import_pd answers EOPNOTSUPP: roci0 does not have this',
    'null': r'ibv_query_device answers EINVAL: an argument is NULL, or an object of another device or context',
}


def provoked(what, env):
    process = here.start(ROCI, 'explain', '--provoke', what, env=env, plain=not SANITIZER)
    check(process.wait(60) == 0, process.report())
    return process.text()


def says(what, pattern):
    def case():
        text = provoked(what, WHY)
        check(re.search('^roci: why: .*' + pattern, text, re.MULTILINE), f'{pattern!r} is not in:\n{text}')
        check('no check says more' not in text, f'a check says nothing:\n{text}')
    return case


def silent():
    """Without the option nothing is said; with it, nothing of a program that makes no mistake."""
    check('why:' not in provoked('ibv_create_cq: EINVAL', {}), 'a line without --why')
    check('why:' not in provoked('SUCCESS', WHY), 'a line of a success')


def option():
    text = here.start(ROCI, 'run', '--why', '--', ROCI, 'explain', '--provoke', 'ibv_create_cq: EINVAL', plain=True)
    check(text.wait(60) == 0 and 'why: ibv_create_cq' in text.text(), text.report())


def responder():
    errors = os.path.join(os.path.dirname(program('')), '..', 'interop', 'errors')
    check(os.path.exists(errors), f'{errors} is not built')
    port = str(next_port())
    server = here.start(errors, '-p', port, env=WHY)
    wait_until('the server to listen', lambda: here.listens(int(port)) or not server.running())
    client = here.start(errors, '-p', port, '127.0.0.1', env=WHY)
    text, _ = run_pair(server, client, 120)
    missing = [pattern for pattern in RESPONDER if not re.search(pattern, text, re.MULTILINE)]
    check(not missing, f'{missing} are not in:\n{text}')


def cases_of(program_name):
    """What a program of cases prints in each of them."""
    process = here.start(program(program_name), env=WHY)
    check(process.wait(120) == 0, process.report())
    return {part.split('\n')[0]: part.split('\n')[1:-1] for part in process.text().split('case ')[1:]}


def refusals():
    """ibv_wr_*, datagrams, multicast: one line for each, with the reason."""
    said = cases_of('refusals')
    wrong = [f'{name}: {pattern!r} is not the one line of {said.get(name)}' for name, pattern in REFUSALS.items()
             if len(said.get(name, [])) != 1 or not re.match('roci: why: .*' + pattern, said[name][0])]
    check(not wrong, '\n'.join(wrong))
    flood = said['ud_flood']
    check(1 <= len(flood) < 100, f'{len(flood)} lines of 1000 datagrams')


def every_refusal():
    """Of all calls that the tests of the API make, of verbs and of rdma_cm, none is refused without a reason."""
    api = os.path.join(os.path.dirname(program('')), '..', 'abi', 'api')
    check(os.path.exists(api), f'{api} is not built')
    lines = []
    for argv in [api], [program('cm_api'), '127.0.0.1']:
        process = here.start(*argv, env=WHY)
        check(process.wait(120) == 0, process.report())
        lines += [line for line in process.text().splitlines() if line.startswith('roci: why: ')]
    check(len(lines) > 200, f'only {len(lines)} lines')
    bare = {line for line in lines if 'no check says more' in line}
    check(not bare, '\n'.join(sorted(bare)))
    return f'{len(lines)} lines'


def ordinary():
    """Programs that make no mistake cause no line."""
    need('ibv_devinfo', 'ibv_rc_pingpong')
    text = here.call('ibv_devinfo', '-v', env=WHY)
    check('why:' not in text, text)
    port = str(next_port())
    server = here.start('ibv_rc_pingpong', '-g', '0', '-p', port, env=WHY)
    wait_until('the server to listen', lambda: here.listens(int(port)) or not server.running())
    client = here.start('ibv_rc_pingpong', '-g', '0', '-p', port, '127.0.0.1', env=WHY)
    for text in run_pair(server, client):
        check('why:' not in text, text)


if __name__ == '__main__':
    sys.exit(tap([(f'{what}: the reason', says(what, pattern)) for what, pattern in {**CALLS, **REQUESTS}.items()] +
                 [('no line where nothing is wrong', silent), ('--why', option), ('the responder knows more', responder),
                  ('ibv_wr_*, datagrams, multicast, queries, what roci0 has not', refusals),
                  ('each refused call', every_refusal),
                  ('ordinary programs', ordinary)]))
