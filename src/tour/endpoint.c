/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tour/clock.h"
#include "verbs/flush.h"

int region_create(struct region *r, struct ibv_pd *pd, uint32_t len, unsigned access, struct failure *f)
{
	*r = (struct region){.len = len ? len : 1};
	r->bytes = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->bytes == MAP_FAILED) {
		r->bytes = NULL;
		return fail_call(f, "mmap", errno);
	}
	r->mr = ibv_reg_mr(pd, r->bytes, r->len, (int)access);
	r->registered_ns = tour_wall_ns();
	return r->mr ? 0 : fail_call(f, "ibv_reg_mr", errno);
}

void region_destroy(struct region *r)
{
	if (r->mr)
		ibv_dereg_mr(r->mr);
	if (r->bytes)
		munmap(r->bytes, r->len);
	*r = (struct region){0};
}

unsigned endpoint_rights(enum tour_op op, enum tour_qp qp, bool verify)
{
	unsigned rights = IBV_ACCESS_LOCAL_WRITE;

	switch (op) {
	case TOUR_WRITE:
	case TOUR_WRITE_IMM:
	case TOUR_ATOMIC_WRITE: rights |= IBV_ACCESS_REMOTE_WRITE; break;
	case TOUR_FLUSH: rights |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL; break;
	case TOUR_READ: rights |= IBV_ACCESS_REMOTE_READ; break;
	case TOUR_CAS:
	case TOUR_FAA: rights |= IBV_ACCESS_REMOTE_ATOMIC; break;
	case TOUR_SEND_INV: return rights | IBV_ACCESS_MW_BIND; /* a window may be bound to it */
	default: return rights;
	}
	if (verify && qp == TOUR_RC && op != TOUR_WRITE_IMM)
		rights |= IBV_ACCESS_REMOTE_READ;
	return rights;
}

static enum ibv_qp_type qp_type(enum tour_qp type)
{
	return type == TOUR_RC ? IBV_QPT_RC : type == TOUR_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

/* The operations that the classic ibv_post_send() lacks. */
static uint64_t new_send_ops(enum tour_op op)
{
	if (op != TOUR_FLUSH && op != TOUR_ATOMIC_WRITE)
		return 0;
	return (op == TOUR_FLUSH ? IBV_QP_EX_WITH_FLUSH : IBV_QP_EX_WITH_ATOMIC_WRITE) | IBV_QP_EX_WITH_SEND |
	       IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
}

/* How many bytes a QP takes inline. No attribute of a device tells: only QPs that it makes, or does not. */
static uint32_t largest_inline(const struct endpoint *e, const struct ibv_qp_init_attr_ex *refused)
{
	uint32_t good = 0, bad = refused->cap.max_inline_data;

	while (good + 1 < bad) {
		struct ibv_qp_init_attr_ex attr = *refused;
		struct ibv_qp *qp;

		attr.cap.max_inline_data = good + (bad - good) / 2;
		qp = ibv_create_qp_ex(e->verbs, &attr);
		if (qp) {
			good += (bad - good) / 2;
			ibv_destroy_qp(qp);
		} else {
			bad = good + (bad - good) / 2;
		}
	}
	return good;
}

static int refuse_inline(const struct endpoint *e, const struct ibv_qp_init_attr_ex *refused, int err,
			 struct failure *f)
{
	uint32_t largest = largest_inline(e, refused);
	const char *device = e->verbs->device->name;

	if (largest)
		return fail(f, -err,
			    "%s makes no QP that takes %u bytes inline; at most %u: use --size %u, or no --inline",
			    device, refused->cap.max_inline_data, largest, largest);
	return fail(f, -err, "%s makes no QP that takes bytes inline: %s; use no --inline", device, strerror(err));
}

static int create_qp(struct endpoint *e, const struct endpoint_wish *wish, struct failure *f)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = e,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = ENDPOINT_SENDS,
			.max_recv_wr = ENDPOINT_SLOTS,
			.max_send_sge = wish->sges ? wish->sges : 1,
			.max_recv_sge = 1,
			.max_inline_data = wish->inline_bytes},
		.qp_type = qp_type(wish->type),
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
		.send_ops_flags = new_send_ops(wish->op),
	};
	int err;

	if (attr.send_ops_flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (e->id) {
		err = rdma_create_qp_ex(e->id, &attr) ? errno : 0;
		e->qp = e->id->qp;
	} else {
		e->qp = ibv_create_qp_ex(e->verbs, &attr);
		err = e->qp ? 0 : errno;
	}
	attr.cap.max_inline_data = wish->inline_bytes;
	if (err && wish->inline_bytes)
		return refuse_inline(e, &attr, err, f);
	if (err && wish->sges > 1)
		return fail(f, -err, "%s makes no QP that takes %u pieces: %s; use a smaller --sge",
			    e->verbs->device->name, wish->sges, strerror(err));
	return err ? fail_call(f, e->id ? "rdma_create_qp_ex" : "ibv_create_qp_ex", err) : 0;
}

int endpoint_create(struct endpoint *e, struct ibv_context *verbs, struct rdma_cm_id *id,
		    const struct endpoint_wish *wish, struct failure *f)
{
	uint32_t slot = wish->slot_bytes < ENDPOINT_SLOT_BYTES ? ENDPOINT_SLOT_BYTES : wish->slot_bytes;
	int err;

	*e = (struct endpoint){.verbs = verbs, .id = id, .op = wish->op, .type = wish->type, .slot_bytes = slot};
	e->slot_count = slot > ENDPOINT_LONG_BYTES ? ENDPOINT_LONG_SLOTS : ENDPOINT_SLOTS;
	e->own_qkey = RDMA_UDP_QKEY;
	e->pd = ibv_alloc_pd(verbs);
	if (!e->pd)
		return fail_call(f, "ibv_alloc_pd", errno);
	e->channel = ibv_create_comp_channel(verbs);
	if (!e->channel)
		return fail_call(f, "ibv_create_comp_channel", errno);
	fcntl(e->channel->fd, F_SETFL, fcntl(e->channel->fd, F_GETFL) | O_NONBLOCK);
	e->cq = ibv_create_cq(verbs, ENDPOINT_SENDS + ENDPOINT_SLOTS, NULL, e->channel, 0);
	if (!e->cq)
		return fail_call(f, "ibv_create_cq", errno);
	err = ibv_req_notify_cq(e->cq, 0);
	if (err)
		return fail_call(f, "ibv_req_notify_cq", err);
	err = create_qp(e, wish, f);
	if (err)
		return err;
	return region_create(&e->slots, e->pd, e->slot_count * (slot + ENDPOINT_GRH_BYTES), IBV_ACCESS_LOCAL_WRITE, f);
}

void endpoint_destroy(struct endpoint *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	if (e->id && e->id->qp)
		rdma_destroy_qp(e->id);
	else if (e->qp)
		ibv_destroy_qp(e->qp);
	region_destroy(&e->slots);
	if (e->cq && e->cq_events)
		ibv_ack_cq_events(e->cq, e->cq_events);
	if (e->cq)
		ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	*e = (struct endpoint){0};
}

/* ---- states: IBTA 10.3.1, and the table of ibv_modify_qp(3) ---- */

static int modify(struct endpoint *e, struct ibv_qp_attr *attr, int mask, const char *state, struct failure *f)
{
	int err = ibv_modify_qp(e->qp, attr, mask);

	return err ? fail(f, -err, "ibv_modify_qp() to %s: %s", state, strerror(err)) : 0;
}

static int to_init(struct endpoint *e, const struct tour_port *port, struct failure *f)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port->num,
		.qkey = e->own_qkey,
		/* What the QP allows. The memory region must allow it as well. */
		.qp_access_flags = endpoint_rights(e->op, e->type, true) & ~(unsigned)IBV_ACCESS_MW_BIND,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (e->op == TOUR_SEND_INV)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE; /* the window's */
	return modify(e, &attr, mask | (e->type == TOUR_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS), "INIT", f);
}

static struct ibv_ah_attr address(const struct tour_port *port, const struct endpoint_peer *peer)
{
	struct ibv_ah_attr attr = {
		.dlid = peer->lid,
		.port_num = port->num,
		.is_global = !port->infiniband,
		.grh = {.dgid = peer->gid, .sgid_index = (uint8_t)port->gid_index, .hop_limit = 64},
	};
	return attr;
}

static int to_rtr(struct endpoint *e, const struct tour_port *port, const struct endpoint_peer *peer, struct failure *f)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.ah_attr = address(port, peer),
		.max_dest_rd_atomic = e->rd_atomic ? e->rd_atomic : 1,
		.min_rnr_timer = 12, /* 0.64 ms */
	};
	int mask = IBV_QP_STATE;

	if (e->type != TOUR_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (e->type == TOUR_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return modify(e, &attr, mask, "RTR", f);
}

static int to_rts(struct endpoint *e, uint32_t psn, struct failure *f)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.max_rd_atomic = e->rd_atomic ? e->rd_atomic : 1,
		.timeout = 14, /* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->type == TOUR_RC)
		mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	return modify(e, &attr, mask, "RTS", f);
}

int endpoint_connect(struct endpoint *e, const struct tour_port *port, const struct endpoint_peer *peer, uint32_t psn,
		     struct failure *f)
{
	int err = to_init(e, port, f);

	if (!err)
		err = endpoint_post_slots(e, f);
	if (!err)
		err = to_rtr(e, port, peer, f);
	if (!err)
		err = to_rts(e, psn, f);
	if (err || e->type != TOUR_UD)
		return err;
	struct ibv_ah_attr attr = address(port, peer);
	e->ah = ibv_create_ah(e->pd, &attr);
	e->peer_qpn = peer->qpn;
	e->peer_qkey = peer->qkey;
	return e->ah ? 0 : fail_call(f, "ibv_create_ah", errno);
}

/* ---- short messages ---- */

int endpoint_post_slot(struct endpoint *e, unsigned slot, struct failure *f)
{
	uint32_t room = e->slot_bytes + ENDPOINT_GRH_BYTES;
	struct ibv_sge sge = {(uintptr_t)e->slots.bytes + slot * room, room, e->slots.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(WR_RECEIVE, slot), .sg_list = &sge, .num_sge = 1}, *bad;
	int err;

	if (e->type != TOUR_UD)
		sge.length = e->slot_bytes;
	e->posted_ns[slot] = tour_wall_ns();
	err = ibv_post_recv(e->qp, &wr, &bad);
	return err ? fail_call(f, "ibv_post_recv", err) : 0;
}

int endpoint_post_slots(struct endpoint *e, struct failure *f)
{
	int err = 0;

	for (unsigned i = 0; i < e->slot_count && !err; i++)
		err = endpoint_post_slot(e, i, f);
	return err;
}

const uint8_t *endpoint_message(const struct endpoint *e, unsigned slot)
{
	return e->slots.bytes + slot * (e->slot_bytes + ENDPOINT_GRH_BYTES) +
	       (e->type == TOUR_UD ? ENDPOINT_GRH_BYTES : 0);
}

uint32_t endpoint_message_len(const struct endpoint *e, const struct ibv_wc *wc)
{
	uint32_t before = e->type == TOUR_UD ? ENDPOINT_GRH_BYTES : 0;

	return wc->byte_len < before ? 0 : wc->byte_len - before;
}

int endpoint_send(struct endpoint *e, struct region *from, unsigned slot, enum wr_kind kind, const void *bytes,
		  uint32_t len, struct failure *f)
{
	uint8_t *place = from->bytes + slot * ENDPOINT_SLOT_BYTES;
	struct ibv_sge sge = {(uintptr_t)place, len, from->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id(kind, slot),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int err;

	memcpy(place, bytes, len);
	if (e->type == TOUR_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer_qpn;
		wr.wr.ud.remote_qkey = e->peer_qkey;
	}
	err = ibv_post_send(e->qp, &wr, &bad);
	return err ? fail_call(f, "ibv_post_send", err) : 0;
}
