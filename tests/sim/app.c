/* SPDX-License-Identifier: BSD-2-Clause */
/* The application: posts the work requests and receives that were drawn, and makes the mistakes that were drawn. */
#include <errno.h>

#include "sim.h"

static void schedule_send(struct sim *sim, struct sim_qp *qp, uint64_t delay)
{
	qp->send_scheduled = true;
	sim_schedule(sim, sim->now + delay, SIM_EV_SEND, qp);
}

void sim_app_start(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_rqs; i++) {
		struct sim_rq *rq = &sim->rqs[i];
		bool asks_limit = rq->srq && rq->cap > 2 && rng_once_in(&sim->app, 2);

		if (rq->early)
			sim_app_recv(sim, rq);
		else if (rq->planned)
			sim_schedule(sim, sim->now + rng_below(&sim->app, rq->gap_ns), SIM_EV_RECV, rq);
		rq->scheduled = !rq->early && rq->planned;
		if (asks_limit && rq->posted > 2) {
			sim_check(sim, !SIM_PRESSED(sim, roci_srq_modify(rq->srq, 0, 2)), "roci_srq_modify() failed");
			rq->limit_armed = true;
		}
	}
	for (unsigned i = 0; i < sim->num_qps; i++)
		schedule_send(sim, &sim->qps[i], rng_below(&sim->app, 100 * US));
	for (unsigned i = 0; i < sim->num_hosts; i++)
		sim->hosts[i].dirty = true;
	sim_clocks_start(sim);
	sim_pressure_by_chance(true);
	for (unsigned i = 0; i < sim->num_actions; i++) {
		struct sim_action *act = &sim->actions[i];

		if (act->trigger)
			continue;
		act->scheduled = true;
		sim_schedule(sim, sim->now + act->delay_ns, SIM_EV_ACTION, act);
	}
}

/* ---- receives ---- */

static void post_recv(struct sim *sim, struct sim_rq *rq)
{
	struct sim_recv *recv = &rq->recvs[rq->posted];
	struct roci_sge sges[SIM_MAX_SGE];
	struct roci_recv_wr wr = {
		.wr_id = 1ull << 63 | (uint64_t)rq->id << 32 | rq->posted, .sges = sges, .num_sge = recv->num_sge};
	int err;

	for (unsigned i = 0; i < recv->num_sge; i++) {
		const struct sim_piece *p = &recv->pieces[i];

		sges[i] = (struct roci_sge){sim_mr_addr(p->mr, p->off), p->len, p->mr->key ^ recv->bad_lkey};
	}
	err = rq->srq ? roci_srq_post(rq->srq, &wr) : roci_qp_post_recv(rq->qp->qp, &wr);
	sim_check(sim, !err, "posting receive %u of RQ %u: %d", rq->posted, rq->id, err);
	recv->posted = true;
	rq->posted++;
	sim->stats.receives++;
	sim_host_touch(rq->host);
}

static bool recv_possible(const struct sim_rq *rq)
{
	return rq->posted < rq->planned && rq->posted - rq->polled < rq->cap && !(rq->qp && rq->qp->gone);
}

/* A full RQ refuses a receive, and stays as it is. */
static void post_too_much(struct sim *sim, struct sim_rq *rq)
{
	struct roci_recv_wr wr = {.wr_id = 1ull << 62, .num_sge = ROCI_MAX_SGE + 1};
	int err = rq->srq ? roci_srq_post(rq->srq, &wr) : roci_qp_post_recv(rq->qp->qp, &wr);

	sim_check(sim, err == -EINVAL, "a receive with too many SGEs: %d", err);
}

/* A shared queue may change its size at any time, but not to less than its limit. */
static void resize_shared(struct sim *sim, struct sim_rq *rq)
{
	unsigned size = rq->cap + rng_below(&sim->extra, 40), max_wr, max_sge, limit;

	sim_check(sim, !SIM_PRESSED(sim, roci_srq_modify(rq->srq, size, -1)), "roci_srq_modify() to %u failed", size);
	roci_srq_query(rq->srq, &max_wr, &max_sge, &limit);
	sim_check(sim, max_wr >= size && max_sge >= rq->max_sge, "the SRQ is smaller than was asked for");
	if (limit > 1)
		sim_check(sim, roci_srq_modify(rq->srq, limit - 1, -1) == -EINVAL, "an SRQ shrank below its limit");
}

void sim_app_recv(struct sim *sim, struct sim_rq *rq)
{
	unsigned burst = rq->early ? rq->cap : rng_range(&sim->app, 1, 3);

	while (burst-- && recv_possible(rq))
		post_recv(sim, rq);
	if (!(rq->qp && rq->qp->gone) && rng_once_in(&sim->app, 32))
		post_too_much(sim, rq);
	if (rq->srq && rng_once_in(&sim->extra, 8))
		resize_shared(sim, rq);
	if (!rq->early && recv_possible(rq) && !rq->scheduled) {
		rq->scheduled = true;
		sim_schedule(sim, sim->now + rng_below(&sim->app, rq->gap_ns), SIM_EV_RECV, rq);
	}
}

/* ---- sends ---- */

static void fill_sges(struct sim *sim, struct sim_qp *qp, struct sim_wr *wr, struct roci_sge *sges)
{
	for (unsigned i = 0; i < wr->num_sge; i++) {
		const struct sim_piece *p = &wr->pieces[i];

		sges[i] = (struct roci_sge){sim_mr_addr(p->mr, p->off), p->len, p->mr->key};
		if (i == wr->num_sge - 1)
			sges[i].lkey ^= wr->bad_lkey;
		if (wr->flags & ROCI_SEND_INLINE)
			sges[i].addr = (uintptr_t)(qp->host->mem + p->off);
	}
	if (!(wr->flags & ROCI_SEND_INLINE))
		return;
	wr->inline_data = sim_alloc(sim, wr->len + 1);
	sim_gather(qp->host->mem, wr->pieces, wr->num_sge, wr->len, wr->inline_data);
}

/* Data that went inline belongs to the application again at once. */
static void scribble(struct sim *sim, struct sim_qp *qp, const struct sim_wr *wr)
{
	for (unsigned i = 0; i < wr->num_sge; i++) {
		const struct sim_piece *p = &wr->pieces[i];

		memset(qp->host->mem + p->off, rng_next(&sim->app), p->len);
		memcpy(qp->host->shadow + p->off, qp->host->mem + p->off, p->len);
	}
}

/* An atomic that is not aligned is refused, and nothing happens. */
static void post_misaligned(struct sim *sim, struct sim_qp *qp, struct roci_send_wr s)
{
	int err;

	s.remote_addr += rng_range(&sim->app, 1, 7);
	err = roci_qp_post_send(qp->qp, &s);
	sim_check(sim, err == -EINVAL, "posting a misaligned atomic: %d", err);
}

static void post_send(struct sim *sim, struct sim_qp *qp)
{
	struct sim_wr *wr = &qp->wrs[qp->posted];
	struct roci_sge sges[SIM_MAX_SGE];
	struct roci_av av = qp->av;
	struct roci_send_wr s = {.wr_id = (uint64_t)qp->id << 32 | wr->index,
				 .opcode = wr->opcode,
				 .flags = wr->flags,
				 .imm = wr->imm,
				 .remote_addr = wr->remote_addr,
				 .rkey = wr->rkey,
				 .compare_add = wr->compare_add,
				 .swap = wr->swap,
				 .sges = sges,
				 .num_sge = wr->num_sge,
				 .av = &av,
				 .remote_qpn = wr->ud_dest ? wr->ud_dest->qpn : 0,
				 .remote_qkey = wr->qkey};
	bool prompt;
	int err;

	fill_sges(sim, qp, wr, sges);
	memcpy(s.atomic_write_data, wr->raw, 8);
	s.flush.len = wr->flush_len;
	s.flush.feth = wr->feth;
	if (wr->signaled && !qp->sq_sig_all)
		s.flags |= ROCI_SEND_SIGNALED;
	if (wr->opcode == ROCI_WR_BIND_MW) {
		s.bind.mw = wr->mw->mw;
		s.bind.rkey = wr->bind_key;
		if (wr->bind_len) {
			struct sim_mr *mr = qp->peer->target;

			s.bind.mr = mr->mr;
			s.bind.addr = sim_mr_addr(mr, wr->bind_off);
			s.bind.len = wr->bind_len;
			s.bind.access = wr->bind_access;
		}
	}
	if (wr->fault == SIM_FAULT_MISALIGNED)
		post_misaligned(sim, qp, s);
	/* A driver need not try that first. */
	prompt = (wr->index & 3) && sim_host_send_promptly(qp->host, qp->qp, &s);
	err = prompt ? 0 : roci_qp_post_send(qp->qp, &s);
	sim_check(sim, !err, "posting work request %u (opcode %d) of QP %u: %d", wr->index, wr->opcode, qp->id, err);
	memset(&av, 0xaa, sizeof(av));
	sim_trace(sim, "QP %u posts %u: opcode %d, %u bytes, PSN +%u..%u, flags %x%s%s", qp->id, wr->index, wr->opcode,
		  wr->len, wr->psn_off, wr->psn_off + wr->packets, s.flags, wr->fault ? ", fault: " : "",
		  wr->fault ? sim_fault_str(wr->fault) : "");
	if (wr->flags & ROCI_SEND_INLINE)
		scribble(sim, qp, wr);
	wr->posted = true;
	qp->posted++;
	sim->stats.work_requests++;
	if (wr->must && wr->fault < SIM_FAULT_SEND_LKEY)
		qp->peer->peer_fault_posted = true;
	if (wr->fault == SIM_FAULT_INV_KEY)
		qp->peer->peer_fault_posted = true;
	if (prompt)
		sim_host_sent_promptly(qp->host);
	sim_host_touch(qp->host);
}

static bool depends(const struct sim_qp *qp)
{
	const struct sim_wr *wr = &qp->wrs[qp->posted];

	return wr->after_qp && !wr->after_qp->wrs[wr->after_wr].ok;
}

static bool gave_up(const struct sim_qp *qp)
{
	return qp->gone || ((qp->failed || qp->moved_to_err) && !qp->post_after_failure);
}

static bool send_possible(const struct sim_qp *qp)
{
	return !qp->late && qp->posted < qp->num_wr && !gave_up(qp) && !depends(qp) &&
	       qp->posted - qp->done < qp->cap.max_send_wr;
}

bool sim_app_stuck(const struct sim_qp *qp)
{
	const struct sim_wr *wr = &qp->wrs[qp->posted];

	if (qp->posted == qp->num_wr || gave_up(qp))
		return true;
	if (!depends(qp))
		return false;
	if (wr->after_qp->posted > wr->after_wr)
		return wr->after_qp->wrs[wr->after_wr].failed || wr->after_qp->gone;
	return sim_app_stuck(wr->after_qp);
}

static void trigger_actions(struct sim *sim, struct sim_qp *qp)
{
	for (unsigned i = 0; i < sim->num_actions; i++) {
		struct sim_action *act = &sim->actions[i];

		if (act->qp != qp || act->scheduled || act->trigger > qp->posted)
			continue;
		act->scheduled = true;
		sim_schedule(sim, sim->now + act->delay_ns, SIM_EV_ACTION, act);
	}
}

void sim_app_send(struct sim *sim, struct sim_qp *qp)
{
	unsigned burst = rng_range(&sim->app, 1, 8);

	while (burst-- && send_possible(qp)) {
		post_send(sim, qp);
		trigger_actions(sim, qp);
	}
	if (send_possible(qp))
		schedule_send(sim, qp, qp->gap_ns ? rng_below(&sim->app, qp->gap_ns) : 0);
}

/* Something completed: QPs that waited for room or for a dependency try again. */
void sim_app_run(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		if (!qp->send_scheduled && send_possible(qp))
			sim_app_send(sim, qp);
	}
	for (unsigned i = 0; i < sim->num_rqs; i++) {
		struct sim_rq *rq = &sim->rqs[i];

		if (!rq->scheduled && recv_possible(rq))
			sim_app_recv(sim, rq);
	}
}

/* ---- actions ---- */

static void modify_state(struct sim *sim, struct sim_qp *qp, enum roci_qp_state state, unsigned mask)
{
	struct roci_qp_attr attr = {.state = state, .en_sqd_async_notify = 1};
	int err = sim_modify(sim, qp, &attr, ROCI_QP_STATE | mask);

	sim_check(sim, !err, "roci_qp_modify() of QP %u to state %d: %d", qp->id, state, err);
}

/* As ibv_modify_qp() and ibv_destroy_qp() do: the QP's completions are dropped too. */
static void vanish(struct sim *sim, struct sim_qp *qp, bool destroy)
{
	qp->gone = true;
	if (destroy) {
		roci_qp_destroy(qp->qp);
		qp->qp = NULL;
	} else {
		modify_state(sim, qp, ROCI_QPS_RESET, 0);
	}
	if (destroy || rng_once_in(&sim->app, 2)) {
		qp->purged = true;
		qp->send_cq->solicited_only = qp->recv_cq->solicited_only = false;
		sim_host_events(qp->host);
		roci_cq_purge(qp->send_cq->cq, qp->qpn);
		roci_cq_purge(qp->recv_cq->cq, qp->qpn);
	}
}

static void deregister(struct sim *sim, struct sim_qp *qp)
{
	struct sim_mr *mr = qp->target;

	if (!mr->mr)
		return;
	sim_check(sim, !roci_mr_destroy(mr->mr), "roci_mr_destroy() failed");
	sim_rings_revoke(mr->host, mr->host->mem + mr->off, mr->len);
	mr->mr = NULL;
	qp->dereg = qp->peer->peer_fault_posted = true;
	for (unsigned i = 0; i < qp->num_wr; i++)
		if (qp->wrs[i].rkey == mr->key && !qp->wrs[i].ok)
			qp->wrs[i].may |= BIT(ROCI_WC_REM_ACCESS_ERR);
}

static bool names(const struct sim_wr *wr, const struct sim_mr *mr)
{
	if (wr->inline_data)
		return false;
	for (unsigned i = 0; i < wr->num_sge; i++)
		if (wr->pieces[i].mr == mr)
			return true;
	return false;
}

/* Deregisters the memory of the newest work request, which may be under way. */
static void deregister_local(struct sim *sim, struct sim_qp *qp)
{
	const struct sim_wr *newest = &qp->wrs[qp->posted - 1];
	struct sim_mr *mr = newest->num_sge ? newest->pieces[0].mr : NULL;

	if (!mr || !mr->mr)
		return;
	sim_check(sim, !roci_mr_destroy(mr->mr), "roci_mr_destroy() failed");
	sim_rings_revoke(mr->host, mr->host->mem + mr->off, mr->len);
	mr->mr = NULL;
	qp->dereg_local = true;
	for (unsigned i = 0; i < qp->num_wr; i++)
		if (!qp->wrs[i].ok && names(&qp->wrs[i], mr))
			qp->wrs[i].may |= BIT(ROCI_WC_LOC_PROT_ERR);
}

static void drain(struct sim *sim, struct sim_qp *qp, struct sim_action *act)
{
	if (roci_qp_state(qp->qp) != ROCI_QPS_RTS)
		return;
	modify_state(sim, qp, ROCI_QPS_SQD, qp->sq_drained_wanted ? ROCI_QP_EN_SQD_ASYNC_NOTIFY : 0);
	qp->sqd = true;
	qp->sqd_since = sim->now;
	act->kind = SIM_ACT_RTS;
	sim_schedule(sim, sim->now + rng_range(&sim->app, 1, 3000) * US, SIM_EV_ACTION, act);
}

/* Where nothing is lost and no receive is missing, the requests that were started are soon done. */
static void check_drained(struct sim *sim, const struct sim_qp *qp)
{
	const struct sim_net *net = &sim->net;

	if (net->lossy || net->reorder || net->dup || sim->big || !qp->peer->rq->never_rnr || sim_in_error(qp->peer))
		return;
	sim_check(sim, !qp->sq_drained_wanted || qp->sq_drained_seen || sim->now - qp->sqd_since < 2500 * US,
		  "QP %u was not drained in %llu us", qp->id, (unsigned long long)((sim->now - qp->sqd_since) / US));
}

/* IBTA 10.3.1.5: a drained queue may change its path; here, its source port. */
static void change_path(struct sim *sim, struct sim_qp *qp)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_SQD, .av = qp->av};

	if (qp->type == ROCI_QPT_UD || rng_once_in(&sim->extra, 2))
		return;
	attr.av.src_port = 0xc000 | rng_below(&sim->extra, 0x4000);
	if (!sim_modify(sim, qp, &attr, ROCI_QP_STATE | ROCI_QP_AV)) {
		qp->av = attr.av;
		qp->repathed = true;
		sim_agree_longer(qp);
	} else {
		sim_check(sim, !qp->sq_drained_seen, "QP %u is drained, and refuses another path", qp->id);
	}
}

void sim_app_action(struct sim *sim, struct sim_action *act)
{
	struct sim_qp *qp = act->qp;

	sim->progress_at = sim->now;
	if (qp->gone)
		return;
	sim_trace(sim, "QP %u: action %d", qp->id, act->kind);
	switch (act->kind) {
	case SIM_ACT_ERR:
		modify_state(sim, qp, ROCI_QPS_ERR, 0);
		qp->moved_to_err = true;
		break;
	case SIM_ACT_RESET:
	case SIM_ACT_DESTROY: vanish(sim, qp, act->kind == SIM_ACT_DESTROY); break;
	case SIM_ACT_SQD: drain(sim, qp, act); break;
	case SIM_ACT_RTS:
		if (roci_qp_state(qp->qp) != ROCI_QPS_SQD)
			break;
		check_drained(sim, qp);
		change_path(sim, qp);
		qp->sqd = false;
		modify_state(sim, qp, ROCI_QPS_RTS, 0);
		break;
	case SIM_ACT_DEREG: deregister(sim, qp); break;
	case SIM_ACT_DEREG_LOCAL: deregister_local(sim, qp); break;
	case SIM_ACT_LATE_RTS:
		qp->late = false;
		if (roci_qp_state(qp->qp) == ROCI_QPS_RTR) /* the peer may have killed it meanwhile */
			sim_ready_to_send(sim, qp);
		break;
	default: break;
	}
	sim->kick = true;
	sim_host_touch(qp->host);
	sim_host_touch(qp->peer->host);
}
