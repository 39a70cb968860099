/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the work requests of a pair of QPs, such that the standard defines their effect: see read_hazard(). */
#include "sim.h"

struct range {
	uint32_t off, len;
};

/* What is known of one direction while it is drawn. */
struct side {
	struct sim_qp *qp;
	struct range reads[SIM_MAX_WRS]; /* remote ranges of READs that no fence has waited for */
	unsigned num_reads;
	struct sim_piece fetched[SIM_MAX_WRS]; /* local results of READs, and by which WR */
	unsigned fetched_by[SIM_MAX_WRS], num_fetched;
	int fence_at; /* the last WR with a fence; -1: none */
};

static uint64_t draw(struct sim *sim, uint64_t lo, uint64_t hi)
{
	return rng_range(&sim->plan, lo, hi);
}

static bool once_in(struct sim *sim, unsigned n)
{
	return rng_once_in(&sim->plan, n);
}

static uint32_t draw_len(struct sim *sim, struct sim_qp *qp, uint32_t max)
{
	uint32_t len, mtu = qp->mtu;

	switch (draw(sim, 0, 15)) {
	case 0: len = 0; break;
	case 1: len = 1; break;
	case 2:
	case 3:
	case 4: len = draw(sim, 1, 64); break;
	case 5: len = mtu; break;
	case 6: len = once_in(sim, 2) ? mtu - 1 : mtu + 1; break;
	case 7:
	case 8: len = draw(sim, 1, mtu); break;
	case 9: len = mtu * draw(sim, 1, 6); break;
	case 10: len = draw(sim, 1, 40) * mtu - draw(sim, 0, 5); break;
	case 11: len = once_in(sim, 10) ? draw(sim, 100, 300) * mtu : draw(sim, 1, 12) * mtu; break;
	default: len = draw(sim, 1, 4 * mtu); break;
	}
	if (sim->big && once_in(sim, 2))
		len = draw(sim, 1, max);
	if (len > max)
		len = max ? draw(sim, 0, max) : 0;
	if (len > qp->budget)
		len = qp->budget;
	qp->budget -= len;
	return len;
}

static bool is_read(const struct sim_wr *wr)
{
	return wr->opcode == ROCI_WR_RDMA_READ;
}

static bool overlaps(const struct range *r, uint32_t off, uint32_t len)
{
	return off < r->off + r->len && r->off < off + len;
}

/* IBTA table 79: a request behind a READ may overtake it at the responder, because a repeated READ reads again. So a
 * request that changes what an earlier READ reads must wait for it. */
static bool read_hazard(const struct side *s, uint32_t off, uint32_t len)
{
	for (unsigned i = 0; i < s->num_reads; i++)
		if (overlaps(&s->reads[i], off, len))
			return true;
	return false;
}

static void take_source(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_qp *qp = s->qp;
	unsigned i;

	if (s->num_fetched && once_in(sim, 6)) {
		/* Send what was read: needs the fence. */
		i = draw(sim, 0, s->num_fetched - 1);
		if (s->fetched[i].len <= wr->len) {
			uint32_t rest = wr->len - s->fetched[i].len;

			if (!rest || qp->cap.max_send_sge > 1) {
				wr->from_read = true;
				wr->pieces[wr->num_sge++] = s->fetched[i];
				if (rest)
					wr->pieces[wr->num_sge++] = sim_pool_take(sim, &qp->local_pool, rest);
				if ((int)s->fetched_by[i] >= s->fence_at)
					wr->flags |= ROCI_SEND_FENCE;
				return;
			}
		}
	}
	wr->num_sge = sim_pool_take_list(sim, &qp->local_pool, wr->len, qp->cap.max_send_sge, wr->pieces);
	if (wr->len <= qp->cap.max_inline && once_in(sim, 2))
		wr->flags |= ROCI_SEND_INLINE;
}

static void use_window(struct side *s, struct sim_wr *wr, struct sim_mw *mw)
{
	wr->rkey = mw->key;
	wr->remote_addr = sim_mr_addr(mw->mr, wr->target_off);
	if (mw->access & ROCI_ACCESS_ZERO_BASED)
		wr->remote_addr = wr->target_off - mw->off;
	wr->after_qp = s->qp->peer;
	wr->after_wr = mw->bind_wr;
	wr->mw = mw;
	wr->signaled = true;
	mw->last_use_wr = wr->index;
}

static void name_target(struct sim *sim, struct side *s, struct sim_wr *wr, struct sim_mr *mr, uint32_t need)
{
	struct sim_qp *qp = s->qp;

	wr->rkey = mr->key;
	wr->remote_addr = sim_mr_addr(mr, wr->target_off);
	for (unsigned i = 0; i < qp->num_mw; i++) {
		struct sim_mw *mw = &qp->mws[i];

		if (mw->bound && mw->mr == mr && wr->target_off >= mw->off && !(need & ~mw->access) &&
		    wr->target_off + wr->len <= mw->off + mw->len && !once_in(sim, 4)) {
			use_window(s, wr, mw);
			return;
		}
	}
	if (!wr->len && once_in(sim, 2)) {
		/* IBTA 9.7.4.1.7: of no bytes, neither key nor address is checked. */
		wr->rkey = rng_next(&sim->plan);
		wr->remote_addr = rng_next(&sim->plan);
	}
}

/* A range of the target: anywhere in it (often within a window), or of the work request's own. */
static struct sim_mr *place_target(struct sim *sim, struct sim_qp *qp, struct sim_wr *wr)
{
	struct sim_mw *mw = qp->num_mw ? &qp->mws[draw(sim, 0, qp->num_mw - 1)] : NULL;

	if (qp->disjoint) {
		struct sim_piece p = sim_pool_take(sim, &qp->target_pool, wr->len);

		wr->target_off = p.off;
		return p.mr;
	}
	if (mw && mw->bound && wr->len <= mw->len && !once_in(sim, 3))
		wr->target_off = mw->off + draw(sim, 0, mw->len - wr->len);
	else
		wr->target_off = qp->target->off + draw(sim, 0, qp->target->len - wr->len);
	return qp->target;
}

static void draw_send(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	wr->len = draw_len(sim, s->qp, s->qp->max_len);
	wr->consumes_recv = true;
	take_source(sim, s, wr);
	if (wr->opcode == ROCI_WR_SEND_WITH_IMM)
		wr->imm = rng_next(&sim->plan);
	if (s->qp->type == ROCI_QPT_UD) {
		wr->ud_dest = s->qp->peer;
		wr->qkey = wr->ud_dest->qkey;
	}
}

static uint32_t target_max(const struct sim_qp *qp)
{
	return !qp->disjoint && qp->target->len < qp->max_len ? qp->target->len : qp->max_len;
}

static void draw_write(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_mr *mr;

	wr->len = draw_len(sim, s->qp, target_max(s->qp));
	take_source(sim, s, wr);
	mr = place_target(sim, s->qp, wr);
	if (read_hazard(s, wr->target_off, wr->len))
		wr->flags |= ROCI_SEND_FENCE;
	name_target(sim, s, wr, mr, ROCI_ACCESS_REMOTE_WRITE);
	if (wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM) {
		wr->imm = rng_next(&sim->plan);
		wr->consumes_recv = true;
	}
}

static void draw_read(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_mr *mr;

	wr->len = draw_len(sim, s->qp, target_max(s->qp));
	wr->num_sge = sim_pool_take_list(sim, &s->qp->local_pool, wr->len, s->qp->cap.max_send_sge, wr->pieces);
	mr = place_target(sim, s->qp, wr);
	name_target(sim, s, wr, mr, ROCI_ACCESS_REMOTE_READ);
	s->reads[s->num_reads++] = (struct range){wr->target_off, wr->len};
	if (wr->num_sge == 1 && wr->len) {
		s->fetched[s->num_fetched] = wr->pieces[0];
		s->fetched_by[s->num_fetched++] = wr->index;
	}
}

static void draw_flush(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_mr *mr;

	wr->len = 1 + draw_len(sim, s->qp, target_max(s->qp) - 1);
	mr = place_target(sim, s->qp, wr);
	name_target(sim, s, wr, mr, ROCI_ACCESS_FLUSH_GLOBAL);
	wr->flush_len = wr->len;
	wr->len = 0;
	wr->feth = ROCI_FETH_GLOBAL | ROCI_FETH_RANGE;
	if (once_in(sim, 3)) {
		/* Of the whole region, address and length do not matter. */
		wr->feth = ROCI_FETH_GLOBAL | ROCI_FETH_MR;
		wr->remote_addr = rng_next(&sim->plan);
		wr->flush_len = draw(sim, 0, 1000000);
	}
}

/* Several QPs add to one word of the host that the first of them chose. */
static bool share_counter(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_counter *c = &sim->counter;
	struct sim_qp *qp = s->qp;

	if (!c->host && once_in(sim, 4)) {
		c->host = qp->peer->host;
		c->mr = sim_mr_new(sim, c->host, qp->peer->pd, 8,
				   ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_REMOTE_READ);
		c->off = c->mr->off;
		c->initial = draw(sim, 0, 1000000);
		memcpy(c->host->mem + c->off, &c->initial, 8);
		memcpy(c->host->shadow + c->off, &c->initial, 8);
	}
	if (c->host != qp->peer->host || c->mr->pd != qp->peer->pd || !once_in(sim, 2))
		return false;
	wr->counter = c;
	wr->target_off = c->off;
	wr->rkey = c->mr->key;
	wr->remote_addr = sim_mr_addr(c->mr, c->off);
	wr->compare_add = draw(sim, 1, 1000000);
	c->planned++;
	return true;
}

static void draw_atomic(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_qp *qp = s->qp;
	bool write = wr->opcode == ROCI_WR_ATOMIC_WRITE;

	wr->len = 8;
	wr->num_sge = 1;
	if (write && once_in(sim, 2)) {
		wr->num_sge = 0;
		rng_fill(&sim->plan, wr->raw, 8);
	}
	if (wr->num_sge)
		wr->pieces[0] = sim_pool_take(sim, &qp->local_pool, 8);
	if (wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD && share_counter(sim, s, wr))
		return;
	wr->compare_add = rng_next(&sim->plan);
	wr->swap = rng_next(&sim->plan);
	wr->target_words = true;
	wr->target_off = qp->words->off + 8 * draw(sim, 0, SIM_WORDS - 1);
	name_target(sim, s, wr, qp->words, write ? ROCI_ACCESS_REMOTE_WRITE : ROCI_ACCESS_REMOTE_ATOMIC);
	/* Half of the compares should hit; model.c knows what is there only later: compare with a small set of values.
	 */
	if (wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP) {
		wr->swap = draw(sim, 0, 1);
		wr->compare_add = draw(sim, 0, 1);
		memcpy(qp->peer->host->mem + wr->target_off, (uint64_t[]){0}, 8);
		memcpy(qp->peer->host->shadow + wr->target_off, (uint64_t[]){0}, 8);
	}
}

/* The owner (wr is its) binds a window for its peer. */
static bool draw_bind(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_qp *user = s->qp->peer;
	struct sim_mw *mw;
	uint32_t all = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC |
		       ROCI_ACCESS_FLUSH_GLOBAL;

	if (!user->num_mw)
		return false;
	mw = &user->mws[draw(sim, 0, user->num_mw - 1)];
	wr->mw = mw;
	wr->signaled = true;
	wr->after_qp = mw->last_use_wr >= 0 ? user : NULL;
	wr->after_wr = mw->last_use_wr;
	if (mw->type == 2 && mw->bound) {
		wr->opcode = ROCI_WR_LOCAL_INV;
		wr->imm = mw->key;
		mw->bound = false;
		return true;
	}
	wr->opcode = ROCI_WR_BIND_MW;
	mw->key = (mw->key & ~0xffu) | ((mw->key + 1) & 0xff);
	wr->bind_key = mw->key;
	if (mw->type == 1 && mw->bound && once_in(sim, 4)) {
		mw->bound = false; /* of no length: unbinds */
		return true;
	}
	mw->bound = true;
	mw->mr = user->target;
	mw->off = user->target->off + draw(sim, 0, user->target->len / 2);
	mw->len = draw(sim, 1, user->target->off + user->target->len - mw->off);
	mw->access = once_in(sim, 2) ? all : (draw(sim, 1, 7) << 1);
	if (mw->type == 2 && once_in(sim, 6))
		mw->access |= ROCI_ACCESS_ZERO_BASED;
	if (sim->flushes && once_in(sim, 2))
		mw->access |= ROCI_ACCESS_FLUSH_GLOBAL;
	mw->bind_wr = wr->index;
	wr->bind_off = mw->off;
	wr->bind_len = mw->len;
	wr->bind_access = mw->access;
	return true;
}

static bool draw_send_inv(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	struct sim_mw *mw = NULL;

	for (unsigned i = 0; i < s->qp->num_mw; i++)
		if (s->qp->mws[i].bound && s->qp->mws[i].type == 2)
			mw = &s->qp->mws[i];
	if (!mw)
		return false;
	draw_send(sim, s, wr);
	wr->imm = mw->key;
	wr->flags |= ROCI_SEND_FENCE; /* a READ through the window might be repeated */
	wr->after_qp = s->qp->peer;
	wr->after_wr = mw->bind_wr;
	wr->signaled = true;
	mw->bound = false;
	mw->last_use_wr = wr->index;
	return true;
}

static enum roci_wr_opcode draw_opcode(struct sim *sim, struct sim_qp *qp)
{
	static const enum roci_wr_opcode rc[] = {
		ROCI_WR_SEND,
		ROCI_WR_SEND,
		ROCI_WR_SEND,
		ROCI_WR_SEND_WITH_IMM,
		ROCI_WR_SEND_WITH_INV,
		ROCI_WR_RDMA_WRITE,
		ROCI_WR_RDMA_WRITE,
		ROCI_WR_RDMA_WRITE,
		ROCI_WR_RDMA_WRITE_WITH_IMM,
		ROCI_WR_RDMA_READ,
		ROCI_WR_RDMA_READ,
		ROCI_WR_RDMA_READ,
		ROCI_WR_ATOMIC_CMP_AND_SWP,
		ROCI_WR_ATOMIC_FETCH_AND_ADD,
		ROCI_WR_ATOMIC_FETCH_AND_ADD,
		ROCI_WR_ATOMIC_WRITE,
		ROCI_WR_BIND_MW,
		ROCI_WR_BIND_MW,
	};
	static const enum roci_wr_opcode uc[] = {ROCI_WR_SEND, ROCI_WR_SEND_WITH_IMM, ROCI_WR_RDMA_WRITE,
						 ROCI_WR_RDMA_WRITE_WITH_IMM};

	switch (qp->type) {
	case ROCI_QPT_RC:
		if (sim->flushes && once_in(sim, 8))
			return ROCI_WR_FLUSH;
		return rc[draw(sim, 0, sizeof(rc) / sizeof(*rc) - 1)];
	case ROCI_QPT_UC: return uc[draw(sim, 0, 3)];
	default: return uc[draw(sim, 0, 1)];
	}
}

static void draw_by_opcode(struct sim *sim, struct side *s, struct sim_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_SEND_WITH_INV:
		if (draw_send_inv(sim, s, wr))
			return;
		break;
	case ROCI_WR_LOCAL_INV:
	case ROCI_WR_BIND_MW:
		if (draw_bind(sim, s, wr))
			return;
		break;
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM: draw_write(sim, s, wr); return;
	case ROCI_WR_RDMA_READ: draw_read(sim, s, wr); return;
	case ROCI_WR_FLUSH: draw_flush(sim, s, wr); return;
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
	case ROCI_WR_ATOMIC_WRITE: draw_atomic(sim, s, wr); return;
	default: draw_send(sim, s, wr); return;
	}
	wr->opcode = ROCI_WR_SEND;
	draw_send(sim, s, wr);
}

static void draw_wr(struct sim *sim, struct side *s)
{
	struct sim_qp *qp = s->qp;
	struct sim_wr *wr = &qp->wrs[qp->num_wr];

	wr->index = qp->num_wr++;
	wr->opcode = draw_opcode(sim, qp);
	draw_by_opcode(sim, s, wr);
	if (wr->consumes_recv && once_in(sim, 2))
		wr->flags |= ROCI_SEND_SOLICITED;
	if (once_in(sim, 16))
		wr->flags |= ROCI_SEND_FENCE;
	if (wr->flags & ROCI_SEND_FENCE) {
		s->num_reads = is_read(wr) ? 1 : 0;
		if (is_read(wr))
			s->reads[0] = (struct range){wr->target_off, wr->len};
		s->fence_at = wr->index;
	}
	/* One request of a full send queue must be signaled. */
	if (once_in(sim, 2) || wr->index % qp->cap.max_send_wr == qp->cap.max_send_wr - 1)
		wr->signaled = true;
}

/* PSNs that a work request takes (IBTA 9.7.2). */
static uint32_t packets_of(const struct sim_qp *qp, const struct sim_wr *wr)
{
	uint32_t full = sim_segment(qp, wr);

	switch (wr->opcode) {
	case ROCI_WR_LOCAL_INV:
	case ROCI_WR_BIND_MW: return 0;
	default: break;
	}
	return wr->len ? (uint32_t)(((uint64_t)wr->len + full - 1) / full) : 1;
}

static void finish(struct sim_qp *qp)
{
	uint32_t off = 0;

	for (unsigned i = 0; i < qp->num_wr; i++) {
		struct sim_wr *wr = &qp->wrs[i];

		wr->packets = packets_of(qp, wr);
		wr->psn_off = off;
		off += wr->packets;
		if (wr->after_qp)
			wr->after_qp->wrs[wr->after_wr].signaled = true;
		if (qp->sq_sig_all)
			wr->signaled = true;
	}
	qp->total_packets = off;
}

void sim_workload_draw(struct sim *sim, struct sim_qp *a, struct sim_qp *b)
{
	struct side sides[2] = {{.qp = a, .fence_at = -1}, {.qp = b, .fence_at = -1}};
	unsigned want = draw(sim, 1, once_in(sim, 3) ? SIM_MAX_WRS : 16), skew = draw(sim, 0, 4);

	a->wrs = sim_alloc(sim, SIM_MAX_WRS * sizeof(*a->wrs));
	b->wrs = sim_alloc(sim, SIM_MAX_WRS * sizeof(*b->wrs));
	while (want--) {
		struct side *s = &sides[draw(sim, 0, 4) < skew];

		draw_wr(sim, s);
	}
	finish(a);
	finish(b);
}

/* ---- receives ---- */

static void draw_recv(struct sim *sim, struct sim_rq *rq, uint32_t need, bool exact)
{
	struct sim_recv *recv = &rq->recvs[rq->planned++];
	uint32_t len = need;

	if (!exact || once_in(sim, 2))
		len += draw(sim, 0, 32);
	recv->len = len;
	recv->num_sge = sim_pool_take_list(sim, &rq->pool, len, rq->max_sge, recv->pieces);
}

/* Receives of a UD QP that are too short for some datagrams. Those are dropped; the receive waits for one that fits. */
static void shorten(struct sim *sim, struct sim_rq *rq)
{
	for (unsigned i = 0; i < rq->planned; i++) {
		struct sim_recv *recv = &rq->recvs[i];
		uint32_t cut = rng_once_in(&sim->extra, 3) ? rng_below(&sim->extra, recv->len + 1) : 0;

		recv->len -= cut;
		for (unsigned k = recv->num_sge; k-- > 0 && cut;) {
			uint32_t part = recv->pieces[k].len < cut ? recv->pieces[k].len : cut;

			recv->pieces[k].len -= part;
			cut -= part;
		}
	}
	rq->shortened = true;
}

/* RC: one receive for each message that takes one. UC, UD and shared queues: all of the largest size. */
static void draw_own(struct sim *sim, struct sim_rq *rq, struct sim_qp *from)
{
	bool rc = from->type == ROCI_QPT_RC;
	uint32_t need = from->max_len + (from->type == ROCI_QPT_UD ? ROCI_GRH_BYTES : 0);
	unsigned extra = once_in(sim, 2) ? draw(sim, 0, 3) : 0;

	rq->recvs = sim_alloc(sim, (SIM_MAX_WRS + 3) * sizeof(*rq->recvs));
	for (unsigned i = 0; i < from->num_wr; i++) {
		struct sim_wr *wr = &from->wrs[i];

		if (!wr->consumes_recv)
			continue;
		if (rc)
			need = wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM ? 0 : wr->len;
		draw_recv(sim, rq, need, rc);
		if (wr->fault == SIM_FAULT_RECV_LKEY)
			rq->recvs[rq->planned - 1].bad_lkey = 0x500;
		if (wr->fault == SIM_FAULT_RECV_SHORT) {
			struct sim_recv *recv = &rq->recvs[rq->planned - 1];

			recv->len = draw(sim, 0, wr->len - 1);
			recv->num_sge = sim_pool_take_list(sim, &rq->pool, recv->len, rq->max_sge, recv->pieces);
		}
		if (wr->fault == SIM_FAULT_NO_RECV) {
			rq->planned--;
			extra = 0;
			break;
		}
	}
	while (extra--)
		draw_recv(sim, rq, need, false);
	if (from->type == ROCI_QPT_UD && rng_once_in(&sim->extra, 3))
		shorten(sim, rq);
}

static void draw_shared(struct sim *sim, struct sim_rq *rq)
{
	unsigned count = draw(sim, 0, 3);
	uint32_t need = 0, grh = 0;

	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *from = sim->qps[i].peer;

		if (sim->qps[i].rq != rq)
			continue;
		rq->cap++; /* a peer that fails leaves a receive half full */
		if (from->type == ROCI_QPT_UD)
			grh = ROCI_GRH_BYTES;
		for (unsigned w = 0; w < from->num_wr; w++) {
			/* A datagram that comes twice takes two. */
			count += from->wrs[w].consumes_recv << (from->type == ROCI_QPT_UD && sim->net.dup);
			need = from->wrs[w].len > need ? from->wrs[w].len : need;
		}
	}
	rq->recvs = sim_alloc(sim, (count + 1) * sizeof(*rq->recvs));
	while (count--)
		draw_recv(sim, rq, need + grh, false);
	rq->datagrams = grh;
}

void sim_recvs_draw(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_rqs; i++) {
		struct sim_rq *rq = &sim->rqs[i];

		if (rq->qp)
			draw_own(sim, rq, rq->qp->peer);
		else
			draw_shared(sim, rq);
		rq->never_rnr = rq->early && rq->cap >= rq->planned &&
				!(rq->qp && rq->qp->peer->fault == SIM_FAULT_NO_RECV) &&
				!(rq->datagrams && sim->net.dup); /* one that comes twice takes two */
	}
}
