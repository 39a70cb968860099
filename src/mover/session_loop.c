/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's loop: completions, connection events, time. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "mover/clock.h"
#include "mover/session.h"
#include "mover/stop.h"
#include "mover/wr_id.h"

#define POLL_BATCH        32
#define PING_NS           2000000000ull
#define LEAST_TIMEOUT_MS  1000u    /* that a peer may have: it gets PINGs no more often than that takes */
#define SPIN_NS           30000ull /* before sleeping: an answer that comes at once costs no wake-up */
#define MAX_SLEEP_MS      50
#define CQ_EVENTS_AT_ONCE 1000 /* acknowledged in one call, which takes a lock */
#define MS                1000000ull

static void completion_failed(struct session *s, const struct ibv_wc *wc)
{
	if (s->closing)
		return;
	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR: session_lost(s, "the connection was closed by the other side"); break;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		session_lost(s, "the other side no longer answers (%s)", ibv_wc_status_str(wc->status));
		break;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_LOC_LEN_ERR:
		session_fail(s, MOVER_PROTOCOL, "a data transfer was refused (%s)", ibv_wc_status_str(wc->status));
		break;
	default: session_fail(s, MOVER_LOST, "the connection broke (%s)", ibv_wc_status_str(wc->status));
	}
}

static void got_error(struct session *s, struct cursor_in *payload)
{
	struct proto_end end;
	char text[PROTO_MAX_TEXT + 1] = "";

	s->peer_notified = true;
	if (proto_get_end(payload, &end)) {
		session_fail_protocol(s, "a malformed ERROR message");
		return;
	}
	if (s->control.trusted) /* do not repeat text from a peer that has proved nothing */
		proto_text_copy(text, sizeof(text), &end.text);
	session_step(s, "ERROR", "%s", text);
	if (end.status == MOVER_NO_TRUST && !*text)
		session_fail(s, MOVER_NO_TRUST, "the other side does not know the ticket");
	else
		session_fail(s, session_mirror_status(end.status), "the other side gave up: %s",
			     *text ? text : mover_status_name(end.status));
}

static void got_ping(struct session *s, struct cursor_in *payload)
{
	uint32_t timeout_ms;

	if (proto_get_ping(payload, &timeout_ms))
		session_fail_protocol(s, "a malformed PING");
	else if (timeout_ms)
		s->peer_timeout_ms = timeout_ms < LEAST_TIMEOUT_MS ? LEAST_TIMEOUT_MS : timeout_ms;
}

/* The handshake and TERMS come before the role is ready; everything else comes too early until then. */
static void take_message(struct session *s, enum proto_type type, struct cursor_in *payload)
{
	size_t len = (size_t)(payload->end - payload->at);

	if (type == PROTO_HELLO && !s->control.trusted && s->control.secure) {
		session_step(s, "HELLO", "%zu bytes of the handshake", len);
		session_handshake(s, payload->at, len);
	} else if (type == PROTO_TERMS && s->control.trusted) {
		s->role->terms(s, payload);
	} else if (!s->control.trusted || !s->ready) {
		session_fail_protocol(s, "a message too early");
	} else {
		s->role->message(s, type, payload);
	}
}

static void open_message(struct session *s, unsigned buffer, uint32_t len)
{
	enum proto_type type;
	struct cursor_in payload;
	int err = control_received(&s->control, buffer, len, &type, &payload);

	if (err) {
		session_fail_protocol(s, err == -EBADMSG ? "a message that it did not seal" : "a malformed message");
		return;
	}
	if (type == PROTO_ERROR)
		got_error(s, &payload);
	else if (type == PROTO_PING)
		got_ping(s, &payload);
	else if ((!s->closing || type == PROTO_BYE) && s->status == MOVER_OK)
		take_message(s, type, &payload);
	if (s->status != MOVER_OK)
		return;
	err = control_release(&s->control, buffer);
	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(-err));
}

static void got_message(struct session *s, const struct ibv_wc *wc)
{
	unsigned buffer = wr_id_index(wc->wr_id);

	if (!s->holding)
		open_message(s, buffer, wc->byte_len);
	else /* no more than there are receives */
		s->held[s->held_count++] = (typeof(s->held[0])){buffer, wc->byte_len};
}

void session_release_held(struct session *s)
{
	s->holding = false;
	for (unsigned i = 0; i < s->held_count && (s->status == MOVER_OK || s->provisional); i++)
		open_message(s, s->held[i].buffer, s->held[i].len);
	s->held_count = 0;
}

static void got_lane_message(struct session *s, const struct ibv_wc *wc, unsigned lane)
{
	unsigned slot = wr_id_index(wc->wr_id);
	const uint8_t *bytes = session_lane_buffer(s, lane, slot);
	uint64_t seq;
	uint16_t window;

	if (proto_get_done(bytes, wc->byte_len, &seq, &window)) {
		session_fail_protocol(s, "a malformed message on a data connection");
		return;
	}
	if (s->terms.mode == MOVER_WRITE && !session_lane_receive(s, lane, slot))
		return;
	s->role->lane_message(s, lane, seq, window);
}

static void completed(struct session *s, const struct ibv_wc *wc)
{
	enum wr_kind kind = wr_id_kind(wc->wr_id);
	unsigned lane = wr_id_lane(wc->wr_id), index = wr_id_index(wc->wr_id);

	if (wc->status != IBV_WC_SUCCESS) {
		completion_failed(s, wc);
		return;
	}
	if (s->provisional && kind != WR_CONTROL_RECV)
		return;
	switch (kind) {
	case WR_CONTROL_SEND: control_sent(&s->control, index); return;
	case WR_LANE_SEND: return;
	case WR_CONTROL_RECV:
		connection_received(&s->control.conn);
		got_message(s, wc);
		break;
	case WR_LANE_RECV:
		connection_received(&s->lanes.conns[lane]);
		got_lane_message(s, wc, lane);
		break;
	case WR_WINDOW:
		if (!s->closing)
			s->role->window_done(s, index, lane, wc->byte_len);
		break;
	}
	s->received_ns = mover_now_ns();
}

/* Returns whether there was any completion. After a provisional failure the rest is read too: it may have an ERROR that
 * gives the reason. */
static bool poll_queues(struct session *s)
{
	struct ibv_wc wc[POLL_BATCH];
	bool any = false;

	for (unsigned i = 0; i < s->dev.cq_count; i++) {
		int n = ibv_poll_cq(s->dev.cqs[i], POLL_BATCH, wc);
		if (n < 0)
			session_fail(s, MOVER_FAILED, "polling a completion queue failed");
		for (int k = 0; k < n && (s->status == MOVER_OK || s->provisional); k++)
			completed(s, &wc[k]);
		any |= n > 0;
	}
	return any;
}

static void disconnected(struct session *s)
{
	/* What the peer sent before is in the queues by now. */
	while ((s->status == MOVER_OK || s->provisional) && poll_queues(s))
		;
	if (!s->closing)
		session_lost(s, "the other side closed the connection");
	s->peer_notified = true;
	session_release_held(s); /* an ERROR among them says why */
}

static bool poll_connections(struct session *s)
{
	struct rdma_cm_event *event;
	bool any = false;

	while (rdma_get_cm_event(s->channel, &event) == 0) {
		struct connection *conn = event->id->context;
		bool changed = conn && connection_event(conn, event);
		rdma_ack_cm_event(event);
		any = true;
		if (!changed)
			continue;
		if (conn->state == CONNECTION_UP)
			s->received_ns = mover_now_ns();
		else if (conn->state == CONNECTION_DOWN)
			disconnected(s);
	}
	return any;
}

/* Sleeping */

/* Asks for events, then polls once more for what came before that. */
static bool arm(struct session *s)
{
	for (unsigned i = 0; i < s->dev.cq_count; i++)
		ibv_req_notify_cq(s->dev.cqs[i], 0);
	return poll_queues(s);
}

static void take_queue_events(struct session *s)
{
	struct ibv_cq *cq;
	void *context;

	while (s->dev.comp && ibv_get_cq_event(s->dev.comp, &cq, &context) == 0)
		for (unsigned i = 0; i < s->dev.cq_count; i++)
			if (s->dev.cqs[i] == cq && ++s->dev.cq_events[i] == CQ_EVENTS_AT_ONCE) {
				ibv_ack_cq_events(cq, CQ_EVENTS_AT_ONCE);
				s->dev.cq_events[i] = 0;
			}
}

static void sleep_for(struct session *s, int timeout_ms)
{
	struct pollfd fds[SESSION_MAX_POLLED + 3] = {{0}};
	unsigned n = s->role->poll_fds(s, fds);
	uint64_t from;

	fds[n++] = (struct pollfd){.fd = s->channel->fd, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->dev.comp ? s->dev.comp->fd : -1, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->closing ? -1 : mover_stop_fd(), .events = POLLIN};
	from = mover_now_ns();
	poll(fds, n, timeout_ms);
	give_way_slept(&s->way, from, mover_now_ns());
	take_queue_events(s);
}

/* Time */

/* How long this side may be silent: several PINGs come before either side gives up. */
static uint64_t most_silence_ns(const struct session *s)
{
	bool peer = s->peer_timeout_ms && s->peer_timeout_ms < s->stall_timeout_ms;
	uint64_t part_ns = (peer ? s->peer_timeout_ms : s->stall_timeout_ms) * MS / 4;

	return part_ns < PING_NS ? part_ns : PING_NS;
}

static void keep_alive(struct session *s, uint64_t now)
{
	if (!s->control.sealed || !control_can_send(&s->control, PROTO_PING))
		return;
	if (!control_credits_due(&s->control) && now - s->sent_ns < most_silence_ns(s))
		return;
	proto_put_ping(control_begin(&s->control, PROTO_PING), s->stall_timeout_ms);
	session_send(s);
}

static void check_stall(struct session *s, uint64_t now)
{
	if (mover_stopped() && !s->closing)
		session_fail_stopped(s);
	else if (!s->closing && s->control.conn.state == CONNECTION_UP &&
		 now - s->received_ns > s->stall_timeout_ms * MS)
		session_fail(s, MOVER_LOST, "nothing received from the other side for %g second%s",
			     s->stall_timeout_ms / 1000.0, s->stall_timeout_ms == 1000 ? "" : "s");
}

/* One round. Returns whether anything happened. */
static bool run_once(struct session *s, uint64_t *now)
{
	bool any = poll_queues(s);

	any |= poll_connections(s);
	if (!s->closing && s->status == MOVER_OK)
		any |= s->role->pump(s);
	*now = mover_now_ns();
	keep_alive(s, *now);
	check_stall(s, *now);
	session_progress(s, false);
	return any;
}

enum session_wait session_wait(struct session *s, bool (*done)(struct session *), unsigned timeout_ms)
{
	uint64_t now = mover_now_ns(), deadline = timeout_ms ? now + timeout_ms * MS : UINT64_MAX, idle_since = now;

	while (s->status == MOVER_OK) {
		bool any = run_once(s, &now);

		if (s->status != MOVER_OK)
			break;
		if (done(s))
			return SESSION_DONE;
		if (now >= deadline)
			return SESSION_TIMED_OUT;
		if (any)
			idle_since = now;
		else if (!s->common->poll && now - idle_since > SPIN_NS && !arm(s))
			sleep_for(s, MAX_SLEEP_MS);
	}
	while (s->provisional && poll_queues(s))
		;
	if (s->provisional)
		session_release_held(s);
	return SESSION_FAILED;
}

bool session_run(struct session *s, bool (*done)(struct session *), unsigned timeout_ms, const char *what)
{
	enum session_wait result = session_wait(s, done, timeout_ms);

	if (result == SESSION_TIMED_OUT)
		session_fail(s, MOVER_LOST, "%s took too long", what);
	return result == SESSION_DONE;
}
