/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes made on purpose: one work request that must fail, or something that happens to a QP or its memory midway. */
#include "sim.h"

static uint64_t draw(struct sim *sim, uint64_t lo, uint64_t hi)
{
	return rng_range(&sim->plan, lo, hi);
}

const char *sim_fault_str(enum sim_fault fault)
{
	static const char *const names[SIM_FAULTS] = {
		"none",
		"unknown rkey",
		"wrong key variant",
		"out of bounds",
		"MR lacks the right",
		"foreign PD",
		"QP lacks the right",
		"misaligned atomic",
		"short receive",
		"bad receive lkey",
		"bad send lkey",
		"READ into read-only",
		"bad key to invalidate",
		"bad bind",
		"bad local invalidate",
		"no receive",
		"CQ overrun",
	};

	return fault < SIM_FAULTS ? names[fault] : "?";
}

static bool is_rdma(const struct sim_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM:
	case ROCI_WR_RDMA_READ: return wr->len > 0;
	case ROCI_WR_FLUSH: return wr->feth == (ROCI_FETH_GLOBAL | ROCI_FETH_RANGE);
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return true;
	default: return false;
	}
}

static bool is_atomic(const struct sim_wr *wr)
{
	return wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP || wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_send(const struct sim_wr *wr)
{
	return wr->opcode == ROCI_WR_SEND || wr->opcode == ROCI_WR_SEND_WITH_IMM;
}

static bool fits(enum sim_fault fault, const struct sim_qp *qp, const struct sim_wr *wr)
{
	bool own_rq = qp->peer->rq->qp;

	switch (fault) {
	case SIM_FAULT_RKEY:
	case SIM_FAULT_VARIANT:
	case SIM_FAULT_BOUNDS:
	case SIM_FAULT_ACCESS:
	case SIM_FAULT_PD:
	case SIM_FAULT_QP_ACCESS: return is_rdma(wr);
	case SIM_FAULT_MISALIGNED: return is_atomic(wr);
	case SIM_FAULT_RECV_SHORT: return own_rq && is_send(wr) && wr->len;
	case SIM_FAULT_RECV_LKEY: return own_rq && is_send(wr) && wr->len;
	case SIM_FAULT_SEND_LKEY:
		return (is_send(wr) || wr->opcode == ROCI_WR_RDMA_WRITE) && wr->num_sge &&
		       wr->pieces[wr->num_sge - 1].len && !(wr->flags & ROCI_SEND_INLINE);
	case SIM_FAULT_READ_LKEY:
		return wr->opcode == ROCI_WR_RDMA_READ && wr->num_sge && wr->pieces[wr->num_sge - 1].len;
	case SIM_FAULT_INV_KEY: return wr->opcode == ROCI_WR_SEND;
	case SIM_FAULT_BIND: return wr->opcode == ROCI_WR_BIND_MW && wr->bind_len;
	case SIM_FAULT_LOCAL_INV: return wr->opcode == ROCI_WR_LOCAL_INV;
	case SIM_FAULT_NO_RECV: return own_rq && wr->consumes_recv && qp->rnr_retry < 7;
	default: return false;
	}
}

/* The rights that the work request needs; the faulty MR has the others. */
static uint32_t need_of(const struct sim_wr *wr)
{
	if (wr->opcode == ROCI_WR_RDMA_READ)
		return ROCI_ACCESS_REMOTE_READ;
	if (wr->opcode == ROCI_WR_FLUSH)
		return ROCI_ACCESS_FLUSH_GLOBAL;
	return is_atomic(wr) ? ROCI_ACCESS_REMOTE_ATOMIC : ROCI_ACCESS_REMOTE_WRITE;
}

static uint32_t rights_of(const struct sim_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM:
	case ROCI_WR_ATOMIC_WRITE: return ROCI_ACCESS_REMOTE_WRITE;
	case ROCI_WR_RDMA_READ: return ROCI_ACCESS_REMOTE_READ;
	case ROCI_WR_FLUSH: return ROCI_ACCESS_FLUSH_GLOBAL;
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return ROCI_ACCESS_REMOTE_ATOMIC;
	default: return 0;
	}
}

/* The first request that needs the right that the QP will lack fails. */
static bool is_first_to_need(const struct sim_qp *qp, const struct sim_wr *wr)
{
	for (unsigned i = 0; i < wr->index; i++)
		if (rights_of(&qp->wrs[i]) & rights_of(wr))
			return false;
	return true;
}

/* Points the work request at a fresh MR that refuses it. */
static void foreign_target(struct sim *sim, struct sim_qp *qp, struct sim_wr *wr, uint32_t pd, uint32_t access)
{
	struct sim_mr *mr = sim_mr_new(sim, qp->peer->host, pd, (wr->flush_len ? wr->flush_len : wr->len) + 8, access);

	wr->target_off = mr->off;
	wr->target_words = false;
	wr->rkey = mr->key;
	wr->remote_addr = sim_mr_addr(mr, mr->off);
}

/* IBTA 10.6.7.2.2: a window of type 2 is bound to a QP, and refuses access through another one. */
static void borrow_window(struct sim *sim, const struct sim_qp *qp, struct sim_wr *wr)
{
	for (unsigned i = 0; i < sim->num_qps; i++) {
		const struct sim_qp *user = &sim->qps[i];

		for (unsigned m = 0; m < user->num_mw; m++) {
			const struct sim_mw *mw = &user->mws[m];

			if (user == qp || user->peer->host != qp->peer->host || mw->type != 2 || !mw->bound)
				continue;
			wr->rkey = mw->key;
			wr->remote_addr = sim_mr_addr(mw->mr, mw->off);
			if (mw->access & ROCI_ACCESS_ZERO_BASED)
				wr->remote_addr = 0;
			wr->remote_addr &= ~7ull; /* atomics must be aligned */
			return;
		}
	}
}

static void point_wrong(struct sim *sim, enum sim_fault fault, struct sim_qp *qp, struct sim_wr *wr)
{
	uint32_t all = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ |
		       ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_FLUSH_GLOBAL;
	struct sim_host *peer = qp->peer->host;

	wr->must = BIT(ROCI_WC_REM_ACCESS_ERR);
	if (fault == SIM_FAULT_PD) {
		foreign_target(sim, qp, wr, peer->pds[0] == qp->peer->pd ? peer->pds[1] : peer->pds[0], all);
		return;
	}
	foreign_target(sim, qp, wr, qp->peer->pd, fault == SIM_FAULT_ACCESS ? all & ~need_of(wr) : all);
	switch (fault) {
	case SIM_FAULT_RKEY:
		wr->rkey = sim_new_key(sim, peer);
		borrow_window(sim, qp, wr);
		break;
	case SIM_FAULT_VARIANT: wr->rkey ^= draw(sim, 1, 255); break;
	case SIM_FAULT_BOUNDS:
		switch (draw(sim, 0, 3)) {
		case 0: wr->remote_addr += 16; break;            /* ends 8 or more bytes late */
		case 1: wr->remote_addr -= 8; break;             /* starts early */
		case 2: wr->remote_addr = UINT64_MAX - 7; break; /* wraps around, if longer than 8 */
		default: wr->remote_addr = rng_next(&sim->plan) & ~7ull; break;
		}
		break;
	default: break;
	}
}

static void spoil(struct sim *sim, enum sim_fault fault, struct sim_qp *qp, struct sim_wr *wr)
{
	struct sim_piece *last = &wr->pieces[wr->num_sge ? wr->num_sge - 1 : 0];

	switch (fault) {
	case SIM_FAULT_QP_ACCESS:
		qp->peer->access &= ~need_of(wr);
		wr->must = BIT(ROCI_WC_REM_INV_REQ_ERR);
		break;
	case SIM_FAULT_MISALIGNED: break; /* refused when it is posted */
	case SIM_FAULT_RECV_SHORT: wr->must = BIT(ROCI_WC_REM_INV_REQ_ERR); break;
	case SIM_FAULT_RECV_LKEY: wr->must = BIT(ROCI_WC_REM_OP_ERR); break;
	case SIM_FAULT_SEND_LKEY:
		wr->bad_lkey = 0x300;
		wr->must = BIT(ROCI_WC_LOC_PROT_ERR);
		break;
	case SIM_FAULT_READ_LKEY:
		last->mr = sim_mr_new(sim, qp->host, qp->pd, last->len, ROCI_ACCESS_REMOTE_READ);
		last->off = last->mr->off;
		wr->must = BIT(ROCI_WC_LOC_PROT_ERR);
		break;
	case SIM_FAULT_INV_KEY:
		wr->opcode = ROCI_WR_SEND_WITH_INV;
		wr->imm = sim_new_key(sim, qp->peer->host); /* class J: executed and acknowledged, then fatal */
		break;
	case SIM_FAULT_BIND:
		wr->bind_len += 1u << 24;
		wr->must = BIT(ROCI_WC_MW_BIND_ERR);
		break;
	case SIM_FAULT_LOCAL_INV:
		wr->imm ^= draw(sim, 1, 255);
		wr->must = BIT(ROCI_WC_MW_BIND_ERR) | BIT(ROCI_WC_LOC_QP_OP_ERR);
		break;
	case SIM_FAULT_NO_RECV: wr->must = BIT(ROCI_WC_RNR_RETRY_EXC_ERR); break;
	default: point_wrong(sim, fault, qp, wr); break;
	}
}

static bool inject(struct sim *sim, enum sim_fault fault, struct sim_qp *qp)
{
	unsigned start = qp->num_wr ? draw(sim, 0, qp->num_wr - 1) : 0;

	for (unsigned n = 0; n < qp->num_wr; n++) {
		struct sim_wr *wr = &qp->wrs[(start + n) % qp->num_wr];

		if (wr->counter || !fits(fault, qp, wr))
			continue;
		if (fault == SIM_FAULT_QP_ACCESS && !is_first_to_need(qp, wr))
			continue;
		wr->fault = fault;
		spoil(sim, fault, qp, wr);
		if (wr->must || fault == SIM_FAULT_INV_KEY) {
			qp->fault = fault;
			qp->fault_wr = wr->index;
		}
		sim->stats.faults++;
		return true;
	}
	return false;
}

static void add_action(struct sim *sim, enum sim_action_kind kind, struct sim_qp *qp)
{
	struct sim_action *act = &sim->actions[sim->num_actions];

	if (sim->num_actions == SIM_MAX_ACTIONS || !qp->num_wr)
		return;
	sim->num_actions++;
	*act = (struct sim_action){.kind = kind, .qp = qp, .trigger = draw(sim, 1, qp->num_wr)};
	act->delay_ns = draw(sim, 0, 1 + 8 * sim->net.delay_ns);
}

void sim_fault_draw(struct sim *sim, struct sim_qp *a, struct sim_qp *b)
{
	struct sim_qp *qp = rng_once_in(&sim->plan, 2) ? a : b;
	enum sim_action_kind kind = draw(sim, 0, SIM_ACTIONS - 1);

	if (kind == SIM_ACT_LATE_RTS) {
		qp->late = qp->was_late = true;
		qp->sim->actions[sim->num_actions++] =
			(struct sim_action){.kind = kind, .qp = qp, .delay_ns = draw(sim, 0, 400) * US};
		return;
	}
	if (a->type != ROCI_QPT_RC && rng_once_in(&sim->plan, 2) && inject(sim, SIM_FAULT_SEND_LKEY, qp))
		return;
	if (kind == SIM_ACT_RTS || (kind == SIM_ACT_DEREG && (a->type != ROCI_QPT_RC || qp->num_mw)))
		kind = SIM_ACT_SQD;
	if (a->type == ROCI_QPT_RC && !rng_once_in(&sim->plan, 3)) {
		for (unsigned tries = 0; tries < 4; tries++)
			if (inject(sim, draw(sim, 1, SIM_FAULT_OVERRUN - 1), qp))
				return;
	}
	if (!qp->rq->qp && (kind == SIM_ACT_RESET || kind == SIM_ACT_DESTROY))
		kind = SIM_ACT_ERR; /* would take receives of the shared queue with it */
	qp->sq_drained_wanted = kind == SIM_ACT_SQD && rng_once_in(&sim->plan, 2);
	add_action(sim, kind, qp);
	if (kind != SIM_ACT_SQD)
		sim->stats.faults++;
}
