/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session owns, how it fails and how it ends. */
#include "mover/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int session_init(struct session *s, const struct session_role *role, const struct mover_common *common,
		 struct teller *teller, unsigned number)
{
	*s = (struct session){.role = role, .common = common, .teller = teller, .number = number};
	s->stall_timeout_ms = common->stall_timeout_ms ? common->stall_timeout_ms : 30000;
	s->last_heard_ns = s->last_said_ns = mover_now_ns();
	s->channel = rdma_create_event_channel();
	if (!s->channel)
		return errno ? -errno : -ENODEV;
	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

static int open_queues(struct session *s)
{
	unsigned lanes = s->common->qps ? s->common->qps : MOVER_MAX_QPS;
	unsigned entries;

	s->pd = ibv_alloc_pd(s->verbs);
	if (!s->pd)
		return errno ? -errno : -ENOMEM;
	s->comp = ibv_create_comp_channel(s->verbs);
	if (!s->comp)
		return errno ? -errno : -ENOMEM;
	fcntl(s->comp->fd, F_SETFL, fcntl(s->comp->fd, F_GETFL) | O_NONBLOCK);
	s->cq_count = s->common->cqs ? s->common->cqs : 1;
	if (s->cq_count > lanes)
		s->cq_count = lanes;
	/* every CQ has room for all there can be at once: windows, small messages, and control messages */
	entries = 3 * PROTO_MAX_WINDOWS + 4 * MOVER_MAX_QPS + 4 * PROTO_CREDITS;
	for (unsigned i = 0; i < s->cq_count; i++) {
		s->cqs[i] = ibv_create_cq(s->verbs, (int)entries, NULL, s->comp, 0);
		if (!s->cqs[i])
			return errno ? -errno : -ENOMEM;
	}
	return 0;
}

bool session_open_device(struct session *s)
{
	struct link_size size = control_link_size();
	int err;

	s->verbs = s->control.link.id->verbs;
	s->iwarp = link_is_iwarp(s->control.link.id);
	s->rxe = link_is_rxe(s->verbs->device);
	err = open_queues(s);
	if (!err)
		err = control_create(&s->control, s->pd);
	if (!err)
		err = link_create_qp(&s->control.link, s->pd, s->cqs[0], &size);
	if (!err)
		err = control_start(&s->control);
	if (err)
		session_fail_errno(s, err,
				   err == -ENOMEM ? "setting up the RDMA device (is `ulimit -l` too small?)"
						  : "setting up the RDMA device");
	return !err;
}

/* The control connection, and all that session_open_device() has made. */
static void close_device(struct session *s)
{
	link_destroy(&s->control.link);
	control_destroy(&s->control);
	for (unsigned i = 0; i < s->cq_count; i++) {
		if (!s->cqs[i])
			continue;
		if (s->cq_events[i])
			ibv_ack_cq_events(s->cqs[i], s->cq_events[i]);
		ibv_destroy_cq(s->cqs[i]);
		s->cqs[i] = NULL;
		s->cq_events[i] = 0;
	}
	s->cq_count = 0;
	if (s->comp)
		ibv_destroy_comp_channel(s->comp);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	s->comp = NULL;
	s->pd = NULL;
	s->verbs = NULL;
}

void session_start_over(struct session *s)
{
	close_device(s);
	s->status = MOVER_OK;
	*s->text = 0;
	s->vague = false;
	s->peer_told = false;
}

/* Small messages on the lanes: a greeting each, and one for each window on each. */
static size_t small_bytes(const struct session *s)
{
	return (size_t)s->lane_count * (s->windows.count + 1) * PROTO_DONE_BYTES;
}

bool session_open_windows(struct session *s, unsigned count, int local_access)
{
	size_t bytes = s->terms.chunk_bytes + (s->terms.encrypt ? SECURE_CHUNK_TAG_BYTES : 0);
	int err = window_pool_create(&s->windows, s->pd, count, bytes, local_access);

	s->lane_count = s->terms.qps;
	if (!err) {
		s->small = calloc(1, small_bytes(s));
		err = s->small ? 0 : -ENOMEM;
	}
	if (!err) {
		s->small_mr = ibv_reg_mr(s->pd, s->small, small_bytes(s), IBV_ACCESS_LOCAL_WRITE);
		err = s->small_mr ? 0 : errno ? -errno : -ENOMEM;
	}
	if (err)
		session_fail_errno(s, err, SESSION_NO_MEMORY);
	return !err;
}

bool session_create_lane_qp(struct session *s, unsigned lane)
{
	struct link_size size = {.sends = 2 * s->windows.count + 2, .receives = s->windows.count + 1};
	struct ibv_cq *cq = s->cqs[lane % s->cq_count];
	int err = link_create_qp(&s->lanes[lane], s->pd, cq, &size);

	if (err)
		session_fail_errno(s, err, "making a data QP");
	return !err;
}

void session_destroy(struct session *s)
{
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		link_destroy(&s->lanes[i]);
	window_pool_destroy(&s->windows);
	if (s->small_mr)
		ibv_dereg_mr(s->small_mr);
	free(s->small);
	close_device(s);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
}

/* Failing */

void session_fail(struct session *s, enum mover_status status, const char *format, ...)
{
	va_list args;
	if (s->status != MOVER_OK && !s->vague)
		return;
	s->vague = false;
	s->status = status;
	va_start(args, format);
	vsnprintf(s->text, sizeof(s->text), format, args);
	va_end(args);
}

void session_lost(struct session *s, const char *text)
{
	if (s->status != MOVER_OK)
		return;
	session_fail(s, MOVER_LOST, "%s", text);
	s->vague = true;
}

void session_fail_errno(struct session *s, int err, const char *what)
{
	session_fail(s, MOVER_FAILED, "%s: %s", what, strerror(-err));
}

void session_fail_protocol(struct session *s, const char *what)
{
	session_fail(s, MOVER_PROTOCOL, "the peer broke the protocol: %s", what);
}

enum mover_status session_mirror_status(enum mover_status status)
{
	switch (status) {
	case MOVER_LOCAL_IO: return MOVER_REMOTE_IO;
	case MOVER_REMOTE_IO: return MOVER_LOCAL_IO;
	case MOVER_OK: return MOVER_FAILED;
	default: return status;
	}
}

/* Ending */

static bool all_taken(const struct session *s)
{
	return s->control.free_sends == (1u << PROTO_CREDITS) - 1;
}

static bool said_all(struct session *s)
{
	return all_taken(s) || s->control.link.state != LINK_UP;
}

bool session_goodbye(const struct session *s)
{
	return all_taken(s) && s->control.link.state == LINK_DOWN;
}

static void tell_failure(struct session *s)
{
	struct proto_end end = {.status = s->status};

	if (s->peer_told || !control_can_send(&s->control, PROTO_ERROR))
		return;
	if (s->control.sealed)
		end.text = proto_text(s->text);
	session_step(s, "ERROR", "%s", s->text);
	proto_put_end(control_begin(&s->control, PROTO_ERROR), &end);
	control_send(&s->control);
}

void session_close(struct session *s)
{
	enum mover_status status = s->status;
	char text[sizeof(s->text)];

	s->closing = true;
	s->vague = false;
	if (s->control.link.state == LINK_UP) {
		if (status != MOVER_OK)
			tell_failure(s);
		/* the loop runs once more, for what is still on its way out; how that ends is of no interest */
		memcpy(text, s->text, sizeof(text));
		s->status = MOVER_OK;
		s->peer_told = true;
		session_run(s, said_all, 2000, NULL);
		s->status = status;
		memcpy(s->text, text, sizeof(text));
	}
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		link_disconnect(&s->lanes[i]);
	link_disconnect(&s->control.link);
}

/* Sending */

struct cursor_out *session_begin(struct session *s, enum proto_type type)
{
	return control_can_send(&s->control, type) ? control_begin(&s->control, type) : NULL;
}

void session_send(struct session *s)
{
	int err = control_send(&s->control);
	if (err == -EMSGSIZE || err == -EBADMSG)
		session_fail(s, MOVER_FAILED, "a message could not be built: %s", strerror(-err));
	else if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(-err));
	s->last_said_ns = mover_now_ns();
}

bool session_handshake(struct session *s, const void *in, size_t len)
{
	size_t out_len = sizeof(s->handshake_out);
	int result = mover_secure_handshake(s->control.secure, in, len, s->handshake_out, &out_len);

	if (out_len) {
		struct cursor_out *out = session_begin(s, PROTO_HELLO);
		if (!out) {
			session_fail_protocol(s, "a handshake of too many flights");
			return false;
		}
		session_step(s, "HELLO", "version %d: %zu bytes of the handshake", PROTO_VERSION, out_len);
		put_bytes(out, s->handshake_out, out_len);
		session_send(s);
	}
	if (result == -EACCES)
		session_fail(s, MOVER_NO_TRUST, "the other side does not know the ticket");
	else if (result == -EPROTO)
		session_fail_protocol(s, "its handshake is none");
	else if (result < 0)
		session_fail_errno(s, result, "handshake");
	if (result == 1 && s->status == MOVER_OK)
		s->control.sealed = true;
	return s->control.sealed;
}

bool session_lane_receive(struct session *s, unsigned lane, unsigned slot)
{
	unsigned index = lane * (s->windows.count + 1) + slot;
	struct ibv_sge sge = {(uintptr_t)s->small + (size_t)index * PROTO_DONE_BYTES, PROTO_DONE_BYTES,
			      s->small_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = session_wr_id(WR_LANE_RECV, lane, slot), .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->lanes[lane].id->qp, &wr, &bad);

	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}

bool session_lane_send(struct session *s, unsigned lane, unsigned slot, uint64_t wr_id, uint64_t seq, uint16_t window)
{
	unsigned index = lane * (s->windows.count + 1) + slot;
	uint8_t *bytes = s->small + (size_t)index * PROTO_DONE_BYTES;
	struct ibv_sge sge = {(uintptr_t)bytes, PROTO_DONE_BYTES, s->small_mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	int err;

	proto_put_done(bytes, seq, window);
	err = ibv_post_send(s->lanes[lane].id->qp, &wr, &bad);
	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}
