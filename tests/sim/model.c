/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of memory: executes the messages in the order in which they were posted, on the shadow arenas. Work
 * requests that failed, and UC messages, may have been executed or not; only the check at the end allows for both.
 */
#include "sim.h"

static uint8_t scratch[SIM_ARENA_BYTES];

void sim_wr_data(const struct sim_qp *qp, const struct sim_wr *wr, uint8_t *out)
{
	if (wr->inline_data)
		memcpy(out, wr->inline_data, wr->len);
	else if (wr->opcode == ROCI_WR_ATOMIC_WRITE && !wr->num_sge)
		memcpy(out, wr->raw, 8);
	else
		sim_gather(qp->host->shadow, wr->pieces, wr->num_sge, wr->len, out);
}

/* The value of `word` after an atomic. */
static uint64_t atomic_result(const struct sim_qp *qp, const struct sim_wr *wr, uint64_t word)
{
	uint64_t raw;

	switch (wr->opcode) {
	case ROCI_WR_ATOMIC_CMP_AND_SWP: return word == wr->compare_add ? wr->swap : word;
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return word + wr->compare_add;
	default: sim_wr_data(qp, wr, (uint8_t *)&raw); return raw;
	}
}

static void execute_atomic(struct sim_qp *qp, const struct sim_wr *wr)
{
	uint8_t *at = qp->peer->host->shadow + wr->target_off;
	uint64_t word, result;

	if (wr->counter)
		return;
	memcpy(&word, at, 8);
	result = atomic_result(qp, wr, word);
	memcpy(at, &result, 8);
	if (wr->opcode != ROCI_WR_ATOMIC_WRITE)
		sim_scatter(qp->host->shadow, wr->pieces, wr->num_sge, 8, (uint8_t *)&word);
}

static void execute(struct sim_qp *qp, struct sim_wr *wr)
{
	uint8_t *peer = qp->peer->host->shadow;

	wr->executed = true;
	switch (wr->opcode) {
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM: sim_wr_data(qp, wr, peer + wr->target_off); break;
	case ROCI_WR_RDMA_READ:
		sim_scatter(qp->host->shadow, wr->pieces, wr->num_sge, wr->len, peer + wr->target_off);
		break;
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
	case ROCI_WR_ATOMIC_WRITE: execute_atomic(qp, wr); break;
	default: break;
	}
}

void sim_model_execute_one(struct sim_qp *qp, struct sim_wr *wr)
{
	execute(qp, wr);
}

void sim_model_execute(struct sim_qp *qp, unsigned upto)
{
	while (qp->executed < upto)
		execute(qp, &qp->wrs[qp->executed++]);
}

/* ---- what is seen while a WRITE is under way ---- */

enum seen { SEEN_OLD, SEEN_NEW, SEEN_UNSURE, SEEN_BROKEN };

/* BROKEN: the new last byte became visible before the others. */
static enum seen write_visible(const struct sim_qp *qp, const struct sim_wr *wr)
{
	const uint8_t *mem = qp->peer->host->mem + wr->target_off;
	const uint8_t *old = qp->peer->host->shadow + wr->target_off;

	if (!wr->len)
		return SEEN_UNSURE;
	sim_wr_data(qp, wr, scratch);
	if (scratch[wr->len - 1] == old[wr->len - 1]) /* the last byte tells nothing */
		return memcmp(mem, scratch, wr->len) ? SEEN_OLD : SEEN_UNSURE;
	if (mem[wr->len - 1] != scratch[wr->len - 1])
		return SEEN_OLD;
	return memcmp(mem, scratch, wr->len) ? SEEN_BROKEN : SEEN_NEW;
}

static void watch_qp(struct sim *sim, struct sim_qp *qp)
{
	bool later_seen = false;

	for (unsigned i = qp->posted; i-- > qp->executed;) {
		const struct sim_wr *wr = &qp->wrs[i];
		enum seen seen;

		if (wr->opcode != ROCI_WR_RDMA_WRITE && wr->opcode != ROCI_WR_RDMA_WRITE_WITH_IMM)
			continue;
		if (wr->must || wr->may || wr->from_read)
			continue;
		seen = write_visible(qp, wr);
		sim_check(sim, seen != SEEN_BROKEN,
			  "QP %u WR %u: the last byte of a WRITE is visible before the others", qp->id, i);
		sim_check(sim, seen != SEEN_OLD || !later_seen, "QP %u WR %u: a later WRITE is visible before it",
			  qp->id, i);
		later_seen |= seen == SEEN_NEW;
	}
}

void sim_model_watch(struct sim *sim, struct sim_host *host)
{
	for (unsigned i = 0; i < sim->num_qps; i++) {
		struct sim_qp *qp = &sim->qps[i];

		if (qp->peer->host == host && qp->type == ROCI_QPT_RC && qp->disjoint)
			watch_qp(sim, qp);
	}
}

/* ---- the end ---- */

static void forget(struct sim_host *host, uint32_t off, uint32_t len)
{
	memcpy(host->shadow + off, host->mem + off, len);
}

static void forget_pieces(struct sim_host *host, const struct sim_piece *pieces, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		forget(host, pieces[i].off, pieces[i].len);
}

/* Atomics that may have run ran wholly or not at all, each once, in order: a prefix of them must explain the words. */
static void settle_words(struct sim *sim, struct sim_qp *qp, unsigned limit)
{
	struct sim_host *peer = qp->peer->host;
	uint64_t words[SIM_WORDS], value;
	unsigned i = qp->executed;

	if (!qp->words)
		return;
	memcpy(words, peer->shadow + qp->words->off, sizeof(words));
	while (memcmp(words, peer->mem + qp->words->off, sizeof(words))) {
		for (; i < limit && !qp->wrs[i].target_words; i++)
			;
		sim_check(sim, i < limit, "QP %u: no order of its atomics explains the words", qp->id);
		value = atomic_result(qp, &qp->wrs[i], words[(qp->wrs[i].target_off - qp->words->off) / 8]);
		words[(qp->wrs[i].target_off - qp->words->off) / 8] = value;
		i++;
	}
	memcpy(peer->shadow + qp->words->off, words, sizeof(words));
}

/* A WRITE that is refused when part of it has arrived. */
static bool fails_late(const struct sim_wr *wr)
{
	return !wr->ok && (wr->opcode == ROCI_WR_RDMA_WRITE || wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM) &&
	       (wr->fault == SIM_FAULT_SEND_LKEY || wr->fault == SIM_FAULT_NO_RECV);
}

/* Work requests that did not succeed may have reached their targets, but nothing else. */
static void settle_rc(struct sim *sim, struct sim_qp *qp)
{
	unsigned limit = qp->posted;

	/* Nothing behind a refused request was executed. */
	if (qp->fault_wr >= 0 && (unsigned)qp->fault_wr < limit && qp->fault != SIM_FAULT_READ_LKEY)
		limit = qp->fault_wr;
	settle_words(sim, qp, limit);
	for (unsigned i = qp->executed; i < limit; i++) {
		struct sim_wr *wr = &qp->wrs[i];

		switch (wr->opcode) {
		case ROCI_WR_RDMA_WRITE:
		case ROCI_WR_RDMA_WRITE_WITH_IMM: forget(qp->peer->host, wr->target_off, wr->len); break;
		default: break;
		}
	}
	if (limit < qp->posted && fails_late(&qp->wrs[limit]))
		forget(qp->peer->host, qp->wrs[limit].target_off, qp->wrs[limit].len);
	for (unsigned i = 0; i < qp->posted; i++) {
		struct sim_wr *wr = &qp->wrs[i];

		if (wr->ok)
			continue;
		if (wr->counter)
			forget(wr->counter->host, wr->counter->off, 8);
		if (wr->opcode == ROCI_WR_RDMA_READ || wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP ||
		    wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD)
			forget_pieces(qp->host, wr->pieces, wr->num_sge);
	}
}

/* A UC WRITE arrives packet by packet, each whole. */
static void settle_uc(struct sim *sim, struct sim_qp *qp)
{
	struct sim_host *peer = qp->peer->host;

	for (unsigned i = 0; i < qp->posted; i++) {
		struct sim_wr *wr = &qp->wrs[i];

		if ((wr->opcode != ROCI_WR_RDMA_WRITE && wr->opcode != ROCI_WR_RDMA_WRITE_WITH_IMM) || wr->executed)
			continue;
		sim_wr_data(qp, wr, scratch);
		for (uint32_t at = 0; at < wr->len; at += qp->segment) {
			uint32_t n = wr->len - at < qp->segment ? wr->len - at : qp->segment, off = wr->target_off + at;

			if (!memcmp(peer->mem + off, scratch + at, n))
				memcpy(peer->shadow + off, scratch + at, n);
			sim_check(sim, !memcmp(peer->mem + off, peer->shadow + off, n),
				  "QP %u WR %u: part of a UC WRITE is neither old nor new", qp->id, i);
		}
	}
}

static void settle_counter(struct sim *sim, struct sim_counter *c)
{
	uint64_t at = c->initial, value;

	if (!c->host)
		return;
	memcpy(&value, c->host->mem + c->off, 8);
	for (unsigned n = 0; n < c->count; n++) {
		unsigned i;

		for (i = n; i < c->count && c->seen[i].orig != at; i++)
			;
		if (i == c->count) {
			/* one that failed at its requester has run */
			sim_check(sim, c->count < c->planned, "the shared counter never held %llu",
				  (unsigned long long)at);
			forget(c->host, c->off, 8);
			return;
		}
		at += c->seen[i].add;
		c->seen[i] = c->seen[n];
	}
	if (c->count < c->planned)
		forget(c->host, c->off, 8);
	else
		memcpy(c->host->shadow + c->off, &at, 8);
}

static void settle_recvs(struct sim_rq *rq)
{
	/* A receive that did not complete may hold the beginning of a message; never of a datagram. */
	bool whole = rq->shortened && !rq->qp->recv_lost && !rq->qp->purged;

	for (unsigned i = 0; i < rq->posted; i++) {
		struct sim_recv *recv = &rq->recvs[i];

		if ((!recv->done && !whole) || recv->failed)
			forget_pieces(rq->host, recv->pieces, recv->num_sge);
	}
}

static bool covers(const struct sim_host *host, const struct sim_piece *pieces, unsigned n, uint32_t at)
{
	for (unsigned i = 0; i < n; i++)
		if (pieces[i].mr->host == host && at - pieces[i].off < pieces[i].len)
			return true;
	return false;
}

/* Prints the work requests that may have written the byte. */
static void explain(struct sim *sim, const struct sim_host *host, uint32_t at)
{
	for (unsigned q = 0; q < sim->num_qps; q++) {
		const struct sim_qp *qp = &sim->qps[q];

		for (unsigned i = 0; i < qp->posted; i++) {
			const struct sim_wr *wr = &qp->wrs[i];

			if (covers(host, wr->pieces, wr->num_sge, at))
				sim_trace(sim, "local to QP %u WR %u (opcode %d, ok %d)", q, i, wr->opcode, wr->ok);
			if (qp->peer->host == host && wr->rkey && at - wr->target_off < wr->len)
				sim_trace(sim, "target of QP %u WR %u (opcode %d, ok %d, executed %d)", q, i,
					  wr->opcode, wr->ok, wr->executed);
		}
	}
	for (unsigned q = 0; q < sim->num_rqs; q++)
		for (unsigned i = 0; i < sim->rqs[q].posted; i++)
			if (covers(host, sim->rqs[q].recvs[i].pieces, sim->rqs[q].recvs[i].num_sge, at))
				sim_trace(sim, "receive %u of RQ %u (done %d)", i, q, sim->rqs[q].recvs[i].done);
}

static void compare(struct sim *sim, const struct sim_host *host)
{
	uint32_t i = 0, n = 0;

	if (!memcmp(host->mem, host->shadow, host->used + 32))
		return;
	while (host->mem[i] == host->shadow[i])
		i++;
	while (i + n < host->used + 32 && host->mem[i + n] != host->shadow[i + n])
		n++;
	explain(sim, host, i);
	for (unsigned m = 0; m < sim->num_mrs; m++) {
		const struct sim_mr *mr = &sim->mrs[m];

		if (mr->host == host && mr->len && i >= mr->off && i < mr->off + mr->len)
			sim_fail(sim, "memory of host %u differs at offset %u (+%u of MR %x), %u bytes", host->id, i,
				 i - mr->off, mr->key, n);
	}
	sim_fail(sim, "memory of host %u differs at offset %u, outside of every MR, %u bytes", host->id, i, n);
}

void sim_model_final(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_rqs; i++)
		settle_recvs(&sim->rqs[i]);
	settle_counter(sim, &sim->counter);
	for (unsigned i = 0; i < sim->num_qps; i++) {
		if (sim->qps[i].type == ROCI_QPT_RC)
			settle_rc(sim, &sim->qps[i]);
		else if (sim->qps[i].type == ROCI_QPT_UC)
			settle_uc(sim, &sim->qps[i]);
	}
	for (unsigned i = 0; i < sim->num_hosts; i++)
		compare(sim, &sim->hosts[i]);
}
