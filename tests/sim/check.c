/* SPDX-License-Identifier: BSD-2-Clause */
/* What completions and events must be. */
#include "sim.h"

struct sim_qp *sim_find_qp(struct sim *sim, uint32_t qpn)
{
	for (unsigned i = 0; i < sim->num_qps; i++)
		if (sim->qps[i].qpn == qpn)
			return &sim->qps[i];
	return NULL;
}

static bool overran(const struct sim_cq *cq)
{
	return cq->may_overrun && roci_cq_overrun(cq->cq);
}

bool sim_err_legit(const struct sim_qp *qp)
{
	return overran(qp->send_cq) || overran(qp->recv_cq) || qp->failed || qp->moved_to_err ||
	       qp->peer_fault_posted || qp->recv_failed;
}

bool sim_in_error(const struct sim_qp *qp)
{
	return !qp->qp || roci_qp_state(qp->qp) == ROCI_QPS_ERR || roci_qp_state(qp->qp) == ROCI_QPS_SQE;
}

/* ---- sends ---- */

/* The peer refused a work request, and nothing else made it silent. */
static bool refused_only(const struct sim_qp *qp)
{
	const struct sim_qp *peer = qp->peer;
	uint32_t refusals = BIT(ROCI_WC_REM_ACCESS_ERR) | BIT(ROCI_WC_REM_INV_REQ_ERR) | BIT(ROCI_WC_REM_OP_ERR);

	return qp->fault_wr >= 0 && (qp->wrs[qp->fault_wr].must & refusals) && !qp->dereg && !peer->failed &&
	       !peer->moved_to_err && !peer->gone && !overran(peer->send_cq) && !overran(peer->recv_cq);
}

/* A timeout is right where the peer is gone or the network is slow. Otherwise each try must have lost a packet. */
static bool silence_legit(const struct sim_qp *qp, const struct sim_wr *wr)
{
	const struct sim *sim = qp->sim;
	const struct sim_qp *peer = qp->peer;

	/* A NAK was sent and not lost, nor taken for forged because it came from another port. A responder sends it
	 * once. */
	if (!sim->net.lossy && !sim->net.ns_per_kb && !sim->retry_legal && !peer->moved && !peer->repathed &&
	    refused_only(qp))
		return false;
	if (sim->net.ns_per_kb || sim->retry_legal || peer->gone || sim_err_legit(peer) || sim_in_error(peer))
		return true;
	/* From a new port, packets are refused until one proves it, as if they were lost: until the first timeout at
	 * the latest. Where a clock leaped, the round trip seems long, and the probe comes after the timeout. */
	if ((sim->clocks || !qp->retry_cnt) && (qp->moved || peer->moved))
		return true;
	return qp->lost - wr->lost_before > qp->retry_cnt;
}

static void first_failure(struct sim_qp *qp, struct sim_wr *wr, uint32_t status)
{
	struct sim *sim = qp->sim;
	uint32_t allowed = wr->must | wr->may;

	if (qp->type == ROCI_QPT_RC && silence_legit(qp, wr))
		allowed |= BIT(ROCI_WC_RETRY_EXC_ERR);
	if (qp->type == ROCI_QPT_RC && qp->rnr_retry < 7 && qp->rnr_naks > qp->rnr_retry)
		allowed |= BIT(ROCI_WC_RNR_RETRY_EXC_ERR);
	if (sim_err_legit(qp))
		allowed |= BIT(ROCI_WC_WR_FLUSH_ERR);
	sim_check(sim, status < 32 && (allowed & BIT(status)),
		  "QP %u WR %u (opcode %d, fault %s) failed with status %u; allowed: mask %x", qp->id, wr->index,
		  wr->opcode, sim_fault_str(wr->fault), status, allowed);
	sim_check(sim, status != ROCI_WC_RETRY_EXC_ERR || qp->resent >= qp->retry_cnt,
		  "QP %u gave up after %llu retransmissions, retry_cnt %u", qp->id, (unsigned long long)qp->resent,
		  qp->retry_cnt);
	qp->failed = true;
	qp->failed_wr = wr->index;
	qp->failed_status = status;
	wr->failed = true;
	sim->stats.errors++;
}

static void check_fetched(struct sim_qp *qp, struct sim_wr *wr)
{
	struct sim *sim = qp->sim;
	struct sim_counter *c = wr->counter;

	for (unsigned i = 0; i < wr->num_sge; i++) {
		const struct sim_piece *p = &wr->pieces[i];

		if (c)
			memcpy(qp->host->shadow + p->off, qp->host->mem + p->off, p->len);
		sim_check(sim, !memcmp(qp->host->mem + p->off, qp->host->shadow + p->off, p->len),
			  "QP %u WR %u (opcode %d): wrong data at completion, SGE %u", qp->id, wr->index, wr->opcode,
			  i);
	}
	if (!c)
		return;
	memcpy(&c->seen[c->count].orig, qp->host->mem + wr->pieces[0].off, 8);
	c->seen[c->count++].add = wr->compare_add;
}

void sim_succeed(struct sim_qp *qp, struct sim_wr *wr)
{
	struct sim *sim = qp->sim;

	sim_check(sim, !wr->must, "QP %u WR %u (opcode %d) succeeded in spite of: %s", qp->id, wr->index, wr->opcode,
		  sim_fault_str(wr->fault));
	wr->ok = true;
	sim->stats.bytes += wr->len;
	if (qp->type != ROCI_QPT_RC)
		return;
	sim_model_execute(qp, wr->index + 1);
	switch (wr->opcode) {
	case ROCI_WR_RDMA_READ:
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: check_fetched(qp, wr); break;
	default: break;
	}
}

static uint32_t wc_opcode(enum roci_wr_opcode opcode)
{
	switch (opcode) {
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM: return ROCI_WC_RDMA_WRITE;
	case ROCI_WR_RDMA_READ: return ROCI_WC_RDMA_READ;
	case ROCI_WR_ATOMIC_CMP_AND_SWP: return ROCI_WC_COMP_SWAP;
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return ROCI_WC_FETCH_ADD;
	case ROCI_WR_LOCAL_INV: return ROCI_WC_LOCAL_INV;
	case ROCI_WR_BIND_MW: return ROCI_WC_BIND_MW;
	case ROCI_WR_FLUSH: return ROCI_WC_FLUSH;
	case ROCI_WR_ATOMIC_WRITE: return ROCI_WC_ATOMIC_WRITE;
	default: return ROCI_WC_SEND;
	}
}

static void check_success(struct sim_qp *qp, const struct sim_wr *wr, const struct roci_cqe *cqe)
{
	struct sim *sim = qp->sim;
	bool counts = wr->opcode == ROCI_WR_RDMA_READ || wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP ||
		      wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD;

	sim_check(sim, wr->signaled, "QP %u WR %u completed though it is unsignaled", qp->id, wr->index);
	sim_check(sim, cqe->opcode == wc_opcode(wr->opcode), "QP %u WR %u: completion opcode %u", qp->id, wr->index,
		  cqe->opcode);
	sim_check(sim, !counts || cqe->byte_len == wr->len, "QP %u WR %u: byte_len %u, not %u", qp->id, wr->index,
		  cqe->byte_len, wr->len);
}

static void check_send(struct sim_cq *cq, const struct roci_cqe *cqe)
{
	struct sim *sim = cq->host->sim;
	unsigned id = cqe->wr_id >> 32, index = (uint32_t)cqe->wr_id;
	struct sim_qp *qp;

	sim_check(sim, id < sim->num_qps, "completion of unknown work request %llx", (unsigned long long)cqe->wr_id);
	qp = &sim->qps[id];
	sim_check(sim, qp->send_cq == cq && qp->qpn == cqe->qpn, "QP %u WR %u completed in the wrong CQ or QPN", id,
		  index);
	sim_check(sim, !qp->purged, "QP %u: a completion after the QP was reset and its CQ purged", id);
	sim_check(sim, index < qp->posted, "QP %u WR %u completed before it was posted", id, index);
	sim_check(sim, index >= qp->done, "QP %u WR %u completed twice or out of order (done: %u)", id, index,
		  qp->done);
	cq->wanted_seen |= cqe->status != ROCI_WC_SUCCESS;
	for (unsigned i = qp->done; i < index; i++) {
		sim_check(sim, !qp->failed && !qp->wrs[i].signaled, "QP %u WR %u has no completion", id, i);
		sim_succeed(qp, &qp->wrs[i]);
	}
	qp->done = index + 1;
	if (qp->failed) {
		sim_check(sim, cqe->status == ROCI_WC_WR_FLUSH_ERR, "QP %u WR %u after a failure: status %u", id, index,
			  cqe->status);
		qp->wrs[index].failed = true;
	} else if (cqe->status == ROCI_WC_SUCCESS) {
		check_success(qp, &qp->wrs[index], cqe);
		sim_succeed(qp, &qp->wrs[index]);
	} else {
		first_failure(qp, &qp->wrs[index], cqe->status);
	}
	sim_check(sim, !qp->failed || qp->gone || sim_in_error(qp), "QP %u is not in error after WR %u failed", id,
		  index);
}

/* ---- receives ---- */

static bool same_data(const struct sim_qp *from, const struct sim_wr *wr, const struct sim_rq *rq,
		      const struct sim_recv *recv, uint32_t skip)
{
	static uint8_t want[1u << 21], got[1u << 21];

	sim_wr_data(from, wr, want);
	sim_gather(rq->host->mem, recv->pieces, recv->num_sge, wr->len + skip, got);
	return !memcmp(want, got + skip, wr->len);
}

/* Compares the completion with the message. Returns NULL, or what differs. */
static const char *mismatch(const struct sim_qp *from, const struct sim_wr *wr, const struct sim_rq *rq,
			    const struct sim_recv *recv, const struct roci_cqe *cqe)
{
	bool write = wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM;
	bool imm = write || wr->opcode == ROCI_WR_SEND_WITH_IMM, inv = wr->opcode == ROCI_WR_SEND_WITH_INV;
	uint32_t skip = from->type == ROCI_QPT_UD ? ROCI_GRH_BYTES : 0;
	uint32_t flags = (imm ? ROCI_WC_WITH_IMM : 0) | (inv ? ROCI_WC_WITH_INV : 0) | (skip ? ROCI_WC_GRH : 0);

	if (cqe->opcode != (write ? ROCI_WC_RECV_RDMA_WITH_IMM : ROCI_WC_RECV))
		return "opcode";
	if (cqe->byte_len != wr->len + skip)
		return "byte_len";
	if (cqe->flags != flags)
		return "flags";
	if ((imm || inv) && cqe->imm != wr->imm)
		return "immediate data or invalidated key";
	if (cqe->src_qpn != from->qpn)
		return "src_qpn";
	if (!write && !same_data(from, wr, rq, recv, skip))
		return "data";
	return NULL;
}

static void accept(struct sim_qp *from, struct sim_wr *wr, struct sim_rq *rq, struct sim_recv *recv, struct sim_cq *cq)
{
	static uint8_t data[1u << 21];
	uint32_t skip = from->type == ROCI_QPT_UD ? ROCI_GRH_BYTES : 0;

	cq->wanted_seen |= !!(wr->flags & ROCI_SEND_SOLICITED);
	wr->deliveries++;
	if (from->type == ROCI_QPT_UC) {
		/* The first bytes of an incomplete message may lie behind this one. */
		for (unsigned i = 0; i < recv->num_sge; i++)
			memcpy(rq->host->shadow + recv->pieces[i].off, rq->host->mem + recv->pieces[i].off,
			       recv->pieces[i].len);
		return;
	}
	if (wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM)
		return;
	sim_gather(rq->host->mem, recv->pieces, recv->num_sge, skip, data);
	sim_wr_data(from, wr, data + skip);
	sim_scatter(rq->host->shadow, recv->pieces, recv->num_sge, wr->len + skip, data);
}

static struct sim_wr *next_message(struct sim_qp *from, unsigned start)
{
	for (unsigned i = start; i < from->posted; i++)
		if (from->wrs[i].consumes_recv)
			return &from->wrs[i];
	return NULL;
}

static void receive_rc(struct sim_qp *qp, struct sim_rq *rq, struct sim_recv *recv, struct sim_cq *cq,
		       const struct roci_cqe *cqe)
{
	struct sim *sim = qp->sim;
	struct sim_wr *wr = next_message(qp->peer, qp->recv_cursor);
	const char *what;

	sim_check(sim, wr, "QP %u received a message that nobody sent", qp->id);
	sim_check(sim, wr->fault != SIM_FAULT_INV_KEY && (!wr->must || qp->peer->fault == SIM_FAULT_NO_RECV),
		  "QP %u received what must fail: %s", qp->id, sim_fault_str(wr->fault));
	sim_model_execute(qp->peer, wr->index + 1);
	what = mismatch(qp->peer, wr, rq, recv, cqe);
	sim_check(sim, !what,
		  "QP %u received WR %u of its peer wrongly: %s (completion: opcode %u, %u bytes, flags %x)", qp->id,
		  wr->index, what, cqe->opcode, cqe->byte_len, cqe->flags);
	accept(qp->peer, wr, rq, recv, cq);
	qp->recv_cursor = wr->index + 1;
}

/* Messages that look the same may still differ in whether they are solicited. */
static bool ambiguous(struct sim_qp *from, const struct sim_wr *wr, struct sim_rq *rq, struct sim_recv *recv,
		      const struct roci_cqe *cqe)
{
	for (unsigned i = 0; i < from->posted; i++) {
		const struct sim_wr *other = &from->wrs[i];

		if (other->consumes_recv && ((other->flags ^ wr->flags) & ROCI_SEND_SOLICITED) &&
		    !mismatch(from, other, rq, recv, cqe))
			return true;
	}
	return false;
}

static void receive_uc(struct sim_qp *qp, struct sim_rq *rq, struct sim_recv *recv, struct sim_cq *cq,
		       const struct roci_cqe *cqe)
{
	struct sim_wr *wr = next_message(qp->peer, qp->recv_cursor);

	while (wr && mismatch(qp->peer, wr, rq, recv, cqe))
		wr = next_message(qp->peer, wr->index + 1);
	sim_check(qp->sim, wr, "QP %u (UC) received what its peer did not send, or out of order: %u bytes", qp->id,
		  cqe->byte_len);
	cq->unsure |= ambiguous(qp->peer, wr, rq, recv, cqe);
	if (wr->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM)
		sim_model_execute_one(qp->peer, wr);
	accept(qp->peer, wr, rq, recv, cq);
	qp->recv_cursor = wr->index + 1;
}

/* The 40 bytes in front of a datagram, for RoCEv2: the IP header (IPv4 in the last 20). */
static void check_grh(struct sim_qp *qp, const struct sim_rq *rq, const struct sim_recv *recv)
{
	uint8_t grh[ROCI_GRH_BYTES];
	const uint8_t *src = qp->peer->host->gid, *dst = qp->host->gid;
	bool ok;

	sim_gather(rq->host->mem, recv->pieces, recv->num_sge, sizeof(grh), grh);
	if (src[0])
		ok = grh[0] >> 4 == 6 && grh[6] == 17 && !memcmp(grh + 8, src, 16) && !memcmp(grh + 24, dst, 16);
	else
		ok = grh[20] == 0x45 && grh[29] == 17 && !memcmp(grh + 32, src + 12, 4) &&
		     !memcmp(grh + 36, dst + 12, 4);
	sim_check(qp->sim, ok, "QP %u (UD): the GRH is wrong", qp->id);
}

static void receive_ud(struct sim_qp *qp, struct sim_rq *rq, struct sim_recv *recv, struct sim_cq *cq,
		       const struct roci_cqe *cqe)
{
	struct sim_wr *wr = next_message(qp->peer, 0);
	bool twice = qp->sim->net.dup;

	while (wr && ((wr->deliveries && !twice) || wr->deliveries > 2 || mismatch(qp->peer, wr, rq, recv, cqe)))
		wr = next_message(qp->peer, wr->index + 1);
	sim_check(qp->sim, wr, "QP %u (UD) received what its peer did not send: %u bytes", qp->id, cqe->byte_len);
	cq->unsure |= ambiguous(qp->peer, wr, rq, recv, cqe);
	check_grh(qp, rq, recv);
	accept(qp->peer, wr, rq, recv, cq);
}

/* The status of the responder's completion after a mistake. */
static uint32_t recv_status_of(const struct sim_qp *from, const struct sim_wr *wr)
{
	switch (wr->fault) {
	case SIM_FAULT_RECV_SHORT: return BIT(ROCI_WC_LOC_LEN_ERR);
	case SIM_FAULT_RECV_LKEY: return BIT(ROCI_WC_LOC_PROT_ERR);
	case SIM_FAULT_NONE:
		if (!from->dereg)
			return 0;
		break;
	default: break;
	}
	/* An error in the request: the receive is flushed, or reports the cause where it was taken. */
	return BIT(ROCI_WC_LOC_QP_OP_ERR) | BIT(ROCI_WC_LOC_ACCESS_ERR) | BIT(ROCI_WC_REM_INV_REQ_ERR) |
	       BIT(ROCI_WC_REM_ACCESS_ERR) | BIT(ROCI_WC_LOC_PROT_ERR);
}

static void receive_failed(struct sim_qp *qp, struct sim_recv *recv, const struct roci_cqe *cqe)
{
	struct sim *sim = qp->sim;
	struct sim_wr *wr = next_message(qp->peer, qp->recv_cursor);

	recv->failed = true;
	sim_check(sim, qp->gone || sim_in_error(qp), "QP %u is not in error, but a receive failed with %u", qp->id,
		  cqe->status);
	if (cqe->status == ROCI_WC_WR_FLUSH_ERR) {
		qp->error_unexplained = true;
		qp->recv_flushed = true;
		return;
	}
	sim_check(sim, !qp->recv_failed && !qp->recv_flushed, "QP %u: receive failed with %u after another", qp->id,
		  cqe->status);
	sim_check(sim, wr && (recv_status_of(qp->peer, wr) & BIT(cqe->status)),
		  "QP %u: a receive failed with status %u, peer's WR %d (%s)", qp->id, cqe->status,
		  wr ? (int)wr->index : -1, wr ? sim_fault_str(wr->fault) : "");
	qp->recv_failed = true;
}

static void check_recv(struct sim_cq *cq, const struct roci_cqe *cqe)
{
	struct sim *sim = cq->host->sim;
	unsigned id = cqe->wr_id >> 32 & 0x7fffffff, index = (uint32_t)cqe->wr_id;
	struct sim_qp *qp = sim_find_qp(sim, cqe->qpn);
	struct sim_recv *recv;
	struct sim_rq *rq;

	sim_check(sim, id < sim->num_rqs && qp, "completion of unknown receive %llx", (unsigned long long)cqe->wr_id);
	rq = &sim->rqs[id];
	sim_check(sim, qp->rq == rq && qp->recv_cq == cq, "RQ %u receive %u completed in the wrong QP or CQ", id,
		  index);
	sim_check(sim, index < rq->posted, "RQ %u receive %u completed before it was posted", id, index);
	recv = &rq->recvs[index];
	sim_check(sim, !recv->done, "RQ %u receive %u completed twice", id, index);
	sim_check(sim, !qp->purged, "QP %u: a receive completed after it was reset and its CQ purged", qp->id);
	sim_check(sim, rq->srq || index == qp->recv_next++, "RQ %u receive %u completed out of order", id, index);
	recv->done = true;
	rq->polled++;
	if (cqe->status != ROCI_WC_SUCCESS) {
		cq->wanted_seen = true;
		receive_failed(qp, recv, cqe);
		return;
	}
	sim_check(sim, !qp->recv_failed && !qp->recv_flushed, "QP %u: a receive succeeded after another failed",
		  qp->id);
	switch (qp->type) {
	case ROCI_QPT_RC: receive_rc(qp, rq, recv, cq, cqe); break;
	case ROCI_QPT_UC: receive_uc(qp, rq, recv, cq, cqe); break;
	default: receive_ud(qp, rq, recv, cq, cqe); break;
	}
}

void sim_check_cqe(struct sim_cq *cq, const struct roci_cqe *cqe)
{
	sim_trace(cq->host->sim, "host %u: completion of %s %u of %u: status %u, opcode %u, %u bytes", cq->host->id,
		  cqe->wr_id >> 63 ? "receive" : "work request", (uint32_t)cqe->wr_id,
		  (uint32_t)(cqe->wr_id >> 32 & 0x7fffffff), cqe->status, cqe->opcode, cqe->byte_len);
	sim_cover_completion(cq->host->sim, cqe, cqe->wr_id >> 63);
	if (cqe->wr_id >> 63)
		check_recv(cq, cqe);
	else
		check_send(cq, cqe);
}
