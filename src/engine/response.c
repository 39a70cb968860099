/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/response.h"

#include "engine/batch.h"
#include "engine/service.h"

#define LONG_RESPONSE 64  /* packets */
#define NEWEST_NAMED  512 /* packets up to the newest that each RANGES names: some of them may be lost */

static struct roci_packet header(const struct roci_qp *qp, uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	return (struct roci_packet){.opcode = opcode,
				    .pkey = ROCI_PKEY_DEFAULT,
				    .dest_qpn = qp->attr.dest_qpn,
				    .psn = psn,
				    .syndrome = syndrome,
				    .msn = qp->resp.msn};
}

/* ---- steps ---- */

static void fill_ack_of(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t psn)
{
	uint8_t credits = qp->type == ROCI_QPT_UC ? roci_uc_flow_credits(qp->mtu, qp->e->receive_room)
						  : ROCI_AETH_UNLIMITED_CREDITS;
	struct roci_packet pkt = header(qp, ROCI_OP_ACKNOWLEDGE, psn, ROCI_AETH_ACK | credits);

	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
}

/* The acknowledgements that go before an answer that names `psn`. False where the batch has `end` packets. */
static bool fill_steps(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end, uint32_t psn)
{
	uint32_t step;

	while (batch->count < end) {
		if (!roci_ack_steps_next(&qp->resp.steps, psn, &step))
			return true;
		fill_ack_of(qp, batch, step);
	}
	return false;
}

/* ---- responses ---- */

/* An atomic acknowledge, or the empty READ response that answers a FLUSH or an ATOMIC WRITE (IBTA A19). */
static void fill_value(struct roci_qp *qp, struct roci_tx_batch *batch, const struct roci_response *x)
{
	uint8_t op = x->kind == ROCI_KIND_ATOMIC ? ROCI_OP_ATOMIC_ACKNOWLEDGE : ROCI_OP_READ_RESPONSE_ONLY;
	struct roci_packet pkt = header(qp, op, x->psn, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);

	if (x->kind != ROCI_KIND_FLUSH)
		pkt.msn = x->msn;
	pkt.atomic_orig = x->original;
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
}

static uint8_t read_opcode(bool first, bool last)
{
	if (first)
		return last ? ROCI_OP_READ_RESPONSE_ONLY : ROCI_OP_READ_RESPONSE_FIRST;
	return last ? ROCI_OP_READ_RESPONSE_LAST : ROCI_OP_READ_RESPONSE_MIDDLE;
}

/* One READ response packet. False where the region is gone. */
static bool fill_read(struct roci_qp *qp, struct roci_tx_batch *batch, const struct roci_response *x)
{
	uint32_t psn = roci_psn_add(x->psn, x->next), offset = x->next * qp->mtu;
	uint32_t len = x->len - offset < qp->mtu ? x->len - offset : qp->mtu;
	uint8_t op = read_opcode(x->starts, x->next + 1 == x->end);
	struct roci_packet pkt = header(qp, op, psn, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);
	void *from = roci_mr_remote(qp->e, qp->pd, qp->qpn, x->rkey, x->va + offset, len, ROCI_ACCESS_REMOTE_READ);

	if (!from)
		return false;
	pkt.msn = x->msn;
	pkt.payload_len = len;
	if (len)
		roci_tx_batch_span(batch, from, len);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt)->copy_payload = x->copy_payload;
	qp->load_at = qp->e->now;
	return true;
}

/* READ responses are not acknowledged. Our own requester asks for pieces as its window allows. Another peer may ask for
 * a long message at once, and gets it at the path's pace. True where the next packet may go now. */
static bool may_send_read(struct roci_qp *qp, const struct roci_response *x)
{
	uint64_t at;

	if (x->packets <= LONG_RESPONSE)
		return true;
	at = roci_path_pace(qp->path, qp->e->now, qp->mtu + ROCI_PATH_PACKET_BYTES);
	if (at)
		roci_timer_set(&qp->e->timers, &qp->resp_timer, at);
	return !at;
}

void roci_response_expire(struct roci_timer *timer)
{
	roci_qp_make_ready(roci_container_of(timer, struct roci_qp, resp_timer));
}

/* The packets of one response. */
static enum roci_fill fill_response(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end,
				    struct roci_response *x)
{
	for (; roci_response_pending(x); roci_response_ring_sent(&qp->resp.responses, x)) {
		uint32_t psn = roci_psn_add(x->psn, x->next);

		if (!fill_steps(qp, batch, end, psn) || batch->span_count == ROCI_TX_SPANS)
			return ROCI_FILL_MORE;
		if (x->kind != ROCI_KIND_READ_REQUEST)
			fill_value(qp, batch, x);
		else if (!may_send_read(qp, x))
			return ROCI_FILL_PACED;
		else if (!fill_read(qp, batch, x))
			return ROCI_FILL_NO_ACCESS;
		roci_ack_steps_sent(&qp->resp.steps, psn);
	}
	return ROCI_FILL_DONE;
}

enum roci_fill roci_response_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end, uint32_t *psn)
{
	struct roci_response *x;

	while ((x = roci_response_ring_next(&qp->resp.responses))) {
		enum roci_fill fill = fill_response(qp, batch, end, x);

		if (fill == ROCI_FILL_NO_ACCESS) {
			*psn = roci_psn_add(x->psn, x->next);
			x->next = x->end;
			/* A repeated request may be a late duplicate. Its region was rightly deregistered since, so the
			 * rest is no error. */
			if (x->repeated)
				continue;
		}
		if (fill != ROCI_FILL_DONE)
			return fill;
	}
	return ROCI_FILL_DONE;
}

/* ---- acknowledgements ---- */

static void fill_nak(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = header(qp, ROCI_OP_ACKNOWLEDGE, qp->resp.nak_psn, qp->resp.nak_syndrome);

	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->resp.nak_due = false;
}

static void fill_ack(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	fill_ack_of(qp, batch, roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK));
	qp->resp.ack_due = false;
}

/* How many packets beyond the expected one are kept: as many as are left for others. */
static uint32_t early_room(const struct roci_qp *qp)
{
	uint32_t units = roci_reorder_units(roci_qp_longest_rx(qp)), count = qp->resp.early.count;
	uint32_t room = (count + roci_reorder_room(&qp->e->reorder) / units) / 2;

	if (room > ROCI_REORDER_SPAN / 2)
		room = ROCI_REORDER_SPAN / 2;
	return room > ROCI_REORDER_WINDOW ? room : ROCI_REORDER_WINDOW;
}

/* The packets [from, end) that are kept, the last ones where there are too many. */
static void fill_segment(const struct roci_qp *qp, struct roci_ranges_segment *s, uint32_t from, uint32_t end)
{
	uint32_t begin = from & ~31u;
	int32_t words = (roci_psn_diff(end, begin) + 31) / 32;

	if (words > ROCI_RANGES_WORDS) {
		begin = roci_psn_add(begin, 32 * (uint32_t)(words - ROCI_RANGES_WORDS));
		words = ROCI_RANGES_WORDS;
	}
	s->begin = begin;
	s->count = words > 0 ? (unsigned)words : 0;
	for (unsigned i = 0; i < s->count; i++)
		s->words[i] = roci_reorder_bits(&qp->resp.early, roci_psn_add(begin, 32 * i));
}

/* Likewise *late. */
static void fill_late(const struct roci_qp *qp, struct roci_ranges_segment *s, const struct roci_late_range *late)
{
	uint32_t from = roci_psn_diff(late->begin, qp->resp.epsn) > 0 ? late->begin : qp->resp.epsn;

	if (late->begin != late->end && roci_psn_diff(late->end, qp->resp.epsn) > 0)
		fill_segment(qp, s, from, late->end);
}

static void fill_ranges(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_responder *r = &qp->resp;
	struct roci_ranges ranges = {.flags = r->ranges.answers ? ROCI_RANGES_ANSWERS : 0,
				     .duplicates = r->ranges.duplicates,
				     .secret = r->ranges.secret,
				     .room = early_room(qp),
				     .reads = roci_response_ring_extended(&r->responses),
				     .longest = r->ranges.longest};
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_RANGES,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .psn = roci_psn_add(r->epsn, ROCI_PSN_MASK)};

	if (r->early.count) {
		uint32_t newest = roci_psn_add(r->early.newest, -NEWEST_NAMED & ROCI_PSN_MASK);

		fill_segment(qp, &ranges.segments[0], roci_psn_diff(newest, r->epsn) > 0 ? newest : r->epsn,
			     r->early.newest);
		for (unsigned i = 0; i < ROCI_LATE_RANGES; i++)
			fill_late(qp, &ranges.segments[1 + i], &r->ranges.kept->late.ranges[i]);
	}
	pkt.payload_len = roci_ranges_build(&ranges, r->ranges.kept->payload);
	roci_tx_batch_span(batch, r->ranges.kept->payload, pkt.payload_len);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	roci_ack_steps_sent(&r->steps, pkt.psn);
	r->ranges.kept->late = (struct roci_late_ranges){0};
	r->ranges.due = r->ranges.answers = false;
	r->ack_due = false;
}

/* The answer to a peer that only asks. It acknowledges nothing. False where there is no room for it. */
static bool fill_asked(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_responder *r = &qp->resp;
	struct roci_ranges ranges = {
		.flags = ROCI_RANGES_ASKED, .secret = r->ranges.secret, .longest = r->ranges.longest};
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_RANGES,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .psn = roci_psn_add(r->epsn, ROCI_PSN_MASK)};

	if (batch->count == ROCI_TX_BATCH || batch->span_count == ROCI_TX_SPANS)
		return false;
	pkt.payload_len = roci_ranges_build(&ranges, r->ranges.kept->payload);
	roci_tx_batch_span(batch, r->ranges.kept->payload, pkt.payload_len);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	r->ranges.asked = false;
	return true;
}

/* Whether what is to be said needs a RANGES packet, or goes in fewer packets with it. */
static bool needs_ranges(const struct roci_responder *r)
{
	return r->ranges.offered && !r->nak_due &&
	       (r->ranges.due || r->early.count || roci_psn_diff(r->epsn, r->steps.named) > ROCI_ACK_STEP);
}

static void fill_cnp(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_CNP,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .becn = true,
				  .payload_len = ROCI_CNP_BYTES};

	roci_cnp_build(&qp->resp.cnp, qp->resp.cnp_payload);
	roci_tx_batch_span(batch, qp->resp.cnp_payload, ROCI_CNP_BYTES);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->resp.cnp_due = false;
}

/* The last PSN that the NAK or ACK that is due says is done. */
static uint32_t done_psn(const struct roci_responder *r)
{
	return roci_psn_add(r->nak_due ? r->nak_psn : r->epsn, ROCI_PSN_MASK);
}

bool roci_response_fill_ack(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_responder *r = &qp->resp;
	bool answers = r->nak_due || r->ack_due;

	if (r->ranges.asked && !fill_asked(qp, batch))
		return true;
	if ((answers || r->cnp_due) && batch->count + 3 > ROCI_TX_BATCH)
		return true;
	if (answers && needs_ranges(r)) {
		if (batch->span_count == ROCI_TX_SPANS)
			return true;
		fill_ranges(qp, batch);
	} else if (answers && qp->service->acknowledged) {
		if (!fill_steps(qp, batch, ROCI_TX_BATCH - 2, done_psn(r)))
			return true;
		roci_ack_steps_sent(&r->steps, done_psn(r));
	}
	if (r->nak_due)
		fill_nak(qp, batch);
	else if (r->ack_due)
		fill_ack(qp, batch);
	if (r->cnp_due && batch->span_count < ROCI_TX_SPANS)
		fill_cnp(qp, batch);
	return false;
}
