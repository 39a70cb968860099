/* SPDX-License-Identifier: BSD-2-Clause */
/* How each operation is posted: the classic ibv_post_send(), and ibv_wr_*() for those that it lacks. */
#include "tour/near_post.h"

#include <netinet/in.h>
#include <errno.h>
#include <string.h>

#include "tour/content.h"
#include "verbs/flush.h"

#define GAP_BYTES 64u /* between pieces, so that a device that takes one for the other is found out */

/* ---- pieces ---- */

static uint32_t piece_len(const struct tour_plan *plan, unsigned i)
{
	return plan->size / plan->sges + (i < plan->size % plan->sges);
}

static uint32_t piece_offset(const struct tour_plan *plan, unsigned i)
{
	uint32_t more = plan->size % plan->sges;

	return i * (plan->size / plan->sges + GAP_BYTES) + (i < more ? i : more);
}

uint32_t near_data_bytes(const struct tour_plan *plan)
{
	return plan->size + plan->sges * GAP_BYTES;
}

void near_fill(struct near *n, uint32_t seq)
{
	uint32_t at = 0;

	memset(n->data.bytes, 0, n->data.len);
	if (!tour_op_carries(n->plan.op))
		return;
	content_fill(n->back.bytes, n->plan.size, n->seed, seq);
	for (unsigned i = 0; i < n->plan.sges; i++) {
		uint32_t len = piece_len(&n->plan, i);
		memcpy(n->data.bytes + piece_offset(&n->plan, i), n->back.bytes + at, len);
		at += len;
	}
	memset(n->back.bytes, 0, n->back.len);
}

void near_gather(const struct near *n, uint8_t *to)
{
	for (unsigned i = 0; i < n->plan.sges; i++) {
		uint32_t len = piece_len(&n->plan, i);
		memcpy(to, n->data.bytes + piece_offset(&n->plan, i), len);
		to += len;
	}
}

/* Returns how many entries the list has. An empty message has none. */
static int gather_list(const struct near *n, struct ibv_sge sges[ENDPOINT_MAX_SGES])
{
	if (!n->plan.size)
		return 0;
	for (unsigned i = 0; i < n->plan.sges; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)n->data.bytes + piece_offset(&n->plan, i), piece_len(&n->plan, i),
					   n->data.mr->lkey};
	return (int)n->plan.sges;
}

/* ---- ibv_post_send() ---- */

static enum ibv_wr_opcode opcode(enum tour_op op)
{
	switch (op) {
	case TOUR_SEND_IMM: return IBV_WR_SEND_WITH_IMM;
	case TOUR_SEND_INV: return IBV_WR_SEND_WITH_INV;
	case TOUR_WRITE: return IBV_WR_RDMA_WRITE;
	case TOUR_WRITE_IMM: return IBV_WR_RDMA_WRITE_WITH_IMM;
	case TOUR_READ: return IBV_WR_RDMA_READ;
	case TOUR_CAS: return IBV_WR_ATOMIC_CMP_AND_SWP;
	case TOUR_FAA: return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default: return IBV_WR_SEND;
	}
}

static void address(const struct near *n, struct ibv_send_wr *wr)
{
	if (n->plan.qp == TOUR_UD) {
		wr->wr.ud.ah = n->endpoint.ah;
		wr->wr.ud.remote_qpn = n->endpoint.peer_qpn;
		wr->wr.ud.remote_qkey = n->endpoint.peer_qkey;
	} else if (n->plan.op == TOUR_CAS || n->plan.op == TOUR_FAA) {
		wr->wr.atomic.remote_addr = n->dial.offer.addr;
		wr->wr.atomic.rkey = n->dial.offer.rkey;
	} else if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM &&
		   wr->opcode != IBV_WR_SEND_WITH_INV) {
		wr->wr.rdma.remote_addr = n->dial.offer.addr;
		wr->wr.rdma.rkey = n->dial.offer.rkey;
	}
}

/* What an atomic operation does to the value, which the far end's memory begins with as 0. */
static void change_value(struct near *n, struct ibv_send_wr *wr, uint32_t seq)
{
	n->previous = n->value;
	if (n->plan.op == TOUR_FAA) {
		wr->wr.atomic.compare_add = seq;
		n->value += seq;
	} else if (n->plan.op == TOUR_CAS) {
		n->value = (uint64_t)n->seed << 32 | seq;
		wr->wr.atomic.compare_add = n->previous;
		wr->wr.atomic.swap = n->value;
	}
}

static int post_classic(struct near *n, uint32_t seq, struct failure *f)
{
	struct ibv_sge sges[ENDPOINT_MAX_SGES];
	struct ibv_send_wr wr = {.wr_id = wr_id(WR_OPERATION, 0),
				 .sg_list = sges,
				 .num_sge = gather_list(n, sges),
				 .opcode = opcode(n->plan.op),
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int err;

	if (n->plan.inline_data)
		wr.send_flags |= IBV_SEND_INLINE;
	if (n->plan.op == TOUR_SEND_IMM || n->plan.op == TOUR_WRITE_IMM)
		wr.imm_data = htonl(seq);
	else if (n->plan.op == TOUR_SEND_INV)
		wr.invalidate_rkey = n->inv_rkey;
	address(n, &wr);
	change_value(n, &wr, seq);
	err = ibv_post_send(n->endpoint.qp, &wr, &bad);
	return err ? fail_call(f, "ibv_post_send", err) : 0;
}

/* ---- ibv_wr_*() ---- */

/* A WRITE and a FLUSH of what it wrote, in one go: the FLUSH is what makes the WRITE certain. */
static void build_flush(struct near *n, struct ibv_qp_ex *qp)
{
	const struct hello_offer *o = &n->dial.offer;
	struct ibv_sge sges[ENDPOINT_MAX_SGES];
	int count = gather_list(n, sges);

	qp->wr_id = wr_id(WR_OPERATION, 0);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, o->rkey, o->addr);
	if (n->plan.inline_data) {
		struct ibv_data_buf pieces[ENDPOINT_MAX_SGES];
		for (int i = 0; i < count; i++)
			pieces[i] = (struct ibv_data_buf){(void *)(uintptr_t)sges[i].addr, sges[i].length};
		ibv_wr_set_inline_data_list(qp, (size_t)count, pieces);
	} else {
		ibv_wr_set_sge_list(qp, (size_t)count, sges);
	}
	qp->wr_id = wr_id(WR_OPERATION, 1);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, o->rkey, o->addr, n->plan.size, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

static int post_new(struct near *n, uint32_t seq, struct failure *f)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(n->endpoint.qp);
	int err;

	if (!qp)
		return fail_call(f, "ibv_qp_to_qp_ex", EOPNOTSUPP);
	ibv_wr_start(qp);
	if (n->plan.op == TOUR_FLUSH) {
		build_flush(n, qp);
	} else {
		n->previous = n->value;
		n->value = (uint64_t)n->seed << 32 | seq;
		qp->wr_id = wr_id(WR_OPERATION, 0);
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(qp, n->dial.offer.rkey, n->dial.offer.addr, &n->value);
	}
	err = ibv_wr_complete(qp);
	return err ? fail_call(f, "ibv_wr_complete", err) : 0;
}

unsigned near_requests(const struct near *n)
{
	return n->plan.op == TOUR_FLUSH ? 2 : 1;
}

int near_post(struct near *n, uint32_t seq, struct failure *f)
{
	if (n->plan.op == TOUR_FLUSH || n->plan.op == TOUR_ATOMIC_WRITE)
		return post_new(n, seq, f);
	return post_classic(n, seq, f);
}

int near_post_read_back(struct near *n, struct failure *f)
{
	struct ibv_sge sge = {(uintptr_t)n->back.bytes, n->plan.size, n->back.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id(WR_READ_BACK, 0),
				 .sg_list = &sge,
				 .num_sge = n->plan.size ? 1 : 0,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int err;

	wr.wr.rdma.remote_addr = n->dial.offer.addr;
	wr.wr.rdma.rkey = n->dial.offer.rkey;
	err = ibv_post_send(n->endpoint.qp, &wr, &bad);
	return err ? fail_call(f, "ibv_post_send", err) : 0;
}
