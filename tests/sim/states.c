/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a QP to RTS, and the lives that some have before: nothing of those may show in the program. Packets of an
 * earlier connection between the same QPNs may still be under way (a process that was started again, IBTA 12.10.8.2),
 * and its peer may still believe in it.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#include "engine/qp.h"

#define FAR       (1u << 17) /* PSNs between two lives: more than a program takes */
#define LATEST_NS (20 * MS)  /* when a packet of an earlier life comes */
#define BELIEVES  4          /* how often what is sent goes there and back */
#define LONG      300        /* packets: more than a batch has room for */

static void modify(struct sim *sim, struct sim_qp *qp, const struct roci_qp_attr *attr, unsigned mask)
{
	int err = sim_modify(sim, qp, attr, mask | ROCI_QP_STATE);

	sim_check(sim, !err, "roci_qp_modify() to state %d: %d", attr->state, err);
	sim_check(sim, roci_qp_state(qp->qp) == attr->state, "the QP is in state %d, not %d", roci_qp_state(qp->qp),
		  attr->state);
}

static void to_init(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_INIT, .qkey = qp->qkey, .access = qp->access, .port_num = 1};

	modify(sim, qp, &attr,
	       ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | (qp->type == ROCI_QPT_UD ? ROCI_QP_QKEY : ROCI_QP_ACCESS_FLAGS));
}

static void to_rtr(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_RTR,
				    .rq_psn = qp->peer->sq_psn,
				    .dest_qpn = qp->peer->qpn,
				    .path_mtu = qp->mtu_num,
				    .av = qp->av,
				    .max_dest_rd_atomic = qp->max_dest_rd,
				    .min_rnr_timer = qp->min_rnr_timer};
	unsigned mask = ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN;

	if (qp->type == ROCI_QPT_RC)
		mask |= ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER;
	modify(sim, qp, &attr, qp->type == ROCI_QPT_UD ? 0 : mask);
}

void sim_agree_longer(struct sim_qp *qp)
{
	qp->qp->resp.ranges.longest = (uint16_t)qp->longer;
	qp->qp->req.plpmtu.proved = (uint8_t)(qp->longer / ROCI_PLPMTU_STEP);
}

void sim_connect(struct sim *sim, struct sim_qp *qp)
{
	to_init(sim, qp);
	to_rtr(sim, qp);
	sim_agree_longer(qp);
}

void sim_ready_to_send(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_RTS,
				    .sq_psn = qp->sq_psn,
				    .max_rd_atomic = qp->max_rd,
				    .timeout = qp->timeout,
				    .retry_cnt = qp->retry_cnt,
				    .rnr_retry = qp->rnr_retry};
	unsigned rc = ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC;

	modify(sim, qp, &attr, ROCI_QP_SQ_PSN | (qp->type == ROCI_QPT_RC ? rc : 0));
	qp->late = false;
}

/* ---- lives before the program ---- */

static void to_state(struct sim *sim, struct sim_qp *qp, enum roci_qp_state state)
{
	struct roci_qp_attr attr = {.state = state};

	modify(sim, qp, &attr, 0);
}

/* Takes away what a life has left for the application. */
static void forget(struct sim *sim, struct sim_qp *qp)
{
	sim_host_discard(qp->host);
	roci_cq_purge(qp->send_cq->cq, qp->qpn);
	roci_cq_purge(qp->recv_cq->cq, qp->qpn);
}

/* The attributes that a QP had before a reset must not show after it. */
static void live_before(struct sim *sim, struct sim_qp *qp)
{
	struct sim_mr *mr = &sim->mrs[0];
	struct roci_sge sge = {.addr = mr->iova, .len = mr->len < 8 ? mr->len : 8, .lkey = mr->key};
	struct roci_recv_wr recv = {.wr_id = 1ull << 62, .sges = &sge, .num_sge = qp->rq->max_sge ? 1 : 0};
	struct roci_send_wr send = {.wr_id = 1ull << 61, .opcode = ROCI_WR_SEND, .flags = ROCI_SEND_SIGNALED};
	bool late = qp->late;

	sim_connect(sim, qp);
	sim_ready_to_send(sim, qp);
	send.av = &qp->av;
	send.remote_qpn = qp->peer->qpn;
	if (qp->rq->qp)
		sim_check(sim, !roci_qp_post_recv(qp->qp, &recv), "posting a receive");
	for (unsigned i = 0; i < qp->cap.max_send_wr; i++)
		sim_check(sim, !roci_qp_post_send(qp->qp, &send), "posting a send");
	if (rng_once_in(&sim->plan, 2))
		roci_engine_tx(qp->host->engine, sim_host_now(qp->host), &sim->batch);
	if (rng_once_in(&sim->plan, 2))
		to_state(sim, qp, ROCI_QPS_ERR);
	to_state(sim, qp, ROCI_QPS_RESET);
	forget(sim, qp);
	qp->late = late;
}

static void send_batch(struct sim *sim, struct sim_qp *qp)
{
	sim->batch.count = sim->batch.span_count = 0;
	roci_engine_tx(qp->host->engine, sim_host_now(qp->host), &sim->batch);
	roci_engine_tx_done(qp->host->engine, sim_host_now(qp->host));
}

/* A work request that fails before its first packet: RC goes to ERR, the others to SQE. */
static void fail_one(struct sim *sim, struct sim_qp *qp)
{
	struct roci_sge sge = {.len = qp->mtu + 1, .lkey = qp->peer->target ? qp->peer->target->key ^ 0x500 : 0};
	struct roci_send_wr send = {.wr_id = 1ull << 61,
				    .opcode = qp->type == ROCI_QPT_RC ? ROCI_WR_RDMA_READ : ROCI_WR_SEND,
				    .sges = &sge,
				    .num_sge = 1,
				    .av = &qp->av,
				    .remote_qpn = qp->peer->qpn};
	uint32_t expected = qp->type == ROCI_QPT_RC   ? ROCI_WC_LOC_QP_OP_ERR /* it may have no READs outstanding */
			    : qp->type == ROCI_QPT_UD ? ROCI_WC_LOC_LEN_ERR
						      : ROCI_WC_LOC_PROT_ERR;
	enum roci_qp_state state = qp->type == ROCI_QPT_RC ? ROCI_QPS_ERR : ROCI_QPS_SQE;
	struct roci_cqe cqe;

	sim_check(sim, !roci_qp_post_send(qp->qp, &send), "posting what must fail");
	send_batch(sim, qp);
	sim_cover_states(sim);
	sim_check(sim, roci_qp_state(qp->qp) == state, "QP %u failed and is in state %d", qp->id,
		  roci_qp_state(qp->qp));
	sim_check(sim, roci_cq_poll(qp->send_cq->cq, &cqe, 1) == 1 && cqe.status == expected,
		  "QP %u failed with status %u, not %u", qp->id, cqe.status, expected);
	sim_cover_completion(sim, &cqe, false);
}

/* UC: the memory of a message is deregistered between its packets, in SQD. */
static void fail_drained(struct sim *sim, struct sim_qp *qp)
{
	struct roci_mr_attr attr = {
		.pd = qp->pd, .key = sim_new_key(sim, qp->host), .base = qp->host->mem, .len = LONG * qp->mtu};
	struct roci_sge sge = {.len = LONG * qp->mtu, .lkey = attr.key};
	struct roci_send_wr send = {.wr_id = 1ull << 61, .opcode = ROCI_WR_SEND, .sges = &sge, .num_sge = 1};
	struct roci_mr *mr;

	sim_check(sim, !SIM_PRESSED(sim, roci_mr_create(qp->host->engine, &attr, &mr)), "an MR of %u bytes",
		  LONG * qp->mtu);
	sim_check(sim, !roci_qp_post_send(qp->qp, &send), "posting a long message");
	send_batch(sim, qp);
	sim_check(sim, !roci_mr_destroy(mr), "roci_mr_destroy() failed");
	to_state(sim, qp, ROCI_QPS_SQD);
	for (unsigned i = 0; i < LONG && roci_qp_state(qp->qp) == ROCI_QPS_SQD; i++) {
		uint64_t deadline = roci_engine_deadline(qp->host->engine);

		sim->now = deadline != ROCI_NEVER && deadline > sim->now ? deadline : sim->now;
		roci_engine_timers(qp->host->engine, sim_host_now(qp->host));
		send_batch(sim, qp);
	}
	sim_cover_states(sim);
	sim_check(sim, roci_qp_state(qp->qp) == ROCI_QPS_SQE, "QP %u lost its memory in SQD and is in state %d", qp->id,
		  roci_qp_state(qp->qp));
}

#define FAIL    100 /* fail_one() */
#define DRAINED 101 /* fail_drained() */
#define STEPS   8

static void step(struct sim *sim, struct sim_qp *qp, unsigned to)
{
	enum roci_qp_state from = roci_qp_state(qp->qp);
	struct roci_qp_attr attr = {.state = to, .port_num = 1};

	if (to == FAIL)
		fail_one(sim, qp);
	else if (to == DRAINED)
		fail_drained(sim, qp);
	else if (to == ROCI_QPS_INIT && from == ROCI_QPS_RESET)
		to_init(sim, qp);
	else if (to == ROCI_QPS_RTR)
		to_rtr(sim, qp);
	else if (to == ROCI_QPS_RTS && from == ROCI_QPS_RTR)
		sim_ready_to_send(sim, qp);
	else
		modify(sim, qp, &attr, to == from && to != ROCI_QPS_RTS ? ROCI_QP_PKEY_INDEX : 0);
}

/* Every way through the states (IBTA 10.3.1), each of them from RESET to RESET. */
static void walk(struct sim *sim, struct sim_qp *qp)
{
	enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR };
	static const uint8_t ways[][STEPS] = {
		{INIT, INIT},
		{INIT, ERR},
		{INIT, RTR},
		{INIT, RTR, ERR},
		{INIT, RTR, RTS, RTS, SQD, SQD, ERR},
		{INIT, RTR, RTS, SQD},
		{INIT, RTR, RTS, FAIL},
		{INIT, RTR, RTS, FAIL, RTS, FAIL, ERR},
		{INIT, RTR, RTS, DRAINED, RTS},
	};
	uint8_t max_rd = qp->max_rd;
	bool late = qp->late;

	qp->max_rd = 0;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		bool skip = (qp->type == ROCI_QPT_RC && i == 7) || (qp->type != ROCI_QPT_UC && ways[i][3] == DRAINED);

		for (unsigned k = 0; !skip && k < STEPS && ways[i][k] != RESET; k++)
			step(sim, qp, ways[i][k]);
		to_state(sim, qp, ROCI_QPS_RESET);
		forget(sim, qp);
	}
	qp->max_rd = max_rd;
	qp->late = late;
}

void sim_live_before(struct sim *sim, struct sim_qp *qp)
{
	bool small = qp->send_cq->may_overrun || qp->recv_cq->may_overrun;

	if (rng_once_in(&sim->plan, 8) && !small)
		live_before(sim, qp);
	if (sim->walks && !small)
		walk(sim, qp);
}

/* ---- an earlier connection ---- */

/* The batch of `from` comes late. It is of no QP any more: it must change nothing. */
static void delay_batch(struct sim *sim, struct sim_qp *from)
{
	for (unsigned i = 0; i < sim->batch.count; i++)
		sim_net_late(sim, from->host, &sim->batch.packets[i], sim->batch.spans,
			     rng_below(&sim->more, LATEST_NS));
}

static void post_earlier(struct sim *sim, struct sim_qp *qp)
{
	const struct sim_mr *local = qp->peer->target, *remote = qp->target;
	uint32_t most = local->len < remote->len ? local->len : remote->len;
	struct roci_sge sge = {sim_mr_addr(local, local->off), (uint32_t)rng_range(&sim->more, 1, most), local->key};
	struct roci_send_wr send = {.wr_id = 1ull << 61,
				    .flags = ROCI_SEND_SIGNALED,
				    .sges = &sge,
				    .num_sge = 1,
				    .rkey = remote->key,
				    .remote_addr = sim_mr_addr(remote, remote->off)};
	static const enum roci_wr_opcode opcodes[] = {ROCI_WR_RDMA_READ, ROCI_WR_RDMA_WRITE, ROCI_WR_SEND,
						      ROCI_WR_RDMA_WRITE_WITH_IMM};
	const unsigned count = sizeof(opcodes) / sizeof(*opcodes);
	unsigned first = rng_below(&sim->more, count);

	for (unsigned i = 0; i < count && i < qp->cap.max_send_wr; i++) {
		send.opcode = opcodes[(first + i) % count];
		sim_check(sim, !roci_qp_post_send(qp->qp, &send), "posting in an earlier life");
	}
}

static void answer_earlier(struct sim *sim, struct sim_qp *qp)
{
	const struct sim_qp *peer = qp->peer;
	const struct sim_mr *mr = peer->target;
	struct roci_rx rx = {.pkt = {.opcode = ROCI_OP_READ_REQUEST,
				     .op = roci_opcode_info(ROCI_OP_READ_REQUEST),
				     .pkey = ROCI_PKEY_DEFAULT,
				     .dest_qpn = qp->qpn,
				     .psn = peer->sq_psn,
				     .va = sim_mr_addr(mr, mr->off),
				     .rkey = mr->key,
				     .dma_len = mr->len},
			     .src_port = peer->av.src_port};

	memcpy(rx.sgid, peer->host->gid, 16);
	memcpy(rx.dgid, qp->host->gid, 16);
	roci_engine_rx(qp->host->engine, sim_host_now(qp->host), &rx);
	send_batch(sim, qp);
	delay_batch(sim, qp);
}

/* ---- a peer that was started again ---- */

/* What a side has to send arrives at once. */
static void carry(struct sim *sim, struct sim_qp *from)
{
	send_batch(sim, from);
	for (unsigned i = 0; i < sim->batch.count; i++) {
		static struct roci_tx_batch batch;

		batch = sim->batch; /* what arrives may send */
		sim_net_at_once(sim, from->host, &batch.packets[i], batch.spans);
	}
}

/* No request of the earlier life may seem to be done. */
static void check_nothing_done(struct sim *sim, struct sim_qp *qp)
{
	struct roci_cqe cqe;

	while (roci_cq_poll(qp->send_cq->cq, &cqe, 1))
		sim_check(sim, cqe.status != ROCI_WC_SUCCESS, "a request of an earlier life was done by a later one");
}

/* The peer has connected anew, with the PSNs of the program, and `qp` does not know. What qp still asks for must
 * neither be done nor seem to be. */
static void believe(struct sim *sim, struct sim_qp *qp, const uint32_t new_psns[2])
{
	struct sim_qp *again = qp->peer;
	const struct sim_mr *mr = qp->target;
	uint8_t *before = malloc(mr->len);

	sim_check(sim, before, "no memory");
	to_state(sim, again, ROCI_QPS_RESET);
	forget(sim, again);
	again->sq_psn = new_psns[0];
	qp->sq_psn = new_psns[1];
	sim_connect(sim, again);
	sim_ready_to_send(sim, again);
	memcpy(before, again->host->mem + mr->off, mr->len);
	post_earlier(sim, qp);
	for (unsigned i = 0; i < BELIEVES; i++) {
		carry(sim, qp);
		carry(sim, again);
	}
	check_nothing_done(sim, qp);
	sim_check(sim, !memcmp(before, again->host->mem + mr->off, mr->len), "an earlier life has written to memory");
	free(before);
}

static void end_life(struct sim *sim, struct sim_qp *qp, uint32_t psn, bool late)
{
	to_state(sim, qp, ROCI_QPS_RESET);
	forget(sim, qp);
	qp->sq_psn = psn;
	qp->late = late;
}

void sim_live_earlier(struct sim *sim, struct sim_qp *a)
{
	struct sim_qp *both[] = {a, a->peer};
	uint32_t psn[] = {a->sq_psn, a->peer->sq_psn};
	bool late[] = {a->late, a->peer->late};

	if (a->type != ROCI_QPT_RC || a->av.local)
		return;
	for (unsigned i = 0; i < 2; i++)
		both[i]->sq_psn = (psn[i] + FAR + rng_below(&sim->more, ROCI_PSN_MASK - 2 * FAR)) & ROCI_PSN_MASK;
	for (unsigned i = 0; i < 2; i++) {
		sim_connect(sim, both[i]);
		sim_ready_to_send(sim, both[i]);
	}
	if (rng_once_in(&sim->more, 2)) {
		unsigned who = rng_below(&sim->more, 2);

		believe(sim, both[who], (uint32_t[]){psn[!who], psn[who]});
	} else {
		for (unsigned i = 0; i < 2; i++) {
			post_earlier(sim, both[i]);
			send_batch(sim, both[i]);
			delay_batch(sim, both[i]);
		}
		for (unsigned i = 0; i < 2; i++)
			answer_earlier(sim, both[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		end_life(sim, both[i], psn[i], late[i]);
}
