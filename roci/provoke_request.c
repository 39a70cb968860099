/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that fail: A sends to B, two queue pairs of this process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "provoke.h"

#define RIGHTS        (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define REQUEST_BYTES 100u
#define NO_STATUS     (-1)

/* What is done, and what comes of it. */
struct attempt {
	enum explain_kind kind;
	int code;
	const char *story;
	enum ibv_wr_opcode opcode;
	unsigned receives;      /* posted by B */
	uint32_t receive_bytes; /* of each */
	int sent, received;     /* status at A and at B; NO_STATUS: none comes */
	int event;              /* at B; NO_STATUS: none comes */
	unsigned b_access;      /* qp_access_flags of B; 0: all */
	bool bad_lkey, bad_rkey, bad_receive_lkey, bad_qpn, no_reads, b_in_rtr, overflow, bind, flush;
};

#define WC(status)  .kind = EXPLAIN_WC_STATUS, .code = IBV_WC_##status
#define EVENT(name) .kind = EXPLAIN_ASYNC, .code = IBV_EVENT_##name
#define ENDS(a, b)  .sent = (a), .received = (b), .event = NO_STATUS

static const struct attempt attempts[] = {
	{WC(SUCCESS), "B has posted a receive, and A sends 100 bytes.", .opcode = IBV_WR_SEND, .receives = 1,
	 .receive_bytes = REQUEST_BYTES, ENDS(IBV_WC_SUCCESS, IBV_WC_SUCCESS)},
	{WC(LOC_LEN_ERR), "B posts a receive of 10 bytes, and A sends 100.", .opcode = IBV_WR_SEND, .receives = 1,
	 .receive_bytes = 10, ENDS(IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR)},
	{WC(LOC_QP_OP_ERR), "A was connected with max_rd_atomic 0, and posts an RDMA READ.", .opcode = IBV_WR_RDMA_READ,
	 .no_reads = true, ENDS(IBV_WC_LOC_QP_OP_ERR, NO_STATUS)},
	{WC(LOC_PROT_ERR), "A sends 100 bytes with an lkey that it does not have.", .opcode = IBV_WR_SEND,
	 .receives = 1, .receive_bytes = REQUEST_BYTES, .bad_lkey = true, ENDS(IBV_WC_LOC_PROT_ERR, NO_STATUS)},
	{WC(WR_FLUSH_ERR), "B has posted a receive, and its queue pair is moved to ERR, as a disconnect does.",
	 .receives = 1, .receive_bytes = REQUEST_BYTES, .flush = true, ENDS(NO_STATUS, IBV_WC_WR_FLUSH_ERR)},
	{WC(MW_BIND_ERR), "A binds a memory window to a region that lacks IBV_ACCESS_MW_BIND.",
	 .opcode = IBV_WR_BIND_MW, .bind = true, ENDS(IBV_WC_MW_BIND_ERR, NO_STATUS)},
	{WC(LOC_ACCESS_ERR), "B has posted a receive; A writes with immediate data and a wrong rkey.",
	 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .receives = 1, .receive_bytes = REQUEST_BYTES, .bad_rkey = true,
	 ENDS(IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR)},
	{WC(REM_INV_REQ_ERR), "B's queue pair has no IBV_ACCESS_REMOTE_WRITE, and A writes.",
	 .opcode = IBV_WR_RDMA_WRITE, .b_access = IBV_ACCESS_LOCAL_WRITE, .sent = IBV_WC_REM_INV_REQ_ERR,
	 .received = NO_STATUS, .event = IBV_EVENT_QP_REQ_ERR},
	{WC(REM_ACCESS_ERR), "A writes with an rkey that B does not have.", .opcode = IBV_WR_RDMA_WRITE,
	 .bad_rkey = true, .sent = IBV_WC_REM_ACCESS_ERR, .received = NO_STATUS, .event = IBV_EVENT_QP_ACCESS_ERR},
	{WC(REM_OP_ERR), "B posts a receive with an lkey that it does not have, and A sends.", .opcode = IBV_WR_SEND,
	 .receives = 1, .receive_bytes = REQUEST_BYTES, .bad_receive_lkey = true,
	 ENDS(IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR)},
	{WC(RETRY_EXC_ERR), "A is connected to a queue pair that does not exist, and sends.", .opcode = IBV_WR_SEND,
	 .bad_qpn = true, ENDS(IBV_WC_RETRY_EXC_ERR, NO_STATUS)},
	{WC(RNR_RETRY_EXC_ERR), "B posts no receive; A sends 100 bytes with rnr_retry 0.", .opcode = IBV_WR_SEND,
	 ENDS(IBV_WC_RNR_RETRY_EXC_ERR, NO_STATUS)},
	{EVENT(QP_REQ_ERR), "B's queue pair has no IBV_ACCESS_REMOTE_WRITE, and A writes.", .opcode = IBV_WR_RDMA_WRITE,
	 .b_access = IBV_ACCESS_LOCAL_WRITE, .sent = IBV_WC_REM_INV_REQ_ERR, .received = NO_STATUS,
	 .event = IBV_EVENT_QP_REQ_ERR},
	{EVENT(QP_ACCESS_ERR), "A writes with an rkey that B does not have.", .opcode = IBV_WR_RDMA_WRITE,
	 .bad_rkey = true, .sent = IBV_WC_REM_ACCESS_ERR, .received = NO_STATUS, .event = IBV_EVENT_QP_ACCESS_ERR},
	{EVENT(COMM_EST), "B is in RTR only when A sends.", .opcode = IBV_WR_SEND, .receives = 1,
	 .receive_bytes = REQUEST_BYTES, .b_in_rtr = true, .sent = IBV_WC_SUCCESS, .received = IBV_WC_SUCCESS,
	 .event = IBV_EVENT_COMM_EST},
	{EVENT(CQ_ERR), "B's CQ is too small for the receives of its queue pair, and B does not poll.",
	 .opcode = IBV_WR_SEND, .receive_bytes = REQUEST_BYTES, .overflow = true, .sent = NO_STATUS,
	 .received = NO_STATUS, .event = IBV_EVENT_CQ_ERR},
	{EVENT(QP_FATAL), "B's CQ is too small for the receives of its queue pair, and B does not poll.",
	 .opcode = IBV_WR_SEND, .receive_bytes = REQUEST_BYTES, .overflow = true, .sent = NO_STATUS,
	 .received = NO_STATUS, .event = IBV_EVENT_QP_FATAL},
};

static int post_receive(struct provoke *p, struct ibv_qp *qp, const struct attempt *a)
{
	struct ibv_sge sge = {(uintptr_t)p->bytes, a->receive_bytes, p->mr->lkey + (a->bad_receive_lkey ? 0x100 : 0)};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int post_bind(struct provoke *p, struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;

	p->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	if (!p->mw)
		return errno;
	wr.bind_mw.mw = p->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(p->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = p->mr, .addr = (uintptr_t)p->bytes, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	return ibv_post_send(qp, &wr, &bad);
}

static int post_request(struct provoke *p, struct ibv_qp *qp, const struct attempt *a)
{
	struct ibv_sge sge = {(uintptr_t)p->bytes, REQUEST_BYTES, p->mr->lkey + (a->bad_lkey ? 0x100 : 0)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = a->opcode, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (a->bind)
		return post_bind(p, qp);
	wr.wr.rdma.remote_addr = (uintptr_t)p->bytes;
	wr.wr.rdma.rkey = p->mr->rkey + (a->bad_rkey ? 0x100 : 0);
	return ibv_post_send(qp, &wr, &bad);
}

static int to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* One message more than B's CQ has room for, and one that comes too late. */
static int overflow(struct provoke *p, struct ibv_qp *a, struct ibv_qp *b, const struct attempt *attempt)
{
	int err = 0;

	for (int i = 0; !err && i <= b->recv_cq->cqe; i++)
		err = post_receive(p, b, attempt);
	for (int i = 0; !err && i <= b->recv_cq->cqe; i++) {
		err = post_request(p, a, attempt);
		if (!err && !provoke_completes("A", a, IBV_WC_SUCCESS))
			break;
	}
	return err;
}

static int act(struct provoke *p, struct ibv_qp *a, struct ibv_qp *b, const struct attempt *attempt)
{
	int err = 0;

	for (unsigned i = 0; !err && i < attempt->receives; i++)
		err = post_receive(p, b, attempt);
	if (err)
		return err;
	if (attempt->flush)
		return to_error(b);
	return attempt->overflow ? overflow(p, a, b, attempt) : post_request(p, a, attempt);
}

static int connect_both(struct provoke *p, struct ibv_qp *a, struct ibv_qp *b, const struct attempt *attempt)
{
	uint32_t nobody = b->qp_num ^ (a->qp_num == (b->qp_num ^ 1) ? 2 : 1);
	int err = provoke_rtr(p, a, attempt->bad_qpn ? nobody : b->qp_num);

	if (!err)
		err = provoke_rtr(p, b, a->qp_num);
	if (!err)
		err = provoke_rts(a, !attempt->no_reads, PROVOKE_SHORT);
	if (!err && !attempt->b_in_rtr)
		err = provoke_rts(b, 1, PROVOKE_SHORT);
	return err;
}

static bool run_attempt(struct provoke *p, const struct attempt *attempt)
{
	struct ibv_qp *a = provoke_qp(p, 16, RIGHTS);
	struct ibv_qp *b = provoke_qp(p, attempt->overflow ? 0 : 16, attempt->b_access ? attempt->b_access : RIGHTS);
	bool came;
	int err;

	if (!a || !b)
		return false;
	printf("A and B are two RC queue pairs of this process, connected to each other over %s.\n%s\n",
	       ibv_get_device_name(p->context->device), attempt->story);
	err = connect_both(p, a, b, attempt);
	if (!err)
		err = act(p, a, b, attempt);
	if (err)
		printf("  the request was refused: %s\n", strerror(err));
	came = !err;
	if (came && attempt->sent != NO_STATUS)
		came = provoke_completes("A", a, attempt->sent);
	if (came && attempt->received != NO_STATUS)
		came = provoke_completes("B", b, attempt->received);
	if (came && attempt->event != NO_STATUS)
		came = provoke_event_comes(p, "  B: event", attempt->event);
	provoke_qp_destroy(a);
	provoke_qp_destroy(b);
	return came;
}

bool provoke_request(struct provoke *p, const struct explanation *row, bool *known)
{
	const struct attempt *found = NULL;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		if (attempts[i].kind == row->kind && attempts[i].code == row->code)
			found = &attempts[i];
	}
	*known = found;
	return found && p && run_attempt(p, found);
}
