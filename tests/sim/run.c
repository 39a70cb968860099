/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one program from its seed to its end. */
#include "sim.h"

#define MAX_EVENTS 20000000u

static void handle(struct sim *sim, struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_PACKET: sim_host_receive(ev->obj, ev->packet); break;
	case SIM_EV_TIMER: sim_host_timer(ev->obj, ev->from); break;
	case SIM_EV_PUMP:
		((struct sim_host *)ev->obj)->pump_scheduled = false;
		sim_host_pump(ev->obj);
		break;
	case SIM_EV_SEND: {
		struct sim_qp *qp = ev->obj;

		qp->send_scheduled = false;
		sim_app_send(sim, qp);
		break;
	}
	case SIM_EV_RECV: {
		struct sim_rq *rq = ev->obj;

		rq->scheduled = false;
		sim->progress_at = sim->now;
		sim_app_recv(sim, rq);
		break;
	}
	case SIM_EV_CLOCK: sim_clock_step(sim, ev->obj); break;
	case SIM_EV_CLOCK_GOES: sim_clock_goes(sim, ev->obj); break;
	case SIM_EV_RING: sim_ring_look(sim, ev->obj); break;
	case SIM_EV_POLL: sim_cq_poll(ev->obj); break;
	case SIM_EV_ACTION: sim_app_action(sim, ev->obj); break;
	}
}

static void settle(struct sim *sim)
{
	bool again;

	do {
		again = false;
		for (unsigned i = 0; i < sim->num_hosts; i++) {
			if (sim->hosts[i].dirty) {
				sim_host_pump(&sim->hosts[i]);
				again = true;
			}
		}
		if (sim->kick) {
			sim->kick = false;
			sim_app_run(sim);
			again = true;
		}
	} while (again);
}

/* Until nothing is in flight, no timer runs and no host has anything to do. */
static void run_until_quiet(struct sim *sim)
{
	unsigned events = 0;
	struct sim_event *ev;

	settle(sim);
	while ((ev = sim_next_event(sim))) {
		sim->event = ev;
		handle(sim, ev);
		sim_cover_states(sim);
		sim->event = NULL;
		sim_event_free(sim, ev);
		settle(sim);
		sim_check(sim, ++events < MAX_EVENTS, "never comes to rest: %u events", events);
		sim_check(sim, sim->now - sim->progress_at < sim->patience_ns,
			  "hang: no completion for %llu ms of virtual time",
			  (unsigned long long)((sim->now - sim->progress_at) / MS));
	}
}

static void flush_all(struct sim *sim)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_ERR};

	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		if (qp->gone)
			continue;
		qp->moved_to_err = true;
		sim_check(sim, !sim_modify(sim, qp, &attr, ROCI_QP_STATE), "QP %u cannot go to ERR", qp->id);
		sim_host_touch(qp->host);
	}
	run_until_quiet(sim);
	sim_check_flushed(sim);
}

static void collect(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_hosts; i++) {
		const struct roci_engine_stats *st = roci_engine_stats(sim->hosts[i].engine);

		sim->stats.retransmits += st->retransmits;
		sim->stats.timeouts += st->timeouts;
	}
}

static void describe(struct sim *sim)
{
	const struct sim_net *net = &sim->net;

	sim_trace(sim, "network: loss %u, dup %u, reorder %u, corrupt %u, burst %u, CE %u per mille; delay %llu us",
		  net->loss, net->dup, net->reorder, net->corrupt, net->burst, net->ce,
		  (unsigned long long)(net->delay_ns / US));
	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *qp = &sim->qps[i];

		sim_trace(sim,
			  "QP %u: type %d, QPN %x on host %u, peer %u, MTU %u, PSN %x, %u WRs, timeout %u, retry %u, "
			  "rnr_retry %u, max_rd %u, %s",
			  i, qp->type, qp->qpn, qp->host->id, qp->peer->id, qp->mtu, qp->sq_psn, qp->num_wr,
			  qp->timeout, qp->retry_cnt, qp->rnr_retry, qp->max_rd, qp->rq->qp ? "own RQ" : "SRQ");
	}
}

/* In the middle of a program. What the next one does not fill must look as it should. */
static void end_early(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_hosts; i++) {
		struct sim_host *host = &sim->hosts[i];

		roci_engine_destroy(host->engine);
		memcpy(host->shadow, host->mem, host->used + 32);
	}
}

bool sim_run(struct sim *sim, uint64_t seed)
{
	sim->seed = seed;
	sim->flushes = seed % 5 == 0 || seed % 13 == 3;
	sim->far = seed % 7 == 3;
	sim->walks = seed % 13 == 2;
	sim->mixed = seed % 13 == 3;
	sim->earlier = seed % 13 == 7;
	sim->kick = false;
	sim->stats.programs++;
	rng_init(&sim->plan, seed, 1);
	rng_init(&sim->app, seed, 2);
	rng_init(&sim->netrng, seed, 3);
	rng_init(&sim->extra, seed, 4);
	rng_init(&sim->attacker, seed, 6);
	rng_init(&sim->more, seed, 7);
	rng_init(&sim->memory_rng, seed, 8);
	rng_init(&sim->clocks_rng, seed, 9);
	sim_pressure_reset(sim);
	sim_clock_reset(sim);
	sim_memory_reset(sim);
	sim->spoiled = false;
	sim->event = NULL;
	if (setjmp(sim->fail)) {
		sim_pressure_by_chance(false);
		if (sim->event)
			sim_event_free(sim, sim->event);
		sim->stats.failed += !sim->spoiled;
		if (sim->spoiled)
			end_early(sim);
		return sim->spoiled;
	}
	sim_program_draw(sim);
	describe(sim);
	sim_program_setup(sim);
	sim_app_start(sim);
	run_until_quiet(sim);
	sim_check_quiet(sim);
	sim_model_final(sim);
	collect(sim);
	flush_all(sim);
	sim_program_teardown(sim);
	return true;
}
