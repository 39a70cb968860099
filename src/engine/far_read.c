/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/far_read.h"

#include <stdlib.h>

#include "engine/batch.h"
#include "engine/flight.h"
#include "engine/packets.h"
#include "engine/qp.h"
#include "engine/rc.h"
#include "engine/requester.h"
#include "wire/opcode.h"

#define PIECE_LEAST       2
#define PIECE_MOST        256
#define PIECES_PER_WINDOW 4
#define AHEAD             4096 /* packets beyond the newest response: see ROCI_REORDER_AHEAD */

/* ---- on and off ---- */

static void expire(struct roci_timer *timer)
{
	struct roci_qp *qp = roci_container_of(timer, struct roci_far_read, timer)->qp;

	if (roci_qp_is_connected(qp))
		roci_far_read_missing(qp, false);
}

static uint64_t bytes_of(const struct roci_qp *qp, uint32_t packets)
{
	return (uint64_t)packets * (qp->mtu + ROCI_PATH_PACKET_BYTES);
}

/* Brings what is kept by PSN up to una. */
static void catch_up(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;

	roci_scoreboard_advance(&f->board, qp->req.window.una);
	roci_sent_log_advance(&f->log, qp->req.window.una);
}

static void count_flight(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;
	uint32_t out = roci_scoreboard_out(&f->board);
	uint64_t flight = bytes_of(qp, f->asked > out ? f->asked - out : 0);

	f->path->flight += flight - f->flight;
	f->flight = flight;
}

/* Nothing is outstanding any more. */
static void forget(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;

	if (!f)
		return;
	f->asked = f->requests = f->fresh = 0;
	roci_scoreboard_reset(&f->board, qp->req.window.una);
	roci_sent_log_advance(&f->log, qp->req.window.max);
	roci_timer_set(&qp->e->timers, &f->timer, ROCI_TIMER_OFF);
	count_flight(qp);
	roci_flight_wake(f->path);
}

/* READ requests of *w that are answered where `packets` are. */
static uint32_t answered(const struct roci_swqe *w, uint32_t packets)
{
	uint32_t n = w->read.piece;

	return packets / n + (packets == w->packets && packets % n != 0);
}

/* The READ *w goes on like this. What was asked for of it, and has not come, counts as asked for now. */
static void take_over_read(struct roci_qp *qp, struct roci_swqe *w)
{
	struct roci_far_read *f = qp->req.far_read;
	int32_t una = roci_psn_diff(qp->req.window.una, w->first_psn);
	int32_t next = roci_psn_diff(qp->req.window.next, w->first_psn);
	uint32_t from = una > 0 ? (uint32_t)una : 0, to = next > 0 ? (uint32_t)next : 0;

	if (w->read.far_from <= from)
		return;
	if (to > w->read.far_from)
		to = w->read.far_from;
	if (to > from) {
		f->asked += to - from;
		f->requests += answered(w, to) - answered(w, from);
	}
	w->read.far_from = from;
}

/* All READs that were started go on like this: go-back-N would send their responses again and again in bursts. */
static void take_over(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;
	struct roci_sq *sq = &qp->sq;
	uint64_t less = 0; /* window bytes that count on the path of the responses now */

	roci_outstanding_clear(&r->outstanding);
	for (uint32_t i = sq->head; i != sq->started; i++) {
		struct roci_swqe *w = roci_sq_at(sq, i);
		uint64_t bytes = roci_swqe_bytes(qp, w, w->packets);

		w->cum_bytes -= less;
		if (i == sq->next)
			r->window.next_bytes = w->cum_bytes;
		if (w->done)
			continue;
		if (w->opcode == ROCI_WR_RDMA_READ)
			take_over_read(qp, w);
		else if (roci_swqe_needs_response(w) && roci_psn_diff(r->window.next, w->first_psn) > 0)
			roci_outstanding_add(&r->outstanding, roci_psn_add(w->first_psn, w->packets));
		less += bytes - roci_swqe_bytes(qp, w, w->packets);
		if (i == sq->next)
			r->window.next_bytes += roci_swqe_bytes(qp, w, r->next_packet);
	}
	if (sq->next == sq->started)
		r->window.next_bytes -= less;
}

void roci_far_read_restart(struct roci_qp *qp)
{
	forget(qp);
	if (qp->req.far_read)
		take_over(qp);
}

/* Those that are outstanding count on the path of the responses from now on. */
static void count_outstanding(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;
	struct roci_sent_state state;

	if (!f->asked)
		return;
	count_flight(qp);
	roci_path_sent(f->path, qp->e->now, bytes_of(qp, f->asked), &state);
	roci_sent_log_add(&f->log, qp->req.window.una, qp->req.window.next, true, &state);
	roci_flight_release(qp);
}

void roci_far_read_agree(struct roci_qp *qp, uint16_t reads)
{
	struct roci_far_read *f;

	if (qp->req.far_read || !reads || !qp->path->far)
		return;
	f = calloc(1, sizeof(*f));
	if (!f)
		return; /* when the peer says it again, perhaps */
	f->path = roci_path_get_inbound(qp->e, qp->path);
	if (!f->path) {
		free(f);
		return;
	}
	f->qp = qp;
	roci_list_init(&f->blocked);
	roci_timer_init(&f->timer);
	f->timer.expire = expire;
	roci_late_init(&f->late);
	roci_scoreboard_reset(&f->board, qp->req.window.una);
	qp->req.far_read = f;
	if (qp->req.window.next != qp->req.window.max)
		return; /* everything is being sent again: those READs follow the next time */
	take_over(qp);
	count_outstanding(qp);
}

void roci_far_read_stop(struct roci_qp *qp)
{
	forget(qp);
	if (qp->req.far_read)
		roci_list_remove(&qp->req.far_read->blocked);
}

void roci_far_read_end(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;

	if (!f)
		return;
	roci_far_read_stop(qp);
	roci_scoreboard_fini(&f->board);
	roci_sent_log_fini(&f->log);
	roci_path_put(f->path);
	free(f);
	qp->req.far_read = NULL;
}

/* ---- asking ---- */

uint16_t roci_far_read_piece(const struct roci_qp *qp)
{
	const struct roci_path *p = qp->req.far_read->path;
	uint64_t room = roci_path_window(p) / PIECES_PER_WINDOW, burst = roci_bbr_quantum(&p->bbr);
	uint32_t n = PIECE_LEAST;

	if (room > burst)
		room = burst;
	while (n < PIECE_MOST && bytes_of(qp, 2 * n) <= room)
		n *= 2;
	return (uint16_t)n;
}

/* A QP may always have something in flight, so that none waits for the dead peer of another one. */
static bool fits(struct roci_qp *qp, uint32_t packets)
{
	struct roci_far_read *f = qp->req.far_read;
	bool room = !f->flight || roci_path_fits(f->path, bytes_of(qp, packets));

	return roci_path_admits(f->path, qp->e->now, room, &f->blocked);
}

bool roci_far_read_may_ask(struct roci_qp *qp, uint32_t packets)
{
	const struct roci_requester *r = &qp->req;
	const struct roci_scoreboard *b = &r->far_read->board;
	uint32_t outstanding = roci_send_window_packets(&r->window);

	if (r->rnr.kept || b->next != b->end || !roci_recovery_allows(&r->recovery, outstanding))
		return false; /* what is missing goes first */
	if (r->far_read->requests + r->outstanding.count >= r->selective.reads ||
	    outstanding + packets > ROCI_FAR_READ_SPAN) {
		roci_path_idle(r->far_read->path, qp->e->now); /* it is not the path that limits */
		return false;
	}
	return fits(qp, packets);
}

void roci_far_read_asked(struct roci_qp *qp, uint32_t psn, uint32_t packets, bool again)
{
	struct roci_far_read *f = qp->req.far_read;
	struct roci_sent_state state;

	catch_up(qp);
	f->asked += packets;
	f->requests++;
	roci_read_copies_asked(&f->copies, psn);
	count_flight(qp);
	roci_path_sent(f->path, qp->e->now, bytes_of(qp, packets), &state);
	roci_sent_log_add(&f->log, psn, roci_psn_add(psn, packets), again, &state);
}

void roci_far_read_request_lost(struct roci_qp *qp, uint32_t psn)
{
	struct roci_far_read *f = qp->req.far_read;

	roci_sent_log_again(&f->log, psn);
	roci_read_copies_lost(&f->copies, psn, qp->e->now, f->path->srtt);
	roci_path_held_up(f->path);
}

/* Until when a packet that was asked for at `sent_at` may come. */
static uint64_t due_at(const struct roci_qp *qp, uint64_t sent_at)
{
	const struct roci_far_read *f = qp->req.far_read;

	return sent_at + f->path->latest_rtt + roci_late_ns(&f->late, f->path->base_rtt, f->path->srtt);
}

/* One request, for as many packets as are missing in a row. False where there is no room for it now. */
static bool ask_again(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t first)
{
	struct roci_far_read *f = qp->req.far_read;
	struct roci_swqe *w = roci_requester_find(qp, first);
	uint32_t index = (uint32_t)roci_psn_diff(first, w->first_psn), most = roci_requester_step(w, index), n = 0;
	struct roci_packet pkt = {.pkey = ROCI_PKEY_DEFAULT, .psn = first, .ack_req = true};
	struct roci_sent_state unused;
	uint32_t psn;

	if (!fits(qp, 1))
		return false;
	do {
		roci_scoreboard_resent(&f->board, qp->e->now);
		n++;
	} while (n < most && roci_scoreboard_next(&f->board, &psn) && psn == roci_psn_add(first, n));
	roci_packets_request(qp, w, index, n, &pkt, batch); /* it has no payload, so it never fails */
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	qp->e->stats->retransmits++;
	count_flight(qp);
	roci_path_sent(f->path, qp->e->now, bytes_of(qp, n), &unused);
	if (f->timer.at == ROCI_TIMER_OFF)
		roci_timer_set(&qp->e->timers, &f->timer, due_at(qp, qp->e->now));
	return true;
}

void roci_far_read_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end)
{
	struct roci_far_read *f = qp->req.far_read;
	uint32_t psn;

	if (!f || qp->req.window.next != qp->req.window.max)
		return; /* everything is being sent again */
	catch_up(qp);
	while (batch->count < end && roci_scoreboard_next(&f->board, &psn) && ask_again(qp, batch, psn))
		;
	if (batch->count >= end && roci_scoreboard_next(&f->board, &psn))
		roci_qp_make_ready(qp);
}

/* ---- what is lost ---- */

/* Packets that were asked for once, in the order of PSNs: the peer has answered what is before `limit`. Returns when
 * the next one is due, ROCI_NEVER: none is missing. */
static uint64_t judge_asked(struct roci_qp *qp, uint32_t limit, bool all)
{
	struct roci_far_read *f = qp->req.far_read;
	struct roci_scoreboard *b = &f->board;

	while (roci_scoreboard_scan(b, limit)) {
		const struct roci_swqe *w = roci_requester_find(qp, b->scan);
		uint32_t index = (uint32_t)roci_psn_diff(b->scan, w->first_psn);
		const struct roci_sent *sent;
		uint64_t at;

		if (!roci_far_read_is(w, index)) {
			uint32_t end = w->opcode == ROCI_WR_RDMA_READ ? w->read.far_from : w->packets;

			b->scan = end > index ? roci_psn_add(w->first_psn, end) : roci_psn_add(b->scan, 1);
			continue;
		}
		sent = roci_sent_log_find(&f->log, b->scan);
		at = sent ? due_at(qp, sent->state.sent_at) : 0;
		if (at > qp->e->now && !all)
			return at;
		roci_path_lost(f->path, qp->e->now, bytes_of(qp, 1), sent && !sent->again ? sent : NULL,
			       roci_sent_place(sent, b->scan));
		if (!roci_scoreboard_lose(b, b->scan)) {
			roci_rc_resend(qp); /* all, which needs no memory */
			return ROCI_NEVER;
		}
		b->scan = roci_psn_add(b->scan, 1);
	}
	return ROCI_NEVER;
}

/* Packets that were asked for again, in the order of time. */
static uint64_t judge_again(struct roci_qp *qp, bool all)
{
	struct roci_scoreboard *b = &qp->req.far_read->board;
	const struct roci_loss *l;

	while ((l = roci_scoreboard_oldest(b))) {
		uint64_t at = due_at(qp, l->sent_at);

		if (at > qp->e->now && !(all && l->sent_at < qp->e->now))
			return at;
		roci_path_lost(qp->req.far_read->path, qp->e->now, bytes_of(qp, 1), NULL, ROCI_MIDDLE);
		roci_scoreboard_lose_again(b);
	}
	return ROCI_NEVER;
}

static void judge(struct roci_qp *qp, bool all)
{
	struct roci_far_read *f = qp->req.far_read;
	const struct roci_send_window *w = &qp->req.window;
	uint64_t at, again;

	if (w->next != w->max)
		return; /* everything is being sent again */
	catch_up(qp);
	again = judge_again(qp, all);
	at = judge_asked(qp, roci_psn_diff(w->acked, f->board.high) > 0 ? w->acked : f->board.high, all);
	roci_timer_set(&qp->e->timers, &f->timer, ROCI_TIMER_OFF);
	if (again < at)
		at = again;
	if (at != ROCI_NEVER)
		roci_timer_set(&qp->e->timers, &f->timer, at);
	if (f->board.next != f->board.end) {
		count_flight(qp);
		roci_qp_make_ready(qp);
	}
}

bool roci_far_read_missing(struct roci_qp *qp, bool all)
{
	const struct roci_swqe *w;

	if (!qp->req.far_read || qp->sq.head == qp->sq.started)
		return false;
	judge(qp, all);
	w = roci_swqe_head(qp);
	return roci_far_read_is(w, (uint32_t)roci_psn_diff(qp->req.window.una, w->first_psn));
}

void roci_far_read_late(struct roci_qp *qp)
{
	struct roci_far_read *f = qp->req.far_read;

	if (f)
		roci_late_update(&f->late, qp->e->now, f->path->srtt, true);
}

/* ---- what comes ---- */

/* Whether the peer can be believed to have sent the response, which is outstanding. What is missing is expected, and
 * what lies a little behind the newest. Where the peer's port is no secret, who guesses a PSN must not find more places
 * than among requests (may_keep() of responder.c). */
static bool is_believed(const struct roci_qp *qp, uint32_t psn)
{
	const struct roci_scoreboard *b = &qp->req.far_read->board;
	uint32_t acked = qp->req.window.acked, newest = roci_psn_diff(acked, b->high) > 0 ? acked : b->high;

	if (!qp->peer.sprays && qp->peer.port != ROCI_UDP_PORT)
		return roci_psn_diff(psn, newest) < AHEAD;
	return roci_scoreboard_missing(b, psn, ROCI_REORDER_WINDOW) < ROCI_REORDER_WINDOW;
}

enum roci_far_response roci_far_read_judge(struct roci_qp *qp, const struct roci_rx *rx, struct roci_swqe **w)
{
	const struct roci_send_window *window = &qp->req.window;
	uint32_t psn = rx->pkt.psn, index;

	if (!qp->req.far_read || rx->pkt.op->kind != ROCI_KIND_READ_RESPONSE || qp->sq.head == qp->sq.started)
		return ROCI_FAR_RESPONSE_NONE;
	*w = roci_requester_find(qp, psn);
	index = (uint32_t)roci_psn_diff(psn, (*w)->first_psn);
	if (!roci_far_read_is(*w, index) || index >= (*w)->packets)
		return ROCI_FAR_RESPONSE_NONE;
	if (psn == window->una)
		return ROCI_FAR_RESPONSE_NEXT;
	catch_up(qp);
	if (roci_scoreboard_has(&qp->req.far_read->board, psn)) {
		qp->e->stats->rx_duplicate++;
		roci_far_read_late(qp);
		return ROCI_FAR_RESPONSE_DROP;
	}
	if (roci_psn_diff(psn, window->next) >= 0)
		return ROCI_FAR_RESPONSE_DROP; /* it will be asked for again */
	if (is_believed(qp, psn))
		return ROCI_FAR_RESPONSE_EARLY;
	qp->e->stats->rx_far++;
	return ROCI_FAR_RESPONSE_DROP;
}

/* The path hears of what has come, a few packets at a time. *sent: the newest one. */
static void tell_path(struct roci_qp *qp, const struct roci_sent *sent)
{
	struct roci_far_read *f = qp->req.far_read;
	uint64_t now = qp->e->now, bytes = bytes_of(qp, f->fresh);

	f->fresh = 0;
	count_flight(qp);
	roci_path_acked(f->path, now, bytes, sent);
	if (sent && !sent->again)
		roci_path_rtt(qp->path, now, now - sent->state.sent_at, false); /* it is the same there and back */
	if (!f->path->pace.waiting || !f->path->far)
		roci_flight_wake(f->path);
	roci_late_update(&f->late, now, f->path->srtt, false);
}

void roci_far_read_came(struct roci_qp *qp, const struct roci_swqe *w, uint32_t psn, uint32_t index, bool early)
{
	struct roci_far_read *f = qp->req.far_read;
	bool judged = roci_psn_diff(psn, f->board.scan) < 0;
	uint32_t newest;

	catch_up(qp);
	roci_scoreboard_mark(&f->board, psn & ~31u, UINT32_C(1) << (psn & 31), qp->req.window.max, &newest);
	f->fresh++;
	if (f->fresh >= roci_path_ack_every(f->path) || roci_requester_step(w, index) == 1)
		tell_path(qp, judged ? NULL : roci_sent_log_find(&f->log, psn));
	if (early)
		judge(qp, false);
}

uint32_t roci_far_read_run(struct roci_qp *qp, const struct roci_swqe *w, uint32_t index)
{
	uint32_t n = 0;

	catch_up(qp);
	while (index + n < w->packets &&
	       roci_scoreboard_has(&qp->req.far_read->board, roci_psn_add(w->first_psn, index + n)))
		n++;
	return n;
}

void roci_far_read_advance(struct roci_qp *qp, const struct roci_swqe *w, uint32_t from, uint32_t to)
{
	struct roci_far_read *f = qp->req.far_read;
	int32_t sent = roci_psn_diff(qp->req.window.next, w->first_psn);
	uint32_t done, requests;

	if (from < w->read.far_from)
		from = w->read.far_from;
	if (sent < (int32_t)to)
		to = sent > 0 ? (uint32_t)sent : 0; /* the rest counts when it is sent again */
	if (to <= from)
		return;
	done = to - from;
	requests = answered(w, to) - answered(w, from);
	f->asked -= done < f->asked ? done : f->asked;
	f->requests -= requests < f->requests ? requests : f->requests;
	if (!f->asked) {
		count_flight(qp);
		roci_flight_wake(f->path);
	}
}
