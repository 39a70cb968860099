/* SPDX-License-Identifier: BSD-2-Clause */
/* Async events, and what must hold when nothing moves any more. */
#include "sim.h"

void sim_cq_died(struct sim_cq *cq)
{
	struct sim *sim = cq->host->sim;

	cq->dead = true;
	sim_check(sim, roci_cq_overrun(cq->cq), "CQ error event, but no overrun");
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		if (qp->send_cq != cq && qp->recv_cq != cq)
			continue;
		qp->gone = qp->moved_to_err = true;
		qp->recv_lost = true;
	}
}

void sim_check_async(struct sim *sim, const struct roci_event *ev)
{
	struct sim_qp *qp = ev->user;
	struct sim_rq *rq = ev->user;
	struct sim_cq *cq = ev->user;

	sim_cover_event(sim, ev->type);
	switch (ev->type) {
	case ROCI_EVENT_SRQ_LIMIT_REACHED:
		sim_check(sim, rq->limit_armed, "SRQ limit event that was not asked for");
		rq->limit_armed = false;
		return;
	case ROCI_EVENT_CQ_ERR:
		sim_check(sim, cq->may_overrun && !cq->dead, "CQ error event");
		sim_cq_died(cq);
		return;
	case ROCI_EVENT_SQ_DRAINED:
		sim_check(sim, qp->sq_drained_wanted && !qp->sq_drained_seen, "QP %u: SQ drained event not asked for",
			  qp->id);
		qp->sq_drained_seen = true;
		return;
	case ROCI_EVENT_QP_LAST_WQE_REACHED:
		sim_check(sim, qp->rq->srq && !qp->last_wqe_seen && sim_in_error(qp), "QP %u: last WQE event", qp->id);
		qp->last_wqe_seen = qp->error_unexplained = true;
		return;
	case ROCI_EVENT_COMM_EST:
		sim_check(sim, qp->was_late, "QP %u: communication established event in RTS", qp->id);
		return;
	default: qp->error_unexplained = true;
	}
}

/* Nothing was lost, and neither side made a mistake. */
static bool undisturbed(const struct sim *sim, const struct sim_qp *qp)
{
	if (qp->type == ROCI_QPT_UD && sim->net.dup)
		return false; /* a duplicate takes a receive */
	return !sim->net.lossy && !sim->net.reorder && qp->rq->never_rnr && !qp->rq->shortened && !sim_err_legit(qp) &&
	       !qp->gone && !sim_err_legit(qp->peer) && !qp->peer->gone;
}

static void check_arrivals(struct sim *sim, struct sim_qp *qp)
{
	struct sim_qp *from = qp->peer;
	bool all = undisturbed(sim, qp);

	for (unsigned i = 0; i < from->posted; i++) {
		struct sim_wr *wr = &from->wrs[i];

		if (all && from->type == ROCI_QPT_UC && !wr->executed &&
		    (wr->opcode == ROCI_WR_RDMA_WRITE || wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM))
			sim_model_execute_one(from, wr);
		if (!wr->consumes_recv || wr->deliveries || qp->purged || qp->recv_lost)
			continue;
		if (wr->fault == SIM_FAULT_INV_KEY && wr->ok && !qp->gone) {
			sim_check(sim, sim_in_error(qp) && (qp->recv_failed || qp->recv_flushed),
				  "QP %u: a bad key to invalidate is not fatal", qp->id);
			continue;
		}
		sim_check(sim, !(wr->ok && from->type == ROCI_QPT_RC), "QP %u WR %u succeeded but was not received",
			  from->id, i);
		sim_check(sim, !all, "QP %u WR %u was lost on a network that loses nothing", from->id, i);
	}
}

static void check_state(struct sim *sim, const struct sim_qp *qp)
{
	enum roci_qp_state state = roci_qp_state(qp->qp);
	const struct sim_qp *peer = qp->peer;
	bool refused = peer->failed && peer->failed_wr == peer->fault_wr && peer->fault < SIM_FAULT_SEND_LKEY &&
		       (peer->wrs[peer->failed_wr].must & BIT(peer->failed_status));

	if (qp->failed || qp->moved_to_err)
		sim_check(sim, state == ROCI_QPS_ERR || (qp->type != ROCI_QPT_RC && state == ROCI_QPS_SQE),
			  "QP %u failed but is in state %d", qp->id, state);
	else if (!sim_err_legit(qp))
		sim_check(sim, state == ROCI_QPS_RTS, "QP %u is in state %d for no reason", qp->id, state);
	/* IBTA 9.9.3: class C errors take the responder to ERR. */
	sim_check(sim, !refused || state == ROCI_QPS_ERR, "QP %u refused a request but is in state %d", qp->id, state);
}

static void check_qp(struct sim *sim, struct sim_qp *qp)
{
	/* Unless it had been reset before. */
	sim_check(sim, !qp->recv_lost || sim_in_error(qp) || roci_qp_state(qp->qp) == ROCI_QPS_RESET,
		  "QP %u lives on though its CQ overran", qp->id);
	if (qp->gone)
		return;
	sim_check(sim, !qp->error_unexplained || sim_err_legit(qp), "QP %u is in error for no reason", qp->id);
	for (; qp->done < qp->posted; qp->done++) {
		struct sim_wr *wr = &qp->wrs[qp->done];

		sim_check(sim, !qp->failed && !wr->signaled, "QP %u hangs: WR %u (opcode %d, %u bytes) never completed",
			  qp->id, wr->index, wr->opcode, wr->len);
		sim_succeed(qp, wr);
	}
	sim_check(sim, sim_app_stuck(qp), "QP %u hangs: WR %u could not be posted", qp->id, qp->posted);
	sim_check(sim, !qp->sq_drained_seen || qp->sq_drained_wanted, "QP %u: drained event", qp->id);
	check_state(sim, qp);
}

static void check_idle(struct sim *sim, struct sim_host *host)
{
	sim_check(sim, roci_engine_tx(host->engine, sim_host_now(host), &sim->batch) == 0,
		  "idle host %u has packets to send", host->id);
	sim_check(sim, roci_engine_deadline(host->engine) == ROCI_NEVER, "idle host %u has a deadline", host->id);
	for (unsigned c = 0; c < host->num_cq; c++)
		sim_check(sim, host->cqs[c].dead || sim_cq_empty(&host->cqs[c]),
			  "host %u: CQ %u is not empty, but no event came", host->id, c);
}

/* Where each packet arrived within a few milliseconds and no QP stopped, there is no reason for a probe or a timeout:
 * packets that overtake others are kept until their turn. A forged packet with the peer's port is answered as a gap,
 * and one from a changed port may have to come again. */
static void check_guesses(struct sim *sim)
{
	const struct sim_net *net = &sim->net;

	if (net->lossy || net->forge || sim->attacked || sim->earlier || net->move || net->ns_per_kb ||
	    net->delay_ns > MS / 2 || sim->retry_legal || sim->big)
		return;
	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *qp = &sim->qps[i];

		if (qp->gone || qp->was_late || qp->repathed || qp->fault || sim_err_legit(qp) || sim_in_error(qp))
			return;
	}
	for (unsigned i = 0; i < sim->num_hosts; i++) {
		const struct roci_engine_stats *st = roci_engine_stats(sim->hosts[i].engine);

		sim_check(sim, !st->timeouts && !st->probes,
			  "host %u took what was only late for lost: %llu timeouts, %llu probes", i,
			  (unsigned long long)st->timeouts, (unsigned long long)st->probes);
	}
}

void sim_check_quiet(struct sim *sim)
{
	check_guesses(sim);
	for (unsigned i = 0; i < sim->num_hosts; i++)
		check_idle(sim, &sim->hosts[i]);
	for (unsigned i = 0; i < sim->num_qps; i++)
		check_qp(sim, &sim->qps[i]);
	for (unsigned i = 0; i < sim->num_qps; i++)
		check_arrivals(sim, &sim->qps[i]);
}

void sim_check_flushed(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_hosts; i++)
		check_idle(sim, &sim->hosts[i]);
	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *qp = &sim->qps[i];

		if (qp->gone)
			continue;
		sim_check(sim, qp->rq->srq || qp->rq->polled == qp->rq->posted,
			  "QP %u in error: %u receives posted, %u completed", qp->id, qp->rq->posted, qp->rq->polled);
		sim_check(sim, !qp->rq->srq || qp->last_wqe_seen, "QP %u in error: no last WQE event", qp->id);
	}
}
