/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/response.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/batch.h"

#define LONG_RESPONSE 64 /* packets */

static struct roci_response *at(struct roci_qp *qp, unsigned i)
{
	struct roci_responder *r = &qp->resp;

	return &r->responses[(r->response_next + r->response_room - r->response_count + i) % r->response_room];
}

static bool pending(const struct roci_response *x)
{
	return x->send < x->send_end;
}

int roci_response_resize(struct roci_qp *qp, unsigned room)
{
	struct roci_responder *r = &qp->resp;
	unsigned kept = r->response_count < room ? r->response_count : room, gone = r->response_count - kept;
	struct roci_response *responses = NULL;

	for (unsigned i = 0; i < gone; i++)
		if (pending(at(qp, i)))
			return -EBUSY;
	if (room) {
		responses = calloc(room, sizeof(*responses));
		if (!responses)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < kept; i++)
		responses[i] = *at(qp, gone + i);
	free(r->responses);
	r->responses = responses;
	r->response_room = (uint8_t)room;
	r->response_count = (uint8_t)kept;
	r->response_next = room ? (uint8_t)(kept % room) : 0;
	return 0;
}

struct roci_response *roci_response_add(struct roci_qp *qp)
{
	struct roci_responder *r = &qp->resp;
	struct roci_response *x;

	if (!r->response_room)
		return NULL;
	x = &r->responses[r->response_next];
	if (r->response_count == r->response_room) {
		if (pending(x) && !x->again)
			return NULL;
	} else {
		r->response_count++;
	}
	r->response_next = (uint8_t)((r->response_next + 1) % r->response_room);
	*x = (struct roci_response){0};
	return x;
}

bool roci_response_flush(struct roci_qp *qp, uint32_t psn)
{
	struct roci_responder *r = &qp->resp;

	if (r->flush_count == ROCI_MAX_FLUSHES)
		return false;
	r->flushes[(r->flush_first + r->flush_count++) % ROCI_MAX_FLUSHES] = psn;
	roci_qp_make_ready(qp);
	return true;
}

struct roci_response *roci_response_find(struct roci_qp *qp, uint32_t psn)
{
	for (unsigned i = qp->resp.response_count; i-- > 0;) {
		struct roci_response *x = at(qp, i);
		int32_t into = roci_psn_diff(psn, x->psn);

		if (into >= 0 && (uint32_t)into < x->packets)
			return x;
	}
	return NULL;
}

void roci_responder_ack(struct roci_qp *qp)
{
	qp->resp.ack_due = true;
	roci_qp_make_ready(qp);
}

void roci_responder_nak(struct roci_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct roci_responder *r = &qp->resp;

	if ((syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK)
		qp->e->stats.rnr_sent++;
	else
		qp->e->stats.naks_sent++;
	r->nak_due = true;
	r->ack_due = false; /* a NAK acknowledges what came before it */
	r->nak_syndrome = syndrome;
	r->nak_psn = psn;
	roci_qp_make_ready(qp);
}

static struct roci_packet header(const struct roci_qp *qp, uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	return (struct roci_packet){.opcode = opcode,
				    .pkey = ROCI_PKEY_DEFAULT,
				    .dest_qpn = qp->attr.dest_qpn,
				    .psn = psn,
				    .syndrome = syndrome,
				    .msn = qp->resp.msn};
}

static void send_nak(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = header(qp, ROCI_OP_ACKNOWLEDGE, qp->resp.nak_psn, qp->resp.nak_syndrome);

	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->resp.nak_due = false;
}

static void send_ack(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = header(qp, ROCI_OP_ACKNOWLEDGE, roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK),
					ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);

	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->resp.ack_due = false;
}

static void send_cnp(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_CNP,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .becn = true,
				  .payload_len = 16};
	static uint8_t reserved[16]; /* IBTA A17.9.3: zero */

	roci_tx_batch_span(batch, reserved, sizeof(reserved));
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->resp.cnp_due = false;
}

/* An atomic acknowledge, or the empty READ response that ends an ATOMIC WRITE. */
static void send_value(struct roci_qp *qp, struct roci_tx_batch *batch, struct roci_response *x)
{
	uint8_t op = x->kind == ROCI_KIND_ATOMIC ? ROCI_OP_ATOMIC_ACKNOWLEDGE : ROCI_OP_READ_RESPONSE_ONLY;
	struct roci_packet pkt = header(qp, op, x->psn, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);

	pkt.msn = x->msn;
	pkt.atomic_orig = x->original;
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	x->send = x->send_end;
}

/* The answers to FLUSHes that come before *next, or to all where there is none. False where the batch is full. */
static bool fill_flushes(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end,
			 const struct roci_response *next)
{
	struct roci_responder *r = &qp->resp;

	for (; r->flush_count; r->flush_count--) {
		uint32_t psn = r->flushes[r->flush_first];
		struct roci_packet pkt =
			header(qp, ROCI_OP_READ_RESPONSE_ONLY, psn, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);

		if (next && roci_psn_diff(psn, next->psn) >= 0)
			break;
		if (batch->count == end)
			return false;
		roci_tx_batch_add(batch, &qp->attr.av, &pkt);
		r->flush_first = (r->flush_first + 1) % ROCI_MAX_FLUSHES;
	}
	return true;
}

static uint8_t read_opcode(bool first, bool last)
{
	if (first)
		return last ? ROCI_OP_READ_RESPONSE_ONLY : ROCI_OP_READ_RESPONSE_FIRST;
	return last ? ROCI_OP_READ_RESPONSE_LAST : ROCI_OP_READ_RESPONSE_MIDDLE;
}

/* One READ response packet. False where the region has gone meanwhile: IBTA 9.7.5.2.4, NAK at its PSN. A request that
 * comes again may be a late twin, whose region was invalidated since with good right: it is passed over. */
static bool send_read(struct roci_qp *qp, struct roci_tx_batch *batch, struct roci_response *x)
{
	uint32_t psn = roci_psn_add(x->psn, x->send), offset = x->send * qp->mtu;
	uint32_t len = x->len - offset < qp->mtu ? x->len - offset : qp->mtu;
	bool last = x->send + 1 == x->send_end;
	struct roci_packet pkt =
		header(qp, read_opcode(x->whole, last), psn, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS);
	void *from = roci_mr_remote(qp->e, qp->pd, qp->qpn, x->rkey, x->va + offset, len, ROCI_ACCESS_REMOTE_READ);

	if (!from) {
		x->send = x->send_end;
		if (x->again)
			return true;
		roci_responder_nak(qp, ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS, psn);
		roci_qp_error(qp, ROCI_EVENT_QP_ACCESS_ERR);
		return false;
	}
	pkt.msn = x->msn;
	pkt.payload_len = len;
	if (len)
		roci_tx_batch_span(batch, from, len);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt)->copy_payload = x->copy_payload;
	x->whole = false;
	x->send++;
	return true;
}

/* Nothing acknowledges READ responses. Our own requester asks for pieces as its window allows; a peer that asks for a
 * long message at once gets it at the path's pace. True where the next packet may go now. */
static bool may_send_read(struct roci_qp *qp, const struct roci_response *x)
{
	uint64_t at;

	if (x->packets <= LONG_RESPONSE)
		return true;
	at = roci_path_pace(qp->path, qp->e->now, qp->mtu + UINT64_C(256));
	if (at)
		roci_timer_set(&qp->e->timers, &qp->resp_timer, at);
	return !at;
}

void roci_response_expire(struct roci_timer *timer)
{
	roci_qp_make_ready(roci_container_of(timer, struct roci_qp, resp_timer));
}

bool roci_response_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum)
{
	struct roci_responder *r = &qp->resp;
	unsigned end = batch->count + quantum < ROCI_TX_BATCH ? batch->count + quantum : ROCI_TX_BATCH;

	/* A QP that fails by a request of its peer still answers what came before that request. */
	if (qp->state == ROCI_QPS_ERR && !r->nak_due && !r->last_words)
		goto nak;
	for (unsigned i = 0; i < r->response_count; i++) {
		struct roci_response *x = at(qp, i);

		if (pending(x) && !fill_flushes(qp, batch, end, x))
			return true;
		while (pending(x)) {
			if (batch->count == end || batch->span_count == ROCI_TX_SPANS)
				return true;
			if (x->kind != ROCI_KIND_READ_REQUEST)
				send_value(qp, batch, x);
			else if (!may_send_read(qp, x))
				return false; /* what comes after it waits too: an ACK would acknowledge it */
			else if (!send_read(qp, batch, x))
				goto nak;
		}
	}
	if (!fill_flushes(qp, batch, end, NULL))
		return true;
nak:
	if ((r->nak_due || r->ack_due || r->cnp_due) && batch->count + 3 > ROCI_TX_BATCH)
		return true;
	if (r->nak_due)
		send_nak(qp, batch);
	else if (r->ack_due)
		send_ack(qp, batch);
	if (r->cnp_due && batch->span_count < ROCI_TX_SPANS)
		send_cnp(qp, batch);
	return false;
}
