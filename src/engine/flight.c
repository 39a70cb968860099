/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/flight.h"

#define ACK_EVERY      8  /* packets between requested acknowledgements; a power of two */
#define ACK_EVERY_MOST 64 /* of a stream: an answer is near (far_answer.h), also where two in a row are lost */
#define ACKS_A_WINDOW  4  /* of a stream, at least, in its QP's part of the window */

/* What the peer has beyond the oldest packet, and what is lost, is not in flight. Packets count alike here. */
static uint64_t bytes_of(const struct roci_qp *qp, uint32_t packets)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t all =
		roci_send_window_packets(w) - roci_far_read_packets(qp->req.far_read); /* these count elsewhere */

	return packets < all ? roci_send_window_bytes(w) * packets / all : roci_send_window_bytes(w);
}

/* All that the peer does not have was found lost, and nothing of it is on its way again. */
static bool all_are_lost(struct roci_qp *qp)
{
	const struct roci_send_window *w = &qp->req.window;
	struct roci_scoreboard *b = &qp->req.selective.board;

	return b->next != b->end && b->scan == w->max && w->next == w->max && !roci_scoreboard_oldest(b);
}

static void count_flight(struct roci_qp *qp)
{
	uint32_t out = roci_scoreboard_out(&qp->req.selective.board);
	uint64_t flight = roci_send_window_bytes(&qp->req.window);

	if (out) /* a lost READ request counts as one packet, and its responses count, too */
		flight = all_are_lost(qp) ? 0 : flight - bytes_of(qp, out);
	if (flight && !qp->path->flight)
		roci_path_begins(qp->path, qp->e->now);
	qp->path->flight += flight - qp->req.flight;
	qp->path->busy += (flight != 0) - (qp->req.flight != 0);
	qp->req.flight = flight;
}

void roci_flight_sent(struct roci_qp *qp, uint32_t psn, uint64_t bytes, bool again)
{
	struct roci_requester *r = &qp->req;
	struct roci_sent_state state;

	count_flight(qp);
	if (!qp->path->far)
		return;
	roci_path_sent(qp->path, qp->e->now, bytes, &state);
	roci_sent_log_add(&r->log, psn, r->window.next, again, &state);
}

void roci_flight_resent(struct roci_qp *qp, uint64_t bytes)
{
	struct roci_sent_state unused;

	count_flight(qp);
	if (qp->path->far)
		roci_path_sent(qp->path, qp->e->now, bytes, &unused);
}

void roci_flight_wake(struct roci_path *path)
{
	while (!roci_list_empty(&path->blocked)) {
		struct roci_list *l = path->blocked.next;

		roci_list_remove(l);
		roci_qp_make_ready(path->inbound ? roci_container_of(l, struct roci_far_read, blocked)->qp
						 : roci_container_of(l, struct roci_qp, blocked));
	}
}

void roci_flight_expire(struct roci_timer *timer)
{
	struct roci_path *path = roci_container_of(timer, struct roci_path, timer);

	if (path->far)
		roci_path_unawaited(path, path->pace.at); /* those that waited may be gone */
	else
		roci_path_overdraw(path);
	roci_flight_wake(path);
}

/* The entry of a packet that is acknowledged now for the first time, unless it was judged before: then it may have been
 * sent again. */
static const struct roci_sent *sent_once(const struct roci_qp *qp, uint32_t psn)
{
	const struct roci_scoreboard *b = &qp->req.selective.board;

	return roci_psn_diff(psn, b->scan) >= 0 ? roci_sent_log_find(&qp->req.log, psn) : NULL;
}

/* The path hears of `bytes`. *sent is the newest packet among them; NULL: it was sent more than once. */
static void acked(struct roci_qp *qp, uint64_t bytes, const struct roci_sent *sent)
{
	count_flight(qp);
	roci_path_acked(qp->path, qp->e->now, bytes, sent && !sent->again ? sent : NULL);
	if (!qp->path->pace.waiting || !qp->path->far)
		roci_flight_wake(qp->path);
}

static void far_acked(struct roci_qp *qp, uint32_t packets, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;
	struct roci_scoreboard *b = &r->selective.board;
	uint32_t newest = roci_psn_add(r->window.una, ROCI_PSN_MASK), known;
	const struct roci_sent *sent = roci_scoreboard_has(b, newest) ? NULL : sent_once(qp, newest);

	known = roci_scoreboard_advance(b, r->window.una);
	if (bytes) /* else it was a READ, which says nothing about this direction */
		acked(qp, known < packets ? bytes - bytes * known / packets : 0, sent);
	roci_sent_log_advance(&r->log, r->window.una);
}

void roci_flight_acked(struct roci_qp *qp, uint32_t packets, uint64_t bytes)
{
	if (qp->path->far) {
		far_acked(qp, packets, bytes);
		return;
	}
	if (qp->req.selective.agreed)
		roci_scoreboard_advance(&qp->req.selective.board, qp->req.window.una);
	roci_path_acked(qp->path, qp->e->now, bytes, NULL);
	roci_flight_release(qp);
}

void roci_flight_marked(struct roci_qp *qp, uint32_t count, uint32_t newest)
{
	if (qp->path->far)
		acked(qp, bytes_of(qp, count), sent_once(qp, newest));
	else
		roci_flight_release(qp);
}

void roci_flight_release(struct roci_qp *qp)
{
	if (!qp->path)
		return;
	count_flight(qp);
	roci_flight_wake(qp->path);
}

void roci_flight_forget(struct roci_qp *qp)
{
	roci_send_window_forget(&qp->req.window);
	roci_sent_log_advance(&qp->req.log, qp->req.window.una);
	roci_scoreboard_reset(&qp->req.selective.board, qp->req.window.una);
	roci_flight_release(qp);
}

bool roci_flight_fits(struct roci_qp *qp, uint64_t bytes)
{
	bool room = !qp->req.flight || roci_path_fits(qp->path, bytes);

	return roci_path_admits(qp->path, qp->e->now, room, &qp->blocked);
}

static bool may_stream(const struct roci_qp *qp)
{
	const struct roci_path *p = qp->path;

	return qp->type == ROCI_QPT_RC && p->base_rtt && p->base_rtt < ROCI_PATH_FAR_NS && !p->far && !p->fixed &&
	       qp->peer.shown;
}

/* How many packets a QP may send without asking; 0: it does not stream. Each QP of the path that has something in
 * flight has a part of the window: it must not be filled by what none of them asks for. What may go beyond the window
 * does not count, since an acknowledgement takes it back. */
static uint64_t unasked(const struct roci_qp *qp)
{
	uint64_t streams = qp->path->busy + !qp->req.flight; /* this one, too */

	return may_stream(qp) ? qp->path->cwnd / (roci_qp_packet_bytes(qp) * ACKS_A_WINDOW * streams) : 0;
}

/* A power of two. */
static uint32_t ack_every(uint64_t unasked)
{
	uint32_t n = ACK_EVERY;

	while (n < ACK_EVERY_MOST && 2 * n <= unasked)
		n *= 2;
	return n;
}

bool roci_flight_streams(const struct roci_qp *qp)
{
	return qp->type == ROCI_QPT_RC && ack_every(unasked(qp)) > ACK_EVERY;
}

/* Whether a packet that surely asked was not answered yet: how far apart they ask changes with the window and with the
 * other QPs of the path, but these always do. */
static bool asks(const struct roci_qp *qp)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t last = w->next & ~(uint32_t)(ACK_EVERY_MOST - 1);

	return last != w->next && roci_psn_diff(last, w->una) >= 0 &&
	       (!qp->req.selective.agreed || roci_psn_diff(last, qp->req.selective.board.high) >= 0);
}

bool roci_flight_wants_ack(const struct roci_qp *qp, uint64_t bytes)
{
	bool fits = roci_path_fits(qp->path, bytes + ACK_EVERY * (uint64_t)qp->mtu);
	uint64_t part;

	if (qp->path->far)
		return (qp->req.window.next & (roci_path_ack_every(qp->path) - 1)) == 0;
	if (fits && (qp->req.window.next & (ACK_EVERY - 1)))
		return false;
	part = unasked(qp);
	if ((qp->req.window.next & (ack_every(part) - 1)) == 0)
		return true;
	return !fits && (part < ACK_EVERY || !asks(qp));
}
