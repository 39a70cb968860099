/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/end.h"

#include <netinet/in.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAX_RD_ATOMIC 16u
#define CHAIN_BYTES   (1u << 20) /* a chain of long messages is not longer, so that completions come in good time */

/* wr_ids: the QP, how many requests complete with it, and whether it is a receive. */
#define WR_RECEIVED (UINT64_C(1) << 63)

static uint64_t make_wr_id(unsigned qp, unsigned count)
{
	return (uint64_t)count << 32 | qp;
}

/* ---- limits ---- */

static unsigned bound(unsigned value, unsigned low, unsigned high)
{
	return value < low ? low : value > high ? high : value;
}

/* Checks the plan against what the device announces, and fills what follows from both. */
static int check_limits(struct perf_end *e, struct failure *f)
{
	const struct perf_plan *p = &e->plan;
	const char *name = e->port.verbs->device->name;
	struct ibv_device_attr d;
	struct ibv_port_attr port;
	unsigned on_a_cq = (p->qps + p->cqs - 1) / p->cqs;

	if (ibv_query_device(e->port.verbs, &d) || ibv_query_port(e->port.verbs, e->port.num, &port))
		return fail_call(f, "ibv_query_device", errno);
	if (p->size_max > port.max_msg_sz)
		return fail(f, -EMSGSIZE, "%s sends messages of at most %u bytes; use a smaller --size", name,
			    port.max_msg_sz);
	if (p->qps > (unsigned)d.max_qp || p->cqs > (unsigned)d.max_cq)
		return fail(f, -EINVAL, "%s has at most %d queue pairs and %d completion queues; use fewer --qps", name,
			    d.max_qp, d.max_cq);
	e->depth = bound(p->depth, END_MIN_DEPTH, PERF_MAX_DEPTH) + END_BATCH;
	e->receives = perf_receives(p->op) ? bound(2 * e->depth, END_MIN_DEPTH, (unsigned)d.max_qp_wr) : 0;
	if (e->depth > (unsigned)d.max_qp_wr)
		return fail(f, -EINVAL, "a queue of %s has at most %d places; use --depth %d or less", name,
			    d.max_qp_wr, d.max_qp_wr - (int)END_BATCH);
	if ((uint64_t)on_a_cq * (e->depth + e->receives) > (unsigned)d.max_cqe)
		return fail(f, -EINVAL,
			    "a completion queue of %s has at most %d places, too few for %u queue pairs of --depth "
			    "%u; use more --cqs, or a smaller --depth",
			    name, d.max_cqe, on_a_cq, p->depth);
	e->rd_atomic = bound((unsigned)bound((unsigned)d.max_qp_rd_atom, 1, (unsigned)d.max_qp_init_rd_atom), 1,
			     MAX_RD_ATOMIC);
	return 0;
}

/* ---- objects ---- */

static int make_cqs(struct perf_end *e, struct failure *f)
{
	const struct perf_plan *p = &e->plan;
	unsigned on_a_cq = (p->qps + p->cqs - 1) / p->cqs;
	int places = (int)(on_a_cq * (e->depth + e->receives));

	e->pd = ibv_alloc_pd(e->port.verbs);
	if (!e->pd)
		return fail_call(f, "ibv_alloc_pd", errno);
	if (p->events) {
		e->channel = ibv_create_comp_channel(e->port.verbs);
		if (!e->channel)
			return fail_call(f, "ibv_create_comp_channel", errno);
		fcntl(e->channel->fd, F_SETFL, fcntl(e->channel->fd, F_GETFL) | O_NONBLOCK);
	}
	for (unsigned i = 0; i < p->cqs; i++) {
		e->cqs[i] = ibv_create_cq(e->port.verbs, places, &e->cq_events[i], e->channel, 0);
		if (!e->cqs[i])
			return fail_call(f, "ibv_create_cq", errno);
	}
	return 0;
}

static struct ibv_qp *make_qp(struct perf_end *e, unsigned i, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cqs[i % e->plan.cqs],
		.recv_cq = e->cqs[i % e->plan.cqs],
		.cap = {.max_send_wr = e->depth,
			.max_recv_wr = e->receives ? e->receives : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_bytes},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(e->pd, &attr);
}

static int make_qps(struct perf_end *e, struct failure *f)
{
	uint32_t wished = tour_op_carries(e->plan.op) ? PERF_INLINE_BYTES : 0;

	for (unsigned i = 0; i < e->plan.qps; i++) {
		struct perf_qp *q = &e->qps[i];
		q->endpoint = (struct endpoint){.verbs = e->port.verbs,
						.pd = e->pd,
						.op = e->plan.op,
						.type = TOUR_RC,
						.rd_atomic = (uint8_t)e->rd_atomic};
		q->endpoint.qp = make_qp(e, i, wished);
		if (!q->endpoint.qp && wished) { /* no attribute of a device tells how many it takes inline */
			wished = 0;
			q->endpoint.qp = make_qp(e, i, 0);
		}
		if (!q->endpoint.qp)
			return fail(f, -errno, "ibv_create_qp(), number %u of %u: %s", i + 1, e->plan.qps,
				    strerror(errno));
	}
	e->inline_max = wished;
	return 0;
}

static int make_memory(struct perf_end *e, struct failure *f)
{
	uint64_t stride = perf_stride(e->plan.size_max);
	int err = region_create(&e->memory, e->pd, (uint32_t)perf_memory(&e->plan),
				endpoint_rights(e->plan.op, TOUR_RC, false), f);

	if (err)
		return err;
	memset(e->memory.bytes, 0x5a, e->memory.len); /* the pages are there before anything is measured */
	for (unsigned i = 0; i < e->plan.qps; i++) {
		e->qps[i].own = e->memory.bytes + 2 * i * stride;
		e->qps[i].window = e->qps[i].own + stride;
	}
	return 0;
}

int perf_end_open(struct perf_end *e, const struct perf_plan *plan, const char *device, const struct sockaddr *address,
		  struct failure *f)
{
	int err;

	*e = (struct perf_end){.plan = *plan};
	err = device_open(device, address, &e->port, f);
	if (err)
		return err;
	if (device_is_iwarp(e->port.verbs))
		return fail(f, -EOPNOTSUPP,
			    "%s is iWARP, and roci perf connects its queue pairs itself, which iWARP does not allow; "
			    "use perftest with -R",
			    e->port.verbs->device->name);
	e->qps = calloc(plan->qps, sizeof(*e->qps));
	if (!e->qps)
		return fail_call(f, "calloc", ENOMEM);
	err = check_limits(e, f);
	if (!err)
		err = make_cqs(e, f);
	if (!err)
		err = make_qps(e, f);
	return err ? err : make_memory(e, f);
}

void perf_end_close(struct perf_end *e)
{
	for (unsigned i = 0; e->qps && i < e->plan.qps; i++) {
		if (e->qps[i].endpoint.qp)
			ibv_destroy_qp(e->qps[i].endpoint.qp);
	}
	region_destroy(&e->memory);
	for (unsigned i = 0; i < e->plan.cqs; i++) {
		if (e->cqs[i] && e->cq_events[i])
			ibv_ack_cq_events(e->cqs[i], e->cq_events[i]);
		if (e->cqs[i])
			ibv_destroy_cq(e->cqs[i]);
	}
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->port.verbs)
		ibv_close_device(e->port.verbs);
	free(e->qps);
	*e = (struct perf_end){0};
}

/* ---- connecting ---- */

void perf_end_describe(const struct perf_end *e, unsigned i, struct talk_qp *q)
{
	*q = (struct talk_qp){
		.qpn = e->qps[i].endpoint.qp->qp_num, .addr = (uintptr_t)e->qps[i].window, .rkey = e->memory.mr->rkey};
	while (getrandom(&q->psn, sizeof(q->psn), 0) != (ssize_t)sizeof(q->psn))
		;
	q->psn &= 0xffffff;
	e->qps[i].psn = q->psn;
}

static void chain_receives(struct perf_end *e, unsigned i)
{
	struct perf_qp *q = &e->qps[i];

	q->receive_sge = (struct ibv_sge){(uintptr_t)q->window, e->plan.size_max, e->memory.mr->lkey};
	for (unsigned r = 0; r < e->receive_batch; r++)
		q->receives[r] = (struct ibv_recv_wr){
			.wr_id = WR_RECEIVED | i,
			.next = r + 1 < e->receive_batch ? &q->receives[r + 1] : NULL,
			.sg_list = &q->receive_sge,
			.num_sge = e->plan.op != TOUR_WRITE_IMM, /* its data has a place already */
		};
}

static int post_receives(struct perf_end *e, struct perf_qp *q, struct failure *f)
{
	struct ibv_recv_wr *bad;

	while (q->to_post >= e->receive_batch) {
		int err = ibv_post_recv(q->endpoint.qp, q->receives, &bad);
		if (err)
			return fail_call(f, "ibv_post_recv", err);
		q->to_post -= e->receive_batch;
	}
	return 0;
}

int perf_end_connect(struct perf_end *e, unsigned i, const struct talk_qp *remote, struct endpoint_peer peer,
		     unsigned rd_atomic, struct failure *f)
{
	struct perf_qp *q = &e->qps[i];
	int err;

	peer.qpn = remote->qpn;
	peer.psn = remote->psn;
	peer.mtu = peer.mtu < e->port.mtu ? peer.mtu : e->port.mtu;
	q->remote_addr = remote->addr;
	q->remote_rkey = remote->rkey;
	q->endpoint.rd_atomic = (uint8_t)bound(rd_atomic, 1, e->rd_atomic);
	err = endpoint_connect(&q->endpoint, &e->port, &peer, q->psn, f);
	if (err || !e->receives)
		return err;
	e->receive_batch = bound(e->receives / 4, 1, END_BATCH);
	chain_receives(e, i);
	q->to_post = e->receives;
	return post_receives(e, q, f);
}

/* ---- work requests ---- */

static enum ibv_wr_opcode opcode(enum tour_op op)
{
	switch (op) {
	case TOUR_SEND_IMM: return IBV_WR_SEND_WITH_IMM;
	case TOUR_WRITE: return IBV_WR_RDMA_WRITE;
	case TOUR_WRITE_IMM: return IBV_WR_RDMA_WRITE_WITH_IMM;
	case TOUR_READ: return IBV_WR_RDMA_READ;
	case TOUR_CAS: return IBV_WR_ATOMIC_CMP_AND_SWP;
	case TOUR_FAA: return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default: return IBV_WR_SEND;
	}
}

static struct ibv_send_wr request(struct perf_end *e, unsigned i)
{
	struct perf_qp *q = &e->qps[i];
	struct ibv_send_wr wr = {.wr_id = make_wr_id(i, 1),
				 .sg_list = &q->send_sge,
				 .num_sge = 1,
				 .opcode = opcode(e->plan.op),
				 .imm_data = htonl(i)};

	if (e->plan.op == TOUR_CAS || e->plan.op == TOUR_FAA) {
		wr.wr.atomic.remote_addr = q->remote_addr;
		wr.wr.atomic.rkey = q->remote_rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 1;
	} else {
		wr.wr.rdma.remote_addr = q->remote_addr;
		wr.wr.rdma.rkey = q->remote_rkey;
	}
	if (e->size <= e->inline_max)
		wr.send_flags = IBV_SEND_INLINE;
	return wr;
}

void perf_end_begin(struct perf_end *e, uint32_t size)
{
	e->size = size;
	e->done = e->received = 0;
	e->qps[0].window[size - 1] = 0; /* where latency is measured, the other end's first WRITE puts a 1 here */
	e->batch = bound(bound(e->plan.depth / 4, 1, END_BATCH), 1, bound(CHAIN_BYTES / size, 1, END_BATCH));
	for (unsigned i = 0; i < e->plan.qps; i++) {
		struct perf_qp *q = &e->qps[i];
		q->send_sge = (struct ibv_sge){(uintptr_t)q->own, size, e->memory.mr->lkey};
		q->single = request(e, i);
		for (unsigned s = 0; s < e->batch; s++) {
			q->sends[s] = q->single;
			q->sends[s].next = s + 1 < e->batch ? &q->sends[s + 1] : NULL;
		}
		q->sends[e->batch - 1].send_flags |= IBV_SEND_SIGNALED;
		q->sends[e->batch - 1].wr_id = make_wr_id(i, e->batch);
	}
}

int perf_end_post(struct perf_end *e, struct perf_qp *q, struct failure *f)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(q->endpoint.qp, q->sends, &bad);

	q->under_way += e->batch;
	return err ? fail_call(f, "ibv_post_send", err) : 0;
}

int perf_end_post_single(struct perf_end *e, struct perf_qp *q, unsigned count, struct failure *f)
{
	struct ibv_send_wr *bad;
	int err;

	q->single.wr_id = make_wr_id((unsigned)(q - e->qps), count);
	q->single.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	q->single.send_flags |= count ? IBV_SEND_SIGNALED : 0;
	err = ibv_post_send(q->endpoint.qp, &q->single, &bad);
	q->under_way += count;
	return err ? fail_call(f, "ibv_post_send", err) : 0;
}

/* ---- completions ---- */

/* A QP in the error state flushes all its requests, so the cause may come after a flushed one. */
static int completed_in_error(struct perf_end *e, struct ibv_cq *cq, struct ibv_wc wc, struct failure *f)
{
	while (wc.status == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(cq, 1, &wc) > 0)
		;
	return fail_wc(f, wc.wr_id & WR_RECEIVED ? "a receive" : tour_op_title(e->plan.op), wc.status);
}

static int take(struct perf_end *e, struct ibv_cq *cq, const struct ibv_wc *wc, struct failure *f)
{
	struct perf_qp *q = &e->qps[(uint32_t)wc->wr_id];
	unsigned count = (unsigned)(wc->wr_id >> 32) & 0x7fffffff;

	if (wc->status != IBV_WC_SUCCESS)
		return completed_in_error(e, cq, *wc, f);
	if (wc->wr_id & WR_RECEIVED) {
		e->received++;
		q->to_post++;
		return q->to_post >= e->receive_batch ? post_receives(e, q, f) : 0;
	}
	e->done += count;
	q->under_way -= count;
	return 0;
}

int perf_end_poll(struct perf_end *e, struct failure *f)
{
	struct ibv_wc wcs[END_BATCH];
	int sum = 0;

	for (unsigned c = 0; c < e->plan.cqs; c++) {
		int n = ibv_poll_cq(e->cqs[c], END_BATCH, wcs);
		if (n < 0)
			return fail_call(f, "ibv_poll_cq", -n);
		for (int i = 0; i < n; i++) {
			int err = take(e, e->cqs[c], &wcs[i], f);
			if (err)
				return err;
		}
		sum += n;
	}
	return sum;
}

int perf_end_arm(struct perf_end *e, struct failure *f)
{
	for (unsigned c = 0; c < e->plan.cqs; c++) {
		int err = ibv_req_notify_cq(e->cqs[c], 0);
		if (err)
			return fail_call(f, "ibv_req_notify_cq", err);
	}
	return 0;
}

void perf_end_take_events(struct perf_end *e)
{
	struct ibv_cq *cq;
	void *events;

	while (!ibv_get_cq_event(e->channel, &cq, &events))
		++*(unsigned *)events;
}
