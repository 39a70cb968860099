/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches the wire: each packet must follow from the work requests, and answers must be true. */
#include "sim.h"

#include "engine/qp.h"
#include "engine/response_ring.h"
#include "wire/print.h"
#include "wire/rnr_timer.h"

static uint8_t data[SIM_ARENA_BYTES];

void sim_monitor_setup(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_qps; i++)
		sim->qps[i].seen = sim_alloc(sim, sim->qps[i].total_packets + 1);
}

/* The work request that owns the packet at `off`, among those that were posted. */
static struct sim_wr *wr_at(struct sim_qp *qp, uint32_t off)
{
	unsigned lo = 0, hi = qp->posted;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		struct sim_wr *wr = &qp->wrs[mid];

		if (wr->psn_off + wr->packets <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < qp->posted ? &qp->wrs[lo] : NULL;
}

static bool is_rd_atomic(const struct sim_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_RDMA_READ:
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
	case ROCI_WR_FLUSH:
	case ROCI_WR_ATOMIC_WRITE: return true;
	default: return false;
	}
}

static uint8_t send_operation(enum roci_wr_opcode opcode, bool first, bool last)
{
	if (!last)
		return first ? ROCI_OP_SEND_FIRST : ROCI_OP_SEND_MIDDLE;
	switch (opcode) {
	case ROCI_WR_SEND_WITH_IMM: return first ? ROCI_OP_SEND_ONLY_IMM : ROCI_OP_SEND_LAST_IMM;
	case ROCI_WR_SEND_WITH_INV: return first ? ROCI_OP_SEND_ONLY_INV : ROCI_OP_SEND_LAST_INV;
	default: return first ? ROCI_OP_SEND_ONLY : ROCI_OP_SEND_LAST;
	}
}

static uint8_t write_operation(enum roci_wr_opcode opcode, bool first, bool last)
{
	if (!last)
		return first ? ROCI_OP_WRITE_FIRST : ROCI_OP_WRITE_MIDDLE;
	if (opcode == ROCI_WR_RDMA_WRITE_WITH_IMM)
		return first ? ROCI_OP_WRITE_ONLY_IMM : ROCI_OP_WRITE_LAST_IMM;
	return first ? ROCI_OP_WRITE_ONLY : ROCI_OP_WRITE_LAST;
}

static uint8_t operation_of(const struct sim_wr *wr, uint32_t i)
{
	bool first = i == 0, last = i + 1 == wr->packets;

	switch (wr->opcode) {
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM: return write_operation(wr->opcode, first, last);
	case ROCI_WR_RDMA_READ: return ROCI_OP_READ_REQUEST;
	case ROCI_WR_ATOMIC_CMP_AND_SWP: return ROCI_OP_COMPARE_SWAP;
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return ROCI_OP_FETCH_ADD;
	case ROCI_WR_FLUSH: return ROCI_OP_FLUSH;
	case ROCI_WR_ATOMIC_WRITE: return ROCI_OP_ATOMIC_WRITE;
	default: return send_operation(wr->opcode, first, last);
	}
}

/* The i-th packet of `wr` carries this much. */
static uint32_t segment(const struct sim_qp *qp, const struct sim_wr *wr, uint32_t i)
{
	uint32_t full = sim_segment(qp, wr), done = i * full;

	return wr->len - done < full ? wr->len - done : full;
}

/* A READ may be asked for in pieces, each a message of its own: whole packets, but for the end. */
static bool wrong_piece(const struct sim_qp *qp, const struct sim_wr *wr, uint32_t i, const struct roci_packet *pkt)
{
	uint32_t left = wr->len - i * sim_segment(qp, wr);

	if (wr->opcode == ROCI_WR_FLUSH)
		return pkt->dma_len != wr->flush_len;

	if (wr->opcode != ROCI_WR_RDMA_READ)
		return pkt->dma_len != left;
	return pkt->dma_len != left && (pkt->dma_len > left || !pkt->dma_len || pkt->dma_len % qp->segment);
}

/* PSNs that a request packet takes. */
static uint32_t span_of(const struct sim_qp *qp, const struct roci_packet *pkt)
{
	if (pkt->op->kind != ROCI_KIND_READ_REQUEST || !pkt->dma_len)
		return 1;
	return (uint32_t)(((uint64_t)pkt->dma_len + qp->segment - 1) / qp->segment);
}

/* It may have more READs outstanding than others, and asks for any part of one again: see far_read.h. */
static bool reads_far(const struct sim_qp *qp)
{
	return qp->qp && qp->qp->req.far_read;
}

/* A READ request that was sent before, in case that one is lost. */
static bool is_copy(const struct sim_qp *qp, const struct roci_packet *pkt, uint32_t off)
{
	return pkt->solicited && pkt->op->kind == ROCI_KIND_READ_REQUEST && reads_far(qp) && off < qp->sent_next;
}

static const char *wrong_headers(const struct sim_qp *qp, const struct sim_wr *wr, uint32_t i,
				 const struct roci_packet *pkt)
{
	unsigned h = pkt->op->headers;
	bool last = i + 1 == wr->packets;
	bool se = last && wr->consumes_recv && (wr->flags & ROCI_SEND_SOLICITED);

	if (pkt->opcode != ((qp->type == ROCI_QPT_UC   ? ROCI_TRANSPORT_UC
			     : qp->type == ROCI_QPT_UD ? ROCI_TRANSPORT_UD
						       : ROCI_TRANSPORT_RC) |
			    operation_of(wr, i)))
		return "opcode";
	if (pkt->pkey != ROCI_PKEY_DEFAULT)
		return "P_Key";
	if (pkt->solicited != (se || is_copy(qp, pkt, wr->psn_off + i)))
		return "solicited bit";
	if ((h & 1 << ROCI_HDR_DETH) && (pkt->qkey != wr->qkey || pkt->src_qpn != qp->qpn))
		return "DETH";
	if ((h & 1 << ROCI_HDR_RETH) && (pkt->va != wr->remote_addr + (uint64_t)i * sim_segment(qp, wr) ||
					 pkt->rkey != wr->rkey || wrong_piece(qp, wr, i, pkt)))
		return "RETH";
	if ((h & 1 << ROCI_HDR_FETH) && pkt->feth != wr->feth)
		return "FETH";
	if ((h & 1 << ROCI_HDR_ATOMICETH) && (pkt->va != wr->remote_addr || pkt->rkey != wr->rkey))
		return "AtomicETH";
	if (wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP && (pkt->compare != wr->compare_add || pkt->swap_add != wr->swap))
		return "compare or swap";
	if (wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD && pkt->swap_add != wr->compare_add)
		return "add";
	if ((h & 1 << ROCI_HDR_IMMDT) && pkt->imm != wr->imm)
		return "ImmDt";
	if ((h & 1 << ROCI_HDR_IETH) && pkt->inv_rkey != wr->imm)
		return "IETH";
	return NULL;
}

static const char *wrong_payload(const struct sim_qp *qp, const struct sim_wr *wr, uint32_t i,
				 const struct roci_packet *pkt)
{
	if (!pkt->op->payload)
		return pkt->payload_len ? "payload" : NULL;
	if (pkt->payload_len != segment(qp, wr, i))
		return "payload length";
	if (wr->from_read || wr->packets > 8)
		return NULL; /* not known yet, or too long to check for each packet */
	sim_wr_data(qp, wr, data);
	return memcmp(data + i * sim_segment(qp, wr), pkt->payload, pkt->payload_len) ? "payload" : NULL;
}

/* READ requests and atomics of `wr` that were sent and not answered in full. */
static unsigned outstanding(const struct sim_qp *qp, const struct sim_wr *wr)
{
	uint32_t end = wr->psn_off + wr->packets < qp->sent_next ? wr->psn_off + wr->packets : qp->sent_next;
	unsigned n = 0;
	bool missing = false;

	if (!is_rd_atomic(wr) || wr->finished_on_wire)
		return 0;
	for (uint32_t off = wr->psn_off; off < end; off++) {
		missing |= !(qp->seen[off] & SIM_SEEN_RESPONSE);
		if (!(qp->seen[off] & SIM_SEEN_END))
			continue;
		n += missing;
		missing = false;
	}
	return n;
}

static void check_new(struct sim *sim, struct sim_qp *qp, struct sim_wr *wr, uint32_t off, uint32_t span)
{
	unsigned out = 0;

	sim_check(sim, off == qp->sent_next, "QP %u: PSN gap, +%u after +%u", qp->id, off, qp->sent_next);
	/* One may have been started that waited for the window. */
	sim_check(sim, off != wr->psn_off || !qp->sqd || !qp->sqd_started++, "QP %u started WR %u in SQD", qp->id,
		  wr->index);
	sim_check(sim, !qp->sqd || !qp->sq_drained_seen, "QP %u sends WR %u after it was drained", qp->id, wr->index);
	for (unsigned i = 0; i <= wr->index; i++) {
		unsigned before = outstanding(qp, &qp->wrs[i]);

		out += before;
		sim_check(sim, i == wr->index || !before || !(wr->flags & ROCI_SEND_FENCE),
			  "QP %u WR %u did not wait at the fence for WR %u", qp->id, wr->index, i);
	}
	sim_check(sim,
		  !is_rd_atomic(wr) ||
			  out < (reads_far(qp) && wr->opcode == ROCI_WR_RDMA_READ ? ROCI_FAR_READS : qp->max_rd),
		  "QP %u WR %u: more than %u READs and atomics outstanding", qp->id, wr->index, qp->max_rd);
	if (off == wr->psn_off)
		wr->lost_before = qp->lost;
	qp->sent_next = off + span;
	if (is_rd_atomic(wr) || qp->sent_next == wr->psn_off + wr->packets)
		qp->seen[qp->sent_next - 1] |= SIM_SEEN_END;
}

/* A packet that is sent again is the same packet; a READ request may be its tail. */
static void check_again(struct sim *sim, struct sim_qp *qp, const struct sim_wr *wr, const struct roci_packet *pkt,
			uint32_t off, uint32_t span)
{
	qp->resent++;
	if (is_copy(qp, pkt, off))
		return;
	qp->asked_for_parts |= reads_far(qp);
	sim_check(sim, off + span <= qp->sent_next, "QP %u WR %u: asks again for more than before", qp->id, wr->index);
	for (uint32_t i = 0; span > 1 && i < span && !qp->asked_for_parts; i++)
		sim_check(sim, !(qp->seen[off + i] & SIM_SEEN_END) == (i + 1 < span),
			  "QP %u WR %u: asks again for what is not a tail", qp->id, wr->index);
}

#define BEFORE_ALL ROCI_PSN_MASK /* offset of the PSN before the first */

/* A question what has arrived (src/engine/probe.h): it changes nothing at the peer, which must have had its PSN. */
static bool is_probe(const struct sim_qp *qp, const struct roci_packet *pkt, uint32_t off)
{
	return qp->type == ROCI_QPT_RC && pkt->opcode == ROCI_OP_WRITE_ONLY && pkt->ack_req && !pkt->dma_len &&
	       !pkt->va && !pkt->rkey && !pkt->payload_len && (off == BEFORE_ALL || off < qp->delivered_next);
}

static void request_sent(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt)
{
	uint32_t off = (pkt->psn - qp->sq_psn) & ROCI_PSN_MASK;
	struct sim_wr *wr = wr_at(qp, off);
	const char *what;

	if (is_probe(qp, pkt, off))
		return;
	sim_check(sim, wr && !qp->gone, "QP %u sent PSN +%u, which no work request has", qp->id, off);
	sim_check(sim, roci_qp_state(qp->qp) != ROCI_QPS_ERR, "QP %u sends requests in ERR", qp->id);
	/* An RNR NAK from a new port may have been refused. */
	sim_check(sim,
		  sim->now >= qp->quiet_until || off < qp->quiet_off || qp->quiet_unsure || sim->net.move ||
			  sim->clocks || qp->peer->repathed,
		  "QP %u did not wait for the RNR timer: %llu ns early", qp->id,
		  (unsigned long long)(qp->quiet_until - sim->now));
	what = wrong_headers(qp, wr, off - wr->psn_off, pkt);
	sim_check(sim, !what, "QP %u WR %u packet %u: wrong %s", qp->id, wr->index, off - wr->psn_off, what);
	sim_check(sim, qp->type == ROCI_QPT_RC || off >= qp->sent_next, "QP %u: retransmission over %s", qp->id,
		  qp->type == ROCI_QPT_UC ? "UC" : "UD");
	if (off >= qp->sent_next)
		check_new(sim, qp, wr, off, span_of(qp, pkt));
	else
		check_again(sim, qp, wr, pkt, off, span_of(qp, pkt));
	what = wrong_payload(qp, wr, off - wr->psn_off, pkt);
	sim_check(sim, !what, "QP %u WR %u packet %u: wrong %s", qp->id, wr->index, off - wr->psn_off, what);
}

/* ---- answers; `qp` is the requester that they are for ---- */

static uint32_t messages_before(const struct sim_qp *qp, uint32_t off)
{
	uint32_t n = 0;

	while (off--)
		n += !!(qp->seen[off] & SIM_SEEN_END);
	return n;
}

/* Only what has arrived may be acknowledged, and MSN counts it (IBTA 9.7.7.1). */
static void check_aeth(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt, uint32_t off)
{
	uint8_t type = pkt->syndrome & ROCI_AETH_TYPE_MASK, value = pkt->syndrome & ROCI_AETH_VALUE_MASK;
	bool gap = type == ROCI_AETH_NAK && value == ROCI_NAK_PSN_SEQUENCE;
	bool ack = type == ROCI_AETH_ACK && pkt->op->kind == ROCI_KIND_ACK;
	uint32_t least, most = messages_before(qp, qp->delivered_next);

	if (ack && off == BEFORE_ALL) /* the answer to a probe */
		return;
	/* to a duplicate from before the first packet, forged or of an earlier connection */
	if (ack && (sim->attacked || sim->earlier) && off > ROCI_PSN_MASK / 2)
		return;
	least = messages_before(qp, ack ? off + 1 : off);
	sim_check(sim, off < qp->delivered_next || (gap && off == qp->delivered_next),
		  "QP %u answered PSN +%u (%s), but +%u has not arrived", qp->peer->id, off,
		  roci_syndrome_str(pkt->syndrome), qp->delivered_next);
	if (!sim_in_error(qp->peer))
		sim_check(sim, pkt->msn >= least && pkt->msn <= most,
			  "QP %u answered PSN +%u with MSN %u, which is not in %u..%u", qp->peer->id, off, pkt->msn,
			  least, most);
	sim_check(sim, type == ROCI_AETH_ACK || type == ROCI_AETH_RNR_NAK || type == ROCI_AETH_NAK,
		  "reserved syndrome %x", pkt->syndrome);
	if (type == ROCI_AETH_NAK && !gap)
		sim_check(sim, qp->peer->peer_fault_posted, "QP %u: %s for no reason", qp->peer->id,
			  roci_syndrome_str(pkt->syndrome));
	if (type == ROCI_AETH_RNR_NAK) {
		const struct sim_wr *wr = wr_at(qp, off);

		sim_check(sim, !qp->peer->rq->never_rnr, "QP %u: RNR NAK, but receives are there", qp->peer->id);
		sim_check(sim, wr && wr->consumes_recv, "QP %u: RNR NAK for what needs no receive", qp->peer->id);
		sim_check(sim, value == qp->peer->min_rnr_timer, "QP %u: RNR NAK with timer code %u", qp->peer->id,
			  value);
		sim->stats.rnr++;
	}
	sim->stats.naks += type == ROCI_AETH_NAK;
}

static void check_read_response(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt, uint32_t off)
{
	struct sim_wr *wr = wr_at(qp, off);
	uint32_t i = wr ? off - wr->psn_off : 0;

	sim_check(sim, wr && is_rd_atomic(wr) && off < qp->delivered_next,
		  "QP %u: READ response for PSN +%u, which asked for none", qp->peer->id, off);
	if (wr->opcode == ROCI_WR_ATOMIC_WRITE || wr->opcode == ROCI_WR_FLUSH) {
		sim_check(sim, pkt->op->first && pkt->op->last && !pkt->payload_len,
			  "bad answer to ATOMIC WRITE or FLUSH");
		return;
	}
	sim_check(sim, wr->opcode == ROCI_WR_RDMA_READ, "QP %u: READ response to an atomic", qp->peer->id);
	sim_check(sim, pkt->payload_len == segment(qp, wr, i), "QP %u: READ response %u of %u has %u bytes",
		  qp->peer->id, i, wr->packets, pkt->payload_len);
	sim_check(sim,
		  qp->asked_for_parts || (pkt->op->last == !!(qp->seen[off] & SIM_SEEN_END) &&
					  (pkt->op->first || (i && !(qp->seen[off - 1] & SIM_SEEN_END)))),
		  "QP %u: READ response %u of %u is called %s", qp->peer->id, i, wr->packets, pkt->op->name);
}

/* A UC receiver's answer (src/engine/uc_flow.h): it says how far the receiver is, not what has arrived. */
static void advice_sent(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt)
{
	sim_check(sim, pkt->op->kind == ROCI_KIND_ACK && (pkt->syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_ACK,
		  "QP %u: a UC receiver sent %s", qp->peer->id, pkt->op->name);
	sim_check(sim, ((pkt->psn - qp->sq_psn) & ROCI_PSN_MASK) < qp->sent_next, "QP %u: advice about the future",
		  qp->peer->id);
}

static void response_sent(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt)
{
	uint32_t off = (pkt->psn - qp->sq_psn) & ROCI_PSN_MASK;
	struct sim_wr *wr = wr_at(qp, off);

	if (pkt->op->headers & 1 << ROCI_HDR_AETH)
		check_aeth(sim, qp, pkt, off);
	if (pkt->op->kind == ROCI_KIND_READ_RESPONSE)
		check_read_response(sim, qp, pkt, off);
	if (pkt->op->kind == ROCI_KIND_ATOMIC_ACK)
		sim_check(
			sim,
			wr && (wr->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP || wr->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD),
			"QP %u: atomic acknowledge for no atomic", qp->peer->id);
}

void sim_monitor_sent(struct sim *sim, struct sim_host *from, const struct roci_packet *pkt)
{
	struct sim_qp *dest = sim_find_qp(sim, pkt->dest_qpn);

	sim_check(sim, dest && dest->peer->host == from, "packet to QPN %x, which host %u has nothing to do with",
		  pkt->dest_qpn, from->id);
	sim_cover_packet(sim, pkt);
	if (roci_kind_is_notice(pkt->op->kind))
		return;
	if (pkt->op->response && dest->type == ROCI_QPT_UC)
		advice_sent(sim, dest, pkt);
	else if (pkt->op->response)
		response_sent(sim, dest, pkt);
	else
		request_sent(sim, dest->peer, pkt);
}

/* ---- deliveries ---- */

static void request_delivered(struct sim_qp *qp, const struct roci_packet *pkt)
{
	uint32_t off = (pkt->psn - qp->sq_psn) & ROCI_PSN_MASK;
	uint32_t end = off + span_of(qp, pkt);

	for (; off < end; off++)
		qp->seen[off] |= SIM_SEEN_REQUEST;
	while (qp->seen[qp->delivered_next] & SIM_SEEN_REQUEST)
		qp->delivered_next++;
}

static void finish(struct sim_wr *wr, uint32_t responses)
{
	wr->responses += responses;
	if (wr->responses == wr->packets)
		wr->finished_on_wire = true;
}

/* A READ of no bytes is done when anything behind it is acknowledged: it has no data to wait for. */
static void finish_empty_reads(struct sim_qp *qp, uint32_t off)
{
	for (unsigned i = 0; i < qp->posted && qp->wrs[i].psn_off <= off; i++)
		if (qp->wrs[i].opcode == ROCI_WR_RDMA_READ && !qp->wrs[i].len)
			qp->wrs[i].finished_on_wire = true;
}

static void rnr_delivered(struct sim *sim, struct sim_qp *qp, uint32_t off, unsigned code)
{
	const struct sim_net *net = &sim->net;

	if (sim_in_error(qp))
		return;
	if (!qp->rnr_naks || off > qp->rnr_off)
		qp->rnr_naks = 0;
	else if (off < qp->rnr_off)
		return; /* an old NAK that came late */
	qp->rnr_naks++;
	qp->rnr_off = off;
	if (net->lossy || net->dup || net->reorder || !qp->qp || off >= qp->sent_next)
		return;
	if (qp->quiet_until && off == qp->quiet_off) {
		/* It waits already. Where the wait ends now, the order of the two is not known here. */
		if (sim->now + 1 > qp->quiet_until)
			qp->quiet_unsure = sim->now <= qp->quiet_until + 3 * qp->host->lag_ns || qp->quiet_unsure;
		if (sim->now < qp->quiet_until || qp->quiet_unsure)
			return;
	}
	qp->quiet_unsure = false;
	qp->quiet_off = off;
	qp->quiet_until = sim->now + roci_rnr_timer_ns(code);
}

static void response_delivered(struct sim *sim, struct sim_qp *qp, const struct roci_packet *pkt)
{
	uint32_t off = (pkt->psn - qp->sq_psn) & ROCI_PSN_MASK;
	struct sim_wr *wr = wr_at(qp, off);

	if (pkt->op->kind == ROCI_KIND_ACK && off == qp->sent_next) /* a NAK: it waits for what was not sent yet */
		finish_empty_reads(qp, off);
	if (off >= qp->total_packets || !wr)
		return;
	switch (pkt->op->kind) {
	case ROCI_KIND_READ_RESPONSE:
	case ROCI_KIND_ATOMIC_ACK:
		if (!(qp->seen[off] & SIM_SEEN_RESPONSE))
			finish(wr, 1);
		qp->seen[off] |= SIM_SEEN_RESPONSE;
		finish_empty_reads(qp, off);
		break;
	case ROCI_KIND_ACK:
		if ((pkt->syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK)
			rnr_delivered(sim, qp, off, pkt->syndrome & ROCI_AETH_VALUE_MASK);
		finish_empty_reads(qp, off);
		break;
	case ROCI_KIND_RANGES: finish_empty_reads(qp, off); break;
	default: break;
	}
}

void sim_monitor_delivered(struct sim *sim, struct sim_host *to, const struct roci_packet *pkt)
{
	struct sim_qp *dest = sim_find_qp(sim, pkt->dest_qpn);

	if (pkt->op->response ? dest->type == ROCI_QPT_UC
			      : roci_kind_is_notice(pkt->op->kind) && pkt->op->kind != ROCI_KIND_RANGES)
		return;
	if (pkt->op->response || pkt->op->kind == ROCI_KIND_RANGES)
		response_delivered(sim, dest, pkt);
	else
		request_delivered(dest->peer, pkt);
}
