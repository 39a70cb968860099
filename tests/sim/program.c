/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the frame of a program (hosts, CQs, QPs and their attributes) and builds it in the engines. */
#include <errno.h>

#include "sim.h"

#include "engine/plpmtu.h"

static uint64_t draw(struct sim *sim, uint64_t lo, uint64_t hi)
{
	return rng_range(&sim->plan, lo, hi);
}

static bool once_in(struct sim *sim, unsigned n)
{
	return rng_once_in(&sim->plan, n);
}

static void draw_host(struct sim *sim, struct sim_host *host, unsigned id, bool ipv6)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
	static const uint8_t v6[16] = {0xfd, 0x12, 0x34, [15] = 1};
	uint8_t *mem = host->mem, *shadow = host->shadow;

	*host = (struct sim_host){.sim = sim, .id = id, .mem = mem, .shadow = shadow};
	memcpy(host->gid, ipv6 ? v6 : v4, 16);
	host->gid[15] += id;
	host->pds[0] = draw(sim, 1, 1000);
	host->pds[1] = host->pds[0] + 1;
	host->lag_ns = once_in(sim, 3) ? draw(sim, 1, 60) * US : 0;
	host->ip_id = draw(sim, 0, 65535);
	host->num_cq = draw(sim, 1, SIM_MAX_CQS);
	for (unsigned i = 0; i < host->num_cq; i++) {
		struct sim_cq *cq = &host->cqs[i];

		cq->host = host;
		cq->mode = draw(sim, 0, 2);
		cq->lag_ns = draw(sim, 1, 200) * US;
		cq->solicited_only = cq->mode != SIM_POLL_EVENT && once_in(sim, 2);
	}
}

static struct sim_rq *rq_new(struct sim *sim, struct sim_host *host, uint32_t pd)
{
	struct sim_rq *rq = &sim->rqs[sim->num_rqs];

	*rq = (struct sim_rq){.sim = sim, .host = host, .id = sim->num_rqs++, .pd = pd};
	rq->max_sge = draw(sim, 1, SIM_MAX_SGE);
	rq->cap = draw(sim, 1, once_in(sim, 2) ? 4 : 40);
	rq->early = !once_in(sim, 3);
	rq->gap_ns = draw(sim, 1, once_in(sim, 4) ? 20000 : 300) * US;
	rq->pool = (struct sim_pool){.host = host, .pd = pd, .access = ROCI_ACCESS_LOCAL_WRITE};
	return rq;
}

/* Its PD need not be that of the QPs that share it. */
static struct sim_rq *srq_new(struct sim *sim, const struct sim_qp *qp)
{
	bool foreign = rng_once_in(&sim->extra, 2);
	uint32_t pd = foreign ? qp->host->pds[qp->host->pds[0] == qp->pd] : qp->pd;
	struct sim_rq *rq = rq_new(sim, qp->host, pd);

	rq->sharer_pd = qp->pd;
	return rq;
}

static void draw_rq(struct sim *sim, struct sim_qp *qp)
{
	unsigned shared = SIM_MAX_RQS;

	for (unsigned i = 0; i < sim->num_rqs; i++)
		if (!sim->rqs[i].qp && sim->rqs[i].host == qp->host && sim->rqs[i].sharer_pd == qp->pd)
			shared = i;
	if ((qp->type != ROCI_QPT_UD || sim->mixed) && once_in(sim, sim->mixed ? 2 : 4)) {
		/* Shared receive queues are marked by qp == NULL. */
		qp->rq = shared < SIM_MAX_RQS ? &sim->rqs[shared] : srq_new(sim, qp);
		return;
	}
	qp->rq = rq_new(sim, qp->host, qp->pd);
	qp->rq->qp = qp;
}

static uint32_t random_psn(struct sim *sim)
{
	return once_in(sim, 3) ? (0xffffffu - draw(sim, 0, 40)) & ROCI_PSN_MASK : draw(sim, 0, ROCI_PSN_MASK);
}

static uint32_t unique_qpn(struct sim *sim)
{
	uint32_t qpn;

again:
	qpn = draw(sim, 2, 0xfffffe);
	for (unsigned i = 0; i < sim->num_qps; i++)
		if (sim->qps[i].qpn == qpn)
			goto again;
	return qpn;
}

static struct sim_qp *draw_qp(struct sim *sim, struct sim_host *host, enum roci_qp_type type)
{
	struct sim_qp *qp = &sim->qps[sim->num_qps];

	*qp = (struct sim_qp){.sim = sim, .host = host, .id = sim->num_qps, .type = type, .fault_wr = -1};
	qp->failed_wr = -1;
	qp->qpn = unique_qpn(sim);
	sim->num_qps++;
	qp->pd = host->pds[draw(sim, 0, 1)];
	qp->qkey = draw(sim, 1, 0x7fffffff);
	qp->sq_psn = random_psn(sim);
	qp->send_cq = &host->cqs[draw(sim, 0, host->num_cq - 1)];
	qp->recv_cq = &host->cqs[draw(sim, 0, host->num_cq - 1)];
	qp->access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ |
		     ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_FLUSH_GLOBAL;
	if (type == ROCI_QPT_UC)
		qp->access &= ~(ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_FLUSH_GLOBAL);
	draw_rq(sim, qp);
	qp->cap = (struct roci_qp_cap){
		.max_send_wr = draw(sim, 1, once_in(sim, 2) ? 4 : 40),
		.max_recv_wr = qp->rq->qp ? qp->rq->cap : 0,
		.max_send_sge = draw(sim, 1, SIM_MAX_SGE),
		.max_recv_sge = qp->rq->qp ? qp->rq->max_sge : 0,
		.max_inline = once_in(sim, 2) ? 0 : draw(sim, 1, ROCI_MAX_INLINE),
	};
	qp->sq_sig_all = once_in(sim, 3);
	qp->gap_ns = once_in(sim, 2) ? 0 : draw(sim, 1, 300) * US;
	qp->post_after_failure = once_in(sim, 2);
	return qp;
}

static void draw_reliability(struct sim *sim, struct sim_qp *qp)
{
	qp->timeout = draw(sim, 10, 15);
	if (sim->retry_legal)
		qp->timeout = draw(sim, 6, 10);
	qp->retry_cnt = once_in(sim, 4) ? draw(sim, 0, 7) : 7;
	qp->rnr_retry = once_in(sim, 3) ? draw(sim, 0, 6) : 7;
	qp->min_rnr_timer = once_in(sim, 8) ? 0 : draw(sim, 1, once_in(sim, 4) ? 31 : 14);
	qp->max_rd = once_in(sim, 2) ? draw(sim, 1, 4) : draw(sim, 1, ROCI_MAX_RD_ATOMIC);
}

static void draw_path(struct sim *sim, struct sim_qp *a, struct sim_qp *b)
{
	a->peer = b;
	a->mtu_num = once_in(sim, 3) ? draw(sim, 1, 5) : draw(sim, 1, 2);
	a->mtu = 128u << a->mtu_num;
	memcpy(a->av.sgid, a->host->gid, 16);
	memcpy(a->av.dgid, b->host->gid, 16);
	a->av.mtu = a->type == ROCI_QPT_UD ? a->mtu : 4096;
	a->av.mad_port = ROCI_UDP_PORT;
	a->av.src_port = 0xc000 | draw(sim, 0, 0x3fff);
	a->av.traffic_class = draw(sim, 0, 63) << 2 | (once_in(sim, 2) ? 2 : 0);
	a->av.hop_limit = draw(sim, 1, 255);
	a->disjoint = a->type == ROCI_QPT_UC || sim->watch;
	a->budget = draw(sim, 1, once_in(sim, 16) ? 512 : 64) * 1024;
	if (sim->big)
		a->budget = draw(sim, 1, 4) << 20;
	a->max_len = a->type == ROCI_QPT_UD ? a->mtu : a->budget;
	if (a->type == ROCI_QPT_UC || !b->rq->qp)
		a->max_len = a->max_len < 8 * a->mtu ? a->max_len : 8 * a->mtu;
	if (a->max_len > 300 * a->mtu)
		a->max_len = 300 * a->mtu;
	if (a->max_len > 1u << 20)
		a->max_len = 1u << 20;
}

static uint32_t target_len(struct sim *sim)
{
	return sim->big ? 1u << 20 : 1024u << draw(sim, 0, once_in(sim, 8) ? 9 : 6);
}

static void draw_target(struct sim *sim, struct sim_qp *a)
{
	struct sim_host *host = a->peer->host;
	uint32_t pd = a->peer->pd;
	uint32_t all = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ |
		       ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_FLUSH_GLOBAL;

	a->local_pool = (struct sim_pool){.host = a->host, .pd = a->pd, .access = ROCI_ACCESS_LOCAL_WRITE};
	if (a->type == ROCI_QPT_UD)
		return;
	a->target = sim_mr_new(sim, host, pd, target_len(sim), all | ROCI_ACCESS_MW_BIND);
	a->words = sim_mr_new(sim, host, pd, 8 * SIM_WORDS, all);
	a->target_pool = (struct sim_pool){.host = host, .pd = pd, .access = all};
	if (a->type != ROCI_QPT_RC || a->disjoint || (!sim->mixed && once_in(sim, 2)))
		return;
	a->num_mw = draw(sim, 1, SIM_MAX_MWS);
	for (unsigned i = 0; i < a->num_mw; i++) {
		uint32_t key = sim_new_key(sim, host);

		/* An MR of no length keeps the key from being drawn again. */
		sim->mrs[sim->num_mrs++] = (struct sim_mr){.host = host, .key = key};
		a->mws[i] = (struct sim_mw){.type = draw(sim, 1, 2), .key = key, .bind_wr = -1, .last_use_wr = -1};
	}
}

/* Any length between two path MTUs, or beyond the largest. */
static void draw_longer(struct sim *sim, struct sim_qp *a, struct sim_qp *b)
{
	uint32_t most = a->mtu == ROCI_MAX_MTU ? ROCI_MAX_PAYLOAD : 2 * a->mtu - ROCI_PLPMTU_STEP;

	a->longer = b->longer =
		a->mtu + ROCI_PLPMTU_STEP * rng_range(&sim->more, 1, (most - a->mtu) / ROCI_PLPMTU_STEP);
	a->av.max_datagram = b->av.max_datagram = a->longer + ROCI_MTU_HEADER_BYTES;
}

static void draw_pair(struct sim *sim)
{
	unsigned t = draw(sim, 0, 7);
	enum roci_qp_type type = t < 5 ? ROCI_QPT_RC : t < 7 ? ROCI_QPT_UC : ROCI_QPT_UD;
	struct sim_host *ha = &sim->hosts[draw(sim, 0, sim->num_hosts - 1)];
	struct sim_host *hb = &sim->hosts[(ha->id + draw(sim, 0, 8)) % sim->num_hosts];
	struct sim_qp *a = draw_qp(sim, ha, type), *b = draw_qp(sim, hb, type);
	uint8_t dest;

	draw_path(sim, a, b);
	draw_path(sim, b, a);
	if (type != ROCI_QPT_UD) {
		b->mtu = a->mtu;
		b->mtu_num = a->mtu_num;
	}
	a->segment = a->mtu;
	b->segment = b->mtu;
	if (sim->rings && type == ROCI_QPT_RC && !rng_once_in(&sim->more, 4)) {
		a->segment = b->segment = ROCI_MAX_MESSAGE_BYTES;
		a->av.local = (uint16_t)(hb->id + 1);
		b->av.local = (uint16_t)(ha->id + 1);
	} else if (sim->longer && type == ROCI_QPT_RC) {
		draw_longer(sim, a, b);
	}
	draw_reliability(sim, a);
	draw_reliability(sim, b);
	a->max_dest_rd = draw(sim, b->max_rd, ROCI_MAX_RD_ATOMIC);
	b->max_dest_rd = draw(sim, a->max_rd, ROCI_MAX_RD_ATOMIC);
	dest = draw(sim, 0, 1);
	b->qkey = dest ? a->qkey : b->qkey;
	draw_target(sim, a);
	draw_target(sim, b);
	sim_workload_draw(sim, a, b);
	if (once_in(sim, 5))
		sim_fault_draw(sim, a, b);
	else if (!sim->net.lossy && !sim->net.reorder && a->rnr_retry == 7 && b->rnr_retry == 7 && once_in(sim, 2))
		a->timeout = b->timeout = 0; /* no timeout: nothing can fail */
}

/* Too small, so that it may overrun. */
static void spoil_cq(struct sim *sim, struct sim_cq *cq)
{
	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *qp = &sim->qps[i];

		if (qp->recv_cq == cq && !qp->rq->qp)
			return; /* it would lose receives of others */
		if ((qp->send_cq == cq || qp->recv_cq == cq) && !qp->peer->timeout)
			return; /* its peer would retry for ever */
	}
	cq->need = (cq->need + 3) / 4;
	cq->may_overrun = true;
	cq->solicited_only = false;
	sim->stats.faults++;
}

/* Room for all entries that can wait: of what is posted and not yet polled. */
static void size_cqs(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		qp->send_cq->need += qp->cap.max_send_wr;
		qp->recv_cq->need += qp->rq->cap;
	}
	for (unsigned i = 0; i < sim->num_hosts; i++)
		for (unsigned c = 0; c < sim->hosts[i].num_cq; c++)
			sim->hosts[i].cqs[c].need += sim->hosts[i].cqs[c].need ? 0 : 1;
	if (once_in(sim, 60))
		spoil_cq(sim, &sim->hosts[0].cqs[0]);
}

/* A timeout may be that long, whatever the QP's attribute is: the first round trip that was measured may be one of a
 * packet that was lost many times (src/engine/ack_timer.c). */
#define FAR_MOST_NS (3200 * MS)

/* A program may make no progress for as long as its slowest QP needs to give up, once for each packet of a message. */
static void set_patience(struct sim *sim)
{
	uint64_t patience = 5000 * MS;

	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *qp = &sim->qps[i];
		uint64_t timeout_ns = 4 * 4096ull << qp->timeout;
		uint64_t give_up = (qp->retry_cnt + 2) * (timeout_ns < FAR_MOST_NS ? FAR_MOST_NS : timeout_ns);

		patience += (give_up + 1000 * MS) * (qp->max_len / qp->mtu + 8) / 4;
	}
	sim->patience_ns = patience;
}

void sim_program_draw(struct sim *sim)
{
	bool ipv6 = once_in(sim, 2);
	unsigned pairs = once_in(sim, 2) ? 1 : draw(sim, 1, SIM_MAX_PAIRS);

	sim->num_qps = sim->num_rqs = sim->num_actions = 0;
	memset(&sim->counter, 0, sizeof(sim->counter));
	sim->num_hosts = once_in(sim, 4) ? SIM_MAX_HOSTS : 2;
	sim->big = pairs == 1 && once_in(sim, sim->attacked ? 4 : 64); /* much is outstanding then */
	sim->watch = !sim->big && once_in(sim, 5) && !sim->mixed;
	sim_net_draw(sim);
	sim_forger_draw(sim);
	sim->retry_legal = once_in(sim, 12);
	for (unsigned i = 0; i < sim->num_hosts; i++)
		draw_host(sim, &sim->hosts[i], i, ipv6);
	while (pairs--)
		draw_pair(sim);
	sim_recvs_draw(sim);
	size_cqs(sim);
	set_patience(sim);
	sim->progress_at = sim->now;
}

/* ---- building it ---- */

static void setup_host(struct sim *sim, struct sim_host *host)
{
	sim_check(sim, !SIM_PRESSED(sim, (host->engine = roci_engine_create()) ? 0 : -ENOMEM), "roci_engine_create()");
	sim_check(sim, roci_engine_deadline(host->engine) == ROCI_NEVER, "a new engine has a deadline");
	for (unsigned i = 0; i < host->num_cq; i++) {
		struct sim_cq *cq = &host->cqs[i];
		int err = SIM_PRESSED(sim, roci_cq_create(host->engine, cq->need, cq, &cq->cq));

		sim_check(sim, !err, "roci_cq_create(%u): %d", cq->need, err);
		sim_check(sim, roci_cq_capacity(cq->cq) >= cq->need, "the CQ is smaller than was asked for");
		if (cq->mode == SIM_POLL_EVENT || cq->solicited_only) {
			cq->armed = true;
			roci_cq_arm(cq->cq, cq->mode != SIM_POLL_EVENT);
		}
	}
}

static void setup_mr(struct sim *sim, struct sim_mr *mr)
{
	struct roci_mr_attr attr = {.pd = mr->pd,
				    .key = mr->key,
				    .base = mr->host->mem + mr->off,
				    .iova = mr->iova,
				    .len = mr->len,
				    .access = mr->access};
	int err = SIM_PRESSED(sim, roci_mr_create(mr->host->engine, &attr, &mr->mr));

	sim_check(sim, !err, "roci_mr_create(): %d", err);
}

static void setup_qp(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_init init = {.qpn = qp->qpn,
				    .secret = sim->far ? 0x5ec0000000000000 + qp->qpn : 0,
				    .type = qp->type,
				    .pd = qp->pd,
				    .send_cq = qp->send_cq->cq,
				    .recv_cq = qp->recv_cq->cq,
				    .srq = qp->rq->srq,
				    .cap = qp->cap,
				    .sq_sig_all = qp->sq_sig_all,
				    .user = qp};
	int err = SIM_PRESSED(sim, roci_qp_create(qp->host->engine, &init, &qp->qp));

	sim_check(sim, !err, "roci_qp_create(): %d", err);
	sim_check(sim,
		  init.cap.max_send_wr >= qp->cap.max_send_wr && init.cap.max_send_sge >= qp->cap.max_send_sge &&
			  init.cap.max_inline >= qp->cap.max_inline,
		  "roci_qp_create() granted less than was asked for");
	for (unsigned i = 0; i < qp->num_mw; i++) {
		struct sim_mw *mw = &qp->mws[i];

		err = SIM_PRESSED(sim,
				  roci_mw_create(qp->peer->host->engine, qp->peer->pd, mw->type, mw->key, &mw->mw));
		sim_check(sim, !err, "roci_mw_create(): %d", err);
	}
}

static void check_query(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_attr attr;
	struct roci_qp_cap cap;

	roci_qp_query(qp->qp, &attr, &cap);
	sim_check(sim, attr.state == ROCI_QPS_RTR && attr.cur_state == ROCI_QPS_RTR, "query: state");
	sim_check(sim, cap.max_send_wr >= qp->cap.max_send_wr && cap.max_send_sge >= qp->cap.max_send_sge,
		  "query: capabilities");
	if (qp->type == ROCI_QPT_UD)
		return;
	sim_check(sim,
		  attr.dest_qpn == qp->peer->qpn && attr.path_mtu == qp->mtu_num && attr.rq_psn == qp->peer->sq_psn &&
			  attr.access == qp->access,
		  "query: attributes");
}

void sim_program_setup(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_hosts; i++)
		setup_host(sim, &sim->hosts[i]);
	if (sim->rings)
		sim_rings_setup(sim);
	for (unsigned i = 0; i < sim->num_mrs; i++)
		if (sim->mrs[i].len)
			setup_mr(sim, &sim->mrs[i]);
	for (unsigned i = 0; i < sim->num_rqs; i++) {
		struct sim_rq *rq = &sim->rqs[i];
		int err = 0;

		if (!rq->qp)
			err = SIM_PRESSED(
				sim, roci_srq_create(rq->host->engine, rq->pd, rq->cap, rq->max_sge, rq, &rq->srq));
		sim_check(sim, !err, "roci_srq_create(): %d", err);
	}
	for (unsigned i = 0; i < sim->num_qps; i++)
		setup_qp(sim, &sim->qps[i]);
	for (unsigned i = 0; sim->earlier && i < sim->num_qps; i += 2)
		sim_live_earlier(sim, &sim->qps[i]);
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		sim_live_before(sim, qp);
		sim_connect(sim, qp);
		check_query(sim, qp);
		if (!qp->late)
			sim_ready_to_send(sim, qp);
	}
	sim_monitor_setup(sim);
}

/* Destroys everything in the order that verbs demands; nothing may be busy. */
void sim_program_teardown(struct sim *sim)
{
	sim_pressure_by_chance(false);
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		for (unsigned m = 0; m < qp->num_mw; m++)
			sim_check(sim, !roci_mw_destroy(qp->mws[m].mw), "roci_mw_destroy() failed");
		if (qp->qp)
			roci_qp_destroy(qp->qp);
		qp->qp = NULL;
	}
	for (unsigned i = 0; i < sim->num_rqs; i++)
		if (sim->rqs[i].srq)
			sim_check(sim, !roci_srq_destroy(sim->rqs[i].srq), "roci_srq_destroy() failed");
	for (unsigned i = 0; i < sim->num_mrs; i++)
		if (sim->mrs[i].mr)
			sim_check(sim, !roci_mr_destroy(sim->mrs[i].mr), "roci_mr_destroy() failed");
	for (unsigned i = 0; i < sim->num_hosts; i++) {
		struct sim_host *host = &sim->hosts[i];

		for (unsigned c = 0; c < host->num_cq; c++)
			sim_check(sim, !roci_cq_destroy(host->cqs[c].cq), "roci_cq_destroy() failed");
		sim_check(sim, roci_engine_deadline(host->engine) == ROCI_NEVER, "an empty engine has a deadline");
		roci_engine_destroy(host->engine);
	}
	sim_pressure_check(sim);
}
