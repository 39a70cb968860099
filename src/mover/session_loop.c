/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's loop: completions, connection events, time. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "mover/session.h"
#include "mover/stop.h"

#define POLL_BATCH 32
#define PING_NS    2000000000ull
#define SPIN_NS    30000ull /* before sleeping: an answer that comes at once costs no wake-up */
#define MS         1000000ull

static void completion_failed(struct session *s, const struct ibv_wc *wc)
{
	if (s->closing)
		return;
	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR: session_lost(s, "the connection was closed by the other side"); break;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		session_fail(s, MOVER_LOST, "the other side does not answer any more (%s)",
			     ibv_wc_status_str(wc->status));
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

	s->peer_told = true;
	if (proto_get_end(payload, &end)) {
		session_fail_protocol(s, "a broken ERROR message");
		return;
	}
	if (s->control.sealed) /* words of one who has proved nothing are not repeated */
		proto_text_copy(text, sizeof(text), &end.text);
	session_step(s, "ERROR", "%s", text);
	if (end.status == MOVER_NO_TRUST && !*text)
		session_fail(s, MOVER_NO_TRUST, "the other side does not know the ticket");
	else
		session_fail(s, session_mirror_status(end.status), "the other side gave up: %s",
			     *text ? text : mover_status_name(end.status));
}

static void got_message(struct session *s, const struct ibv_wc *wc)
{
	unsigned buffer = (uint32_t)wc->wr_id;
	enum proto_type type;
	struct cursor_in payload;
	int err = control_received(&s->control, buffer, wc->byte_len, &type, &payload);

	if (err == -ECONNABORTED) {
		s->peer_told = true;
		session_fail(s, MOVER_LOST, "the other side gave up during the handshake");
		return;
	}
	if (err) {
		session_fail_protocol(s, err == -EBADMSG ? "a message that it did not seal" : "a malformed message");
		return;
	}
	if (type == PROTO_ERROR)
		got_error(s, &payload);
	else if (type != PROTO_PING && !s->closing && s->status == MOVER_OK)
		s->role->message(s, type, &payload);
	if (s->status != MOVER_OK)
		return;
	err = control_release(&s->control, buffer);
	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(-err));
}

static void got_lane_message(struct session *s, const struct ibv_wc *wc, unsigned lane)
{
	unsigned slot = (uint32_t)wc->wr_id;
	const uint8_t *bytes = s->small + (size_t)(lane * (s->windows.count + 1) + slot) * PROTO_DONE_BYTES;
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
	enum wr_kind kind = (enum wr_kind)(wc->wr_id >> 48);
	unsigned lane = (uint16_t)(wc->wr_id >> 32), index = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		completion_failed(s, wc);
		return;
	}
	if (s->vague && kind != WR_CONTROL_RECV)
		return;
	switch (kind) {
	case WR_CONTROL_SEND: control_sent(&s->control, index); return;
	case WR_LANE_SEND: return;
	case WR_CONTROL_RECV:
		link_heard(&s->control.link);
		got_message(s, wc);
		break;
	case WR_LANE_RECV:
		link_heard(&s->lanes[lane]);
		got_lane_message(s, wc, lane);
		break;
	case WR_WINDOW:
		if (!s->closing)
			s->role->window_done(s, index, lane, wc->byte_len);
		break;
	}
	s->last_heard_ns = mover_now_ns();
}

/* Whether there was any. After a vague failure the rest is still looked at: for an ERROR that says more. */
static bool poll_queues(struct session *s)
{
	struct ibv_wc wc[POLL_BATCH];
	bool any = false;

	for (unsigned i = 0; i < s->cq_count; i++) {
		int n = ibv_poll_cq(s->cqs[i], POLL_BATCH, wc);
		if (n < 0)
			session_fail(s, MOVER_FAILED, "the completion queue broke");
		for (int k = 0; k < n && (s->status == MOVER_OK || s->vague); k++)
			completed(s, &wc[k]);
		any |= n > 0;
	}
	return any;
}

static void link_went_down(struct session *s, struct link *link)
{
	/* What the peer has sent before is in the queues by now. */
	while ((s->status == MOVER_OK || s->vague) && poll_queues(s))
		;
	if (!s->closing)
		session_lost(s, "the other side closed the connection");
	s->peer_told = true;
	(void)link;
}

static bool poll_connections(struct session *s)
{
	struct rdma_cm_event *event;
	bool any = false;

	while (rdma_get_cm_event(s->channel, &event) == 0) {
		struct link *link = event->id->context;
		bool meant = link && link_event(link, event);
		rdma_ack_cm_event(event);
		any = true;
		if (!meant)
			continue;
		if (link->state == LINK_UP)
			s->last_heard_ns = mover_now_ns();
		else if (link->state == LINK_DOWN)
			link_went_down(s, link);
	}
	return any;
}

/* Sleeping */

/* Asks for events, then looks again for what came before that. */
static bool arm(struct session *s)
{
	for (unsigned i = 0; i < s->cq_count; i++)
		ibv_req_notify_cq(s->cqs[i], 0);
	return poll_queues(s);
}

static void take_queue_events(struct session *s)
{
	struct ibv_cq *cq;
	void *context;

	while (s->comp && ibv_get_cq_event(s->comp, &cq, &context) == 0)
		for (unsigned i = 0; i < s->cq_count; i++)
			if (s->cqs[i] == cq && ++s->cq_events[i] == 1000) {
				ibv_ack_cq_events(cq, 1000);
				s->cq_events[i] = 0;
			}
}

static void sleep_for(struct session *s, int timeout_ms)
{
	struct pollfd fds[SESSION_MAX_POLLED + 3] = {{0}};
	unsigned n = s->role->poll_fds(s, fds);

	fds[n++] = (struct pollfd){.fd = s->channel->fd, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->comp ? s->comp->fd : -1, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->closing ? -1 : mover_stop_fd(), .events = POLLIN};
	poll(fds, n, timeout_ms);
	take_queue_events(s);
}

/* Time */

static void keep_alive(struct session *s, uint64_t now)
{
	uint64_t ping = s->stall_timeout_ms * MS / 4 < PING_NS ? s->stall_timeout_ms * MS / 4 : PING_NS;

	if (!s->control.sealed || !control_can_send(&s->control, PROTO_PING))
		return;
	if (!control_owes(&s->control) && now - s->last_said_ns < ping)
		return;
	control_begin(&s->control, PROTO_PING);
	session_send(s);
}

static void check_time(struct session *s, uint64_t now, uint64_t deadline, const char *what)
{
	if (mover_stopped() && !s->closing)
		session_fail(s, MOVER_INTERRUPTED, "stopped; sending again goes on from here");
	else if (deadline && now >= deadline)
		session_fail(s, MOVER_LOST, "%s took too long", what ? what : "closing");
	else if (s->control.link.state == LINK_UP && now - s->last_heard_ns > s->stall_timeout_ms * MS)
		session_fail(s, MOVER_LOST, "nothing heard from the other side for %u seconds",
			     s->stall_timeout_ms / 1000);
}

bool session_run(struct session *s, bool (*done)(struct session *), unsigned timeout_ms, const char *what)
{
	uint64_t now = mover_now_ns(), deadline = timeout_ms ? now + timeout_ms * MS : 0, idle_since = now;

	while (s->status == MOVER_OK) {
		bool any = poll_queues(s);

		any |= poll_connections(s);
		if (!s->closing && s->status == MOVER_OK)
			any |= s->role->pump(s);
		now = mover_now_ns();
		keep_alive(s, now);
		check_time(s, now, deadline, what);
		session_progress(s, false);
		if (s->status != MOVER_OK || done(s))
			break;
		if (any)
			idle_since = now;
		else if (!s->common->poll && now - idle_since > SPIN_NS && !arm(s))
			sleep_for(s, 50);
	}
	while (s->vague && poll_queues(s))
		;
	return s->status == MOVER_OK;
}
