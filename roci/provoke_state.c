/* SPDX-License-Identifier: BSD-2-Clause */
/* States of a queue pair: how it gets there, and what it takes there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "provoke.h"

#define QKEY 0x11111111u

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

static int move_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int post_receive(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int post_send(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static void print_answer(const char *call, int err)
{
	if (err)
		printf("  %s answers %d, %s (%s)\n", call, err, strerrorname_np(err), strerror(err));
	else
		printf("  %s answers 0\n", call);
}

/* An RC queue pair, connected to itself, on its way to `state`. Returns 0 or an errno. */
static int walk(struct provoke *p, struct ibv_qp *qp, enum ibv_qp_state state)
{
	int err = 0;

	if (state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return move_to(qp, state);
	if (state >= IBV_QPS_RTR)
		err = provoke_rtr(p, qp, qp->qp_num);
	if (!err && state >= IBV_QPS_RTS)
		err = provoke_rts(qp, 1, PROVOKE_SHORT);
	return !err && state == IBV_QPS_SQD ? move_to(qp, state) : err;
}

static bool show(struct provoke *p, enum ibv_qp_state state)
{
	static const char *const ways[] = {
		[IBV_QPS_RESET] = "is new, or back in RESET",
		[IBV_QPS_INIT] = "is moved from RESET to INIT",
		[IBV_QPS_RTR] = "is moved on to RTR, with its own number as the peer's",
		[IBV_QPS_RTS] = "is moved on to RTS, with its own number as the peer's",
		[IBV_QPS_SQD] = "is moved on to RTS, and to SQD",
		[IBV_QPS_ERR] = "is moved to ERR",
	};
	struct ibv_qp *qp = provoke_qp(p, 4, IBV_ACCESS_LOCAL_WRITE);
	int err = qp ? walk(p, qp, state) : errno;
	bool there = !err && state_of(qp) == state;

	if (there) {
		printf("A, an RC queue pair, %s.\n", ways[state]);
		printf("  ibv_query_qp() says qp_state %d\n", (int)state);
		print_answer("ibv_post_recv()", post_receive(qp));
		print_answer("ibv_post_send()", post_send(qp));
	}
	if (qp)
		provoke_qp_destroy(qp);
	return there;
}

/* ---- SQE: of UC and UD ---- */

static struct ibv_qp *datagram_qp(struct provoke *p, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};

	if (qp && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) &&
	    !move_to(qp, IBV_QPS_RTR) && !ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN))
		return qp;
	if (qp)
		ibv_destroy_qp(qp);
	return NULL;
}

static int send_unregistered(struct provoke *p, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)p->bytes, 8, p->mr->lkey + 0x100};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return ibv_post_send(qp, &wr, &bad);
}

static bool show_sqe(struct provoke *p)
{
	struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.dgid = p->gid, .hop_limit = 1}};
	struct ibv_cq *cq = ibv_create_cq(p->context, 8, NULL, NULL, 0);
	struct ibv_qp *qp = cq ? datagram_qp(p, cq) : NULL;
	struct ibv_ah *ah = ibv_create_ah(p->pd, &way);
	bool there = false;

	if (qp && ah && !send_unregistered(p, qp, ah)) {
		puts("A, a UD queue pair in RTS, sends from memory that is not registered.");
		there = provoke_completes("A", qp, IBV_WC_LOC_PROT_ERR) && state_of(qp) == IBV_QPS_SQE;
	}
	if (there) {
		printf("  ibv_query_qp() says qp_state %d\n", IBV_QPS_SQE);
		print_answer("ibv_post_recv()", post_receive(qp));
		print_answer("ibv_modify_qp() to RTS", move_to(qp, IBV_QPS_RTS));
	}
	if (ah)
		ibv_destroy_ah(ah);
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
	return there;
}

bool provoke_state(struct provoke *p, const struct explanation *row, bool *known)
{
	*known = row->kind == EXPLAIN_QP_STATE;
	if (!p || !*known)
		return false;
	return row->code == IBV_QPS_SQE ? show_sqe(p) : show(p, (enum ibv_qp_state)row->code);
}
