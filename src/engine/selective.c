/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/selective.h"

#include "engine/batch.h"
#include "engine/completer.h"
#include "engine/flight.h"
#include "engine/packets.h"
#include "engine/qp.h"
#include "engine/rc.h"
#include "engine/requester.h"
#include "wire/opcode.h"

#define OFFERS_MAX     8
#define OFFER_AFTER    16 /* packets outstanding: a bulk transfer */
#define OFFER_PAUSE_NS UINT64_C(10000000)
#define ACK_RESENT     4 /* at least every fourth that is sent again asks for an answer, and the last one */

/* ---- agreeing ---- */

/* The last OFFER may still be answered. */
static bool is_early(const struct roci_qp *qp)
{
	const struct roci_selective *s = &qp->req.selective;

	return s->offer_at && qp->e->now - s->offer_at < qp->path->srtt + qp->path->srtt / 4 + OFFER_PAUSE_NS;
}

void roci_selective_sent(struct roci_qp *qp)
{
	const struct roci_requester *r = &qp->req;
	struct roci_selective *s = &qp->req.selective;

	if ((s->agreed && (s->reads || !r->outstanding.count)) || !qp->secret || s->offers == OFFERS_MAX)
		return;
	if (roci_send_window_packets(&r->window) < OFFER_AFTER || is_early(qp))
		return;
	s->offers++;
	s->offer_at = qp->e->now;
	s->offer_due = true;
	s->asks_now = s->probes_now = false;
	roci_qp_make_ready(qp);
}

void roci_selective_ask(struct roci_qp *qp)
{
	struct roci_selective *s = &qp->req.selective;

	if (!qp->secret || s->offer_due || s->asks == OFFERS_MAX || !roci_qp_is_connected(qp))
		return;
	s->asks++;
	s->offer_due = s->asks_now = true;
	s->probes_now = false;
	roci_qp_make_ready(qp);
}

void roci_selective_probe(struct roci_qp *qp, uint64_t bytes)
{
	struct roci_selective *s = &qp->req.selective;
	uint32_t size = roci_plpmtu_next(&qp->req.plpmtu, qp->mtu, qp->attr.av.max_datagram);

	if (!size || !qp->secret || !qp->peer.shown || roci_qp_is_local(qp) || s->offer_due || is_early(qp))
		return;
	if (bytes / qp->mtu + roci_send_window_packets(&qp->req.window) < OFFER_AFTER)
		return;
	roci_plpmtu_sent(&qp->req.plpmtu, size);
	s->offer_at = qp->e->now;
	s->offer_due = s->asks_now = s->probes_now = true;
	roci_qp_make_ready(qp);
}

/* Zeros behind the OFFER make it as long as the packets that are to follow. */
static uint32_t add_zeros(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	static const uint8_t zeros[ROCI_PLPMTU_PROBE_BYTES(ROCI_MAX_PAYLOAD)];
	uint32_t bytes = ROCI_PLPMTU_PROBE_BYTES(qp->req.plpmtu.size * ROCI_PLPMTU_STEP) - ROCI_OFFER_BYTES;

	roci_tx_batch_span(batch, (void *)zeros, bytes);
	return bytes;
}

bool roci_selective_offer(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_selective *s = &qp->req.selective;
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_OFFER,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .psn = roci_psn_add(qp->req.window.una, ROCI_PSN_MASK),
				  .payload_len = ROCI_OFFER_BYTES};
	uint8_t flags;

	if (batch->count == ROCI_TX_BATCH || batch->span_count + 2 > ROCI_TX_SPANS)
		return true;
	s->offer_due = false;
	if (!roci_qp_is_connected(qp))
		return false;
	flags = s->asks_now ? ROCI_OFFER_ASKS : qp->req.outstanding.count ? ROCI_OFFER_READS : 0;
	roci_offer_build(&(struct roci_offer){qp->attr.sq_psn, flags, qp->secret, 0}, s->payload);
	roci_tx_batch_span(batch, s->payload, ROCI_OFFER_BYTES);
	if (s->probes_now)
		pkt.payload_len += add_zeros(qp, batch);
	roci_tx_batch_add(batch, &qp->attr.av, &pkt)->whole = s->probes_now;
	return false;
}

static void agree(struct roci_qp *qp)
{
	struct roci_selective *s = &qp->req.selective;

	if (s->agreed)
		return;
	s->agreed = true;
	s->offers = 0; /* others may follow, for READs */
	s->offer_at = 0;
	roci_late_init(&s->late);
	qp->req.recovery.active = false; /* the path says how much may be outstanding */
	roci_scoreboard_reset(&s->board, qp->req.window.una);
	roci_path_agree(qp->path, qp->e->now);
}

/* ---- what is lost ---- */

/* Until when a packet that was sent at `sent_at` may come. */
static uint64_t due_at(const struct roci_qp *qp, uint64_t sent_at)
{
	const struct roci_path *p = qp->path;

	return sent_at + p->latest_rtt + roci_late_ns(&qp->req.selective.late, p->base_rtt, p->srtt);
}

/* The packet at scan is missing. A READ request stands for many PSNs, and only its first one is named. False where
 * there is no memory to remember it. */
static bool lose(struct roci_qp *qp, const struct roci_sent *sent)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	struct roci_swqe *w = roci_requester_find(qp, b->scan);
	uint32_t index = (uint32_t)roci_psn_diff(b->scan, w->first_psn), step = roci_requester_step(w, index);

	if (w->opcode != ROCI_WR_RDMA_READ || roci_requester_begins(w, index)) {
		if (!roci_far_read_is(w, index))
			roci_path_lost(qp->path, qp->e->now, roci_qp_packet_bytes(qp), sent,
				       roci_sent_place(sent, b->scan));
		if (!roci_scoreboard_lose(b, b->scan))
			return false;
	}
	b->scan = roci_psn_add(b->scan, step);
	return true;
}

/* Packets that were sent once, in the order of PSNs. A packet before `limit` is missing, and so is one that was sent
 * before another was sent again that came. Returns when the next one is due, ROCI_NEVER: none is missing. */
static uint64_t judge_sent(struct roci_qp *qp, uint32_t limit, bool all)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	/* Sooner than a round trip after that, it was the first one that came, late. */
	uint64_t before = b->came_at + qp->path->base_rtt <= qp->e->now ? b->came_at : 0;

	while (roci_scoreboard_scan(b, before ? qp->req.window.max : limit)) {
		const struct roci_sent *sent = roci_sent_log_find(&qp->req.log, b->scan);
		uint64_t at = sent ? due_at(qp, sent->state.sent_at) : 0;

		if (roci_psn_diff(b->scan, limit) >= 0 && (!sent || sent->state.sent_at >= before))
			return ROCI_NEVER;
		if (at > qp->e->now && !all)
			return at;
		if (!lose(qp, sent)) {
			roci_rc_resend(qp); /* all, which needs no memory */
			return ROCI_NEVER;
		}
	}
	return ROCI_NEVER;
}

/* Packets that were sent again, in the order of time. One is missing only where the peer has been heard since: while it
 * is silent they would go again with every round trip, as fast as before. The ack timer asks it, less and less often.
 */
static uint64_t judge_resent(struct roci_qp *qp, bool all)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	const struct roci_loss *l;

	while ((l = roci_scoreboard_oldest(b))) {
		uint64_t at = due_at(qp, l->sent_at);

		if (!all && qp->path->heard_at <= l->sent_at)
			return ROCI_NEVER; /* what it says next is judged */
		if (at > qp->e->now && !all)
			return at;
		roci_path_lost(qp->path, qp->e->now, roci_qp_packet_bytes(qp), NULL, ROCI_MIDDLE);
		roci_scoreboard_lose_again(b);
	}
	return ROCI_NEVER;
}

static void judge(struct roci_qp *qp, uint32_t limit, bool all)
{
	uint64_t at, again;

	if (qp->req.window.next != qp->req.window.max)
		return; /* everything is being sent again */
	if (qp->req.far_read)
		roci_scoreboard_done(&qp->req.selective.board, qp->req.window.acked);
	again = judge_resent(qp, all);
	at = judge_sent(qp, limit, all);
	roci_timer_set(&qp->e->timers, &qp->loss_timer, ROCI_TIMER_OFF);
	roci_timer_set(&qp->e->timers, &qp->loss_timer, again < at ? again : at);
	roci_flight_release(qp);
	if (roci_scoreboard_out(&qp->req.selective.board) != qp->req.selective.board.have)
		roci_qp_make_ready(qp);
}

void roci_selective_expire(struct roci_timer *timer)
{
	struct roci_qp *qp = roci_container_of(timer, struct roci_qp, loss_timer);

	if (roci_qp_is_connected(qp) && qp->req.selective.agreed)
		judge(qp, qp->req.selective.board.high, false);
}

void roci_selective_lose_all(struct roci_qp *qp)
{
	roci_rnr_wait_again(&qp->req.rnr);
	if (qp->req.rnr.due)
		roci_qp_make_ready(qp);
	roci_far_read_missing(qp, true);
	judge(qp, qp->req.window.max, true);
}

/* ---- what the peer says ---- */

/* Something came twice: it was late, not lost. */
static void be_patient(struct roci_qp *qp, uint16_t duplicates)
{
	struct roci_selective *s = &qp->req.selective;

	roci_late_update(&s->late, qp->e->now, qp->path->srtt, duplicates != s->duplicates);
	s->duplicates = duplicates;
}

/* Returns how many packets are new. */
static unsigned mark(struct roci_qp *qp, const struct roci_ranges *r)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	uint32_t newest = 0, max = qp->req.window.max;
	unsigned fresh = 0;

	for (unsigned s = 0; s < ROCI_RANGES_SEGMENTS; s++)
		for (unsigned i = 0; i < r->segments[s].count; i++)
			fresh += roci_scoreboard_mark(b, roci_psn_add(r->segments[s].begin, 32 * i),
						      r->segments[s].words[i], max, &newest);
	if (fresh)
		roci_flight_marked(qp, fresh, newest);
	return fresh;
}

/* The packet that the peer misses is one that it had: it dropped what it had kept (RFC 2018 s.8). */
static bool was_dropped(const struct roci_qp *qp, uint32_t missing)
{
	const struct roci_send_window *w = &qp->req.window;

	return missing == w->una && w->next == w->max && !qp->req.rnr.waiting && !qp->req.rnr.kept &&
	       roci_scoreboard_has(&qp->req.selective.board, missing);
}

bool roci_selective_refused(struct roci_qp *qp)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	const struct roci_send_window *w = &qp->req.window;
	uint32_t una = w->una, newest;

	if (!qp->req.selective.agreed || w->next != w->max)
		return false;
	/* It came, so it is neither in flight nor lost. */
	if (roci_scoreboard_mark(b, una & ~31u, UINT32_C(1) << (una & 31), w->max, &newest))
		roci_flight_marked(qp, 1, una);
	if (!roci_scoreboard_has(b, una))
		return false;
	roci_rnr_wait_keep(&qp->req.rnr);
	return true;
}

void roci_selective_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_selective *s = &qp->req.selective;
	struct roci_send_window *w = &qp->req.window;
	uint32_t una = w->una, limit = roci_psn_add(rx->pkt.psn, 1);
	struct roci_ranges r;
	bool answers;

	if (!roci_qp_is_connected(qp) || !roci_ranges_parse(rx->pkt.payload, rx->pkt.payload_len, &r)) {
		qp->e->stats->rx_malformed++;
		return;
	}
	qp->path->ours = true;
	qp->path->heard_at = qp->e->now;
	roci_plpmtu_arrived(&qp->req.plpmtu, r.longest);
	if (r.flags & ROCI_RANGES_ASKED)
		return;
	agree(qp);
	s->room = r.room;
	if (r.reads) /* else it is from before the peer made room for them, and late */
		s->reads = r.reads;
	roci_far_read_agree(qp, r.reads);
	be_patient(qp, r.duplicates);
	if (roci_psn_diff(limit, una) > 0 && roci_psn_diff(limit, w->max) <= 0)
		roci_completer_acknowledge(qp, limit);
	if (!roci_qp_is_connected(qp))
		return;
	answers = r.flags & ROCI_RANGES_ANSWERS && qp->probe.awaiting;
	if (answers && w->una == una && qp->req.rnr.kept)
		roci_rnr_wait_again(&qp->req.rnr);
	else if (answers && w->una == una)
		roci_black_hole_request(qp);
	if (mark(qp, &r) || w->una != una || answers)
		roci_rc_restart_timer(qp);
	if (was_dropped(qp, limit))
		roci_rc_resend(qp);
	limit = s->board.high;
	if (answers && roci_psn_diff(s->probe_end, limit) > 0 && roci_psn_diff(s->probe_end, w->max) <= 0)
		limit = s->probe_end;
	qp->probe.awaiting &= !answers;
	if (answers && w->una == una && w->next != w->max)
		roci_rc_loss(qp); /* everything is sent again already, and did not come */
	judge(qp, limit, false);
	if (qp->sq.next != qp->sq.tail || qp->req.rnr.due)
		roci_qp_make_ready(qp);
}

/* ---- sending again ---- */

/* Adds the packet `psn`, which was sent before. False where its memory was deregistered. */
static bool add_again(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t psn, bool ack)
{
	struct roci_swqe *w = roci_requester_find(qp, psn);
	uint32_t index = (uint32_t)roci_psn_diff(psn, w->first_psn), step = roci_requester_step(w, index);
	struct roci_packet pkt = {.pkey = ROCI_PKEY_DEFAULT, .psn = psn, .ack_req = ack};

	if (index >= w->packets || !roci_packets_request(qp, w, index, step, &pkt, batch)) {
		roci_rc_resend(qp); /* the request fails in its turn */
		return false;
	}
	roci_tx_batch_add(batch, &qp->attr.av, &pkt)->copy_payload = true;
	qp->e->stats->retransmits++;
	if (roci_far_read_is(w, index))
		roci_far_read_request_lost(qp, psn);
	else
		roci_flight_resent(qp, roci_qp_packet_bytes(qp));
	if (qp->loss_timer.at == ROCI_TIMER_OFF)
		roci_timer_set(&qp->e->timers, &qp->loss_timer, due_at(qp, qp->e->now));
	return true;
}

static bool add_lost(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t psn)
{
	struct roci_scoreboard *b = &qp->req.selective.board;
	uint32_t ack_every = roci_path_ack_every(qp->path), more;

	if (ack_every > ACK_RESENT)
		ack_every = ACK_RESENT;
	roci_scoreboard_resent(b, qp->e->now);
	return add_again(qp, batch, psn, (b->next & (ack_every - 1)) == 0 || !roci_scoreboard_next(b, &more));
}

static bool add_refused(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	qp->req.rnr.due = false;
	return add_again(qp, batch, qp->req.window.una, true);
}

bool roci_selective_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end)
{
	uint32_t psn = 0;

	if (qp->req.window.next != qp->req.window.max)
		return false;
	while (qp->req.rnr.due || roci_scoreboard_next(&qp->req.selective.board, &psn)) {
		if (batch->count >= end || batch->span_count + ROCI_MAX_SGE > ROCI_TX_SPANS)
			return true;
		if (!roci_flight_fits(qp, roci_qp_packet_bytes(qp)))
			return true;
		if (!(qp->req.rnr.due ? add_refused(qp, batch) : add_lost(qp, batch, psn)))
			return false;
	}
	return false;
}
