/* SPDX-License-Identifier: BSD-2-Clause */
/* One host: the loop around an engine, as src/device runs it, and the application's polling. */
#include "sim.h"

#include "engine/cq.h"
#include "icrc_difference.h"
#include "wire/gid.h"

#define MAX_BATCHES 100000 /* without time passing */
#define MAX_SPINS   1000

void sim_host_touch(struct sim_host *host)
{
	struct sim *sim = host->sim;

	if (!host->lag_ns) {
		host->dirty = true;
		return;
	}
	if (host->pump_scheduled)
		return;
	host->pump_scheduled = true;
	sim_schedule(sim, sim->now + rng_below(&sim->app, host->lag_ns), SIM_EV_PUMP, host);
}

static void send_packets(struct sim_host *host, const struct roci_tx_batch *batch)
{
	struct sim *sim = host->sim;

	sim_check(sim, batch->span_count <= ROCI_TX_SPANS, "%u spans in a batch", batch->span_count);
	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *tx = &batch->packets[i];

		sim_check(sim, tx->first_span + tx->span_count <= batch->span_count, "packet's spans out of range");
		sim_check(sim, !tx->soft_roce || tx->header[0] == ROCI_OP_FLUSH,
			  "packet with opcode 0x%02x is to be sealed like a FLUSH of Soft-RoCE", tx->header[0]);
		if (tx->av->local)
			sim_ring_send(sim, host, tx, batch->spans);
		else
			sim_net_send(sim, host, tx, batch->spans);
	}
}

bool sim_host_send_promptly(struct sim_host *host, struct roci_qp *qp, const struct roci_send_wr *wr)
{
	struct roci_tx_batch *batch = &host->sim->batch;

	return !roci_qp_check_send(qp, wr) && roci_qp_send_promptly(qp, sim_host_now(host), wr, batch);
}

void sim_host_sent_promptly(struct sim_host *host)
{
	send_packets(host, &host->sim->batch);
}

static unsigned send_batch(struct sim_host *host)
{
	struct sim *sim = host->sim;
	struct roci_tx_batch *batch = &sim->batch;
	unsigned n;

	batch->count = batch->span_count = 0;
	n = roci_engine_tx(host->engine, sim_host_now(host), batch);
	sim_check(sim, n == batch->count && n <= ROCI_TX_BATCH, "roci_engine_tx() returned %u, count is %u", n,
		  batch->count);
	send_packets(host, batch);
	/* A driver may call it also when there was nothing to send. */
	if (n || rng_once_in(&sim->app, 8))
		roci_engine_tx_done(host->engine, sim_host_now(host));
	return n;
}

static void schedule_timer(struct sim_host *host)
{
	struct sim *sim = host->sim;
	uint64_t at = roci_engine_deadline(host->engine);

	if (at == ROCI_NEVER)
		return;
	at = sim_host_when(host, at);
	if (host->timer_at && host->timer_at <= at && host->timer_at >= sim->now)
		return; /* it comes early, which is allowed */
	host->timer_at = at;
	if (host->lag_ns)
		at += rng_below(&sim->app, host->lag_ns);
	sim_schedule_timer(sim, at, host);
}

/* A deadline in the future is a promise that nothing happens before. */
static void check_deadline(struct sim_host *host)
{
	struct sim *sim = host->sim;
	uint64_t deadline = roci_engine_deadline(host->engine);
	struct roci_engine_stats before = *roci_engine_stats(host->engine);

	if (sim_host_is_back(host) || deadline <= sim_host_now(host) || !rng_once_in(&sim->app, 16))
		return;
	roci_engine_timers(host->engine, sim_host_now(host));
	sim_check(sim, roci_engine_tx(host->engine, sim_host_now(host), &sim->batch) == 0,
		  "host %u: timers() had packets to send before its deadline", host->id);
	sim_check(sim, before.timeouts == roci_engine_stats(host->engine)->timeouts,
		  "host %u: a timeout before the deadline", host->id);
	sim_check(sim,
		  roci_engine_deadline(host->engine) >= deadline || deadline == ROCI_NEVER ||
			  roci_engine_deadline(host->engine) > sim_host_now(host),
		  "host %u: timers() without work brought the deadline to now", host->id);
}

bool sim_cq_empty(const struct sim_cq *cq)
{
	return !roci_cq_waits(cq->cq, roci_cq_tail(cq->cq) - 1);
}

static void schedule_poll(struct sim_cq *cq)
{
	struct sim *sim = cq->host->sim;

	if (cq->poll_scheduled || !cq->cq || sim_cq_empty(cq))
		return;
	cq->poll_scheduled = true;
	sim_schedule(sim, sim->now + rng_below(&sim->app, cq->lag_ns), SIM_EV_POLL, cq);
}

void sim_host_events(struct sim_host *host)
{
	struct roci_event ev;

	while (roci_engine_next_event(host->engine, &ev)) {
		struct sim_cq *cq = ev.user;

		if (ev.kind == ROCI_EV_ASYNC) {
			sim_check_async(host->sim, &ev);
			continue;
		}
		sim_check(host->sim, cq->armed, "completion event of a CQ that was not armed");
		cq->armed = false;
		cq->event_seen = true;
		if (cq->mode == SIM_POLL_EVENT && !cq->poll_scheduled) {
			cq->poll_scheduled = true;
			sim_schedule(host->sim, host->sim->now + rng_below(&host->sim->app, cq->lag_ns + 1),
				     SIM_EV_POLL, cq);
		}
	}
}

void sim_host_discard(struct sim_host *host)
{
	struct roci_event ev;

	while (roci_engine_next_event(host->engine, &ev)) {
		struct sim_cq *cq = ev.user;

		if (ev.kind == ROCI_EV_COMPLETION)
			roci_cq_arm(cq->cq, cq->mode != SIM_POLL_EVENT);
	}
}

void sim_host_pump(struct sim_host *host)
{
	struct sim *sim = host->sim;
	unsigned batches = 0;

	host->dirty = false;
	while (send_batch(host))
		sim_check(sim, ++batches < MAX_BATCHES, "host %u never stops sending", host->id);
	check_deadline(host);
	sim_host_events(host);
	schedule_timer(host);
	for (unsigned i = 0; i < host->num_cq; i++) {
		if (host->cqs[i].mode == SIM_POLL_EAGER)
			sim_cq_poll(&host->cqs[i]);
		else if (host->cqs[i].mode == SIM_POLL_LAZY)
			schedule_poll(&host->cqs[i]);
	}
}

void sim_host_timer(struct sim_host *host, unsigned generation)
{
	struct sim *sim = host->sim;

	if (generation != host->timer_generation)
		return; /* another one was set since */
	host->timer_at = 0;
	if (host->spin_time != sim->now) {
		host->spin_time = sim->now;
		host->spins = 0;
	}
	sim_check(sim, ++host->spins < MAX_SPINS, "host %u: the deadline stays at now", host->id);
	roci_engine_timers(host->engine, sim_host_now(host));
	host->dirty = true;
}

/* What looks like a black hole makes packets shorter, and the model does not know which. Those before were right. */
static void spoil(struct sim *sim)
{
	sim->spoiled = true;
	longjmp(sim->fail, 1);
}

/* The receiving side of a link: parses, checks the ICRC, and calls the engine. */
void sim_host_receive(struct sim_host *host, struct sim_packet *p)
{
	struct sim *sim = host->sim;
	struct roci_flow flow = {.src_port = p->src_port, .dst_port = ROCI_UDP_PORT};
	struct roci_rx rx;
	uint32_t difference;

	memset(&rx, 0, sizeof(rx));
	if (p->len < ROCI_MIN_PACKET_BYTES || roci_packet_parse(&rx.pkt, p->bytes, p->len) != ROCI_PARSE_OK) {
		sim_check(sim, p->damaged || p->stray, "an intact packet does not parse");
		return;
	}
	memcpy(flow.src, p->sgid, 16);
	memcpy(flow.dst, p->dgid, 16);
	difference = icrc_difference(&flow, p->ip_id, p->bytes, p->len);
	if (difference) {
		sim_check(sim, p->damaged, "the ICRC refuses an intact packet");
		return;
	}
	if (roci_gid_is_ipv4(p->sgid) && rng_once_in(&sim->app, 16))
		sim_check(sim, roci_icrc_ipv4_id(icrc_difference(&flow, 0, p->bytes, p->len), p->len) == p->ip_id,
			  "the IPv4 identification was not found");
	memcpy(rx.sgid, p->sgid, 16);
	memcpy(rx.dgid, p->dgid, 16);
	rx.src_port = p->src_port;
	rx.traffic_class = p->traffic_class;
	rx.hop_limit = p->hop_limit;
	rx.congested = sim->net.ce && rng_once_in(&sim->app, 64);
	if (!p->stray)
		sim_monitor_delivered(sim, host, &rx.pkt);
	roci_engine_rx(host->engine, sim_host_now(host), &rx);
	if (sim->longer && roci_engine_stats(host->engine)->black_holes)
		spoil(sim);
	if (sim->watch)
		sim_model_watch(sim, host);
	if (sim->attacked && !p->stray)
		sim_attack(sim, host, &rx);
	sim_host_touch(host);
}

/* With solicited_only, an event comes if and only if a solicited or failed entry does. */
static void check_solicited(struct sim_cq *cq)
{
	struct sim *sim = cq->host->sim;

	sim_check(sim, !cq->wanted_seen || cq->event_seen || cq->unsure, "no event for a solicited completion");
	sim_check(sim, cq->wanted_seen || !cq->event_seen || cq->unsure, "an event although nothing solicited came");
	cq->wanted_seen = cq->event_seen = cq->unsure = false;
	if (!cq->armed) {
		cq->armed = true;
		roci_cq_arm(cq->cq, true);
	}
}

static void maybe_resize(struct sim_cq *cq)
{
	struct sim *sim = cq->host->sim;
	unsigned want = cq->need + rng_below(&sim->app, 40);
	int err;

	if (cq->may_overrun || !rng_once_in(&sim->app, 128))
		return;
	err = SIM_PRESSED(sim, roci_cq_resize(cq->cq, want));
	sim_check(sim, !err, "roci_cq_resize(%u): %d", want, err);
	sim_check(sim, roci_cq_capacity(cq->cq) >= want, "the CQ is smaller than was asked for");
}

void sim_cq_poll(struct sim_cq *cq)
{
	struct sim *sim = cq->host->sim;
	struct roci_cqe cqes[16];
	unsigned n, total = 0, max;

	cq->poll_scheduled = false;
	if (cq->dead)
		return;
	maybe_resize(cq);
	if (cq->mode != SIM_POLL_EVENT)
		sim_host_events(cq->host);
again:
	do {
		max = rng_range(&sim->app, 1, 16);
		n = roci_cq_poll(cq->cq, cqes, max);
		sim_check(sim, n <= max, "roci_cq_poll() returned %u of %u", n, max);
		if (roci_cq_overrun(cq->cq)) {
			sim_check(sim, cq->may_overrun, "CQ overrun");
			sim_host_touch(cq->host); /* for the event that says so */
			return;
		}
		for (unsigned i = 0; i < n; i++)
			sim_check_cqe(cq, &cqes[i]);
		total += n;
	} while (n);
	sim_check(sim, sim_cq_empty(cq), "roci_cq_poll() returned 0 but the CQ is not empty");
	if (total) {
		sim->kick = true;
		sim->progress_at = sim->now;
	}
	if (cq->mode == SIM_POLL_EVENT && !cq->armed) {
		cq->armed = true;
		roci_cq_arm(cq->cq, false);
		goto again; /* entries that came before the CQ was armed */
	}
	if (cq->solicited_only)
		check_solicited(cq);
}
