/* SPDX-License-Identifier: BSD-2-Clause */
/* How a session begins, fails and ends; its messages and its handshake. */
#include "mover/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mover/clock.h"

#define HANDSHAKE_BYTES  16384 /* room for one flight; the protocol needs far less */
#define STALL_TIMEOUT_MS 30000
#define CLOSE_TIMEOUT_MS 2000

int session_init(struct session *s, const struct session_role *role, const struct mover_common *common,
		 struct events *events, unsigned number)
{
	*s = (struct session){.role = role, .common = common, .report = {.events = events, .number = number}};
	s->stall_timeout_ms = common->stall_timeout_ms ? common->stall_timeout_ms : STALL_TIMEOUT_MS;
	s->sent_ns = mover_now_ns();
	s->received_ns = s->sent_ns;
	s->channel = rdma_create_event_channel();
	if (!s->channel)
		return errno ? -errno : -ENODEV;
	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

void session_start_over(struct session *s)
{
	session_close_device(s);
	s->status = MOVER_OK;
	*s->text = 0;
	s->provisional = false;
	s->peer_notified = s->unawaited = false;
}

void session_destroy(struct session *s)
{
	session_close_lanes(s);
	session_close_device(s);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
}

/* Failing */

static void fail(struct session *s, enum mover_status status, const char *format, va_list args)
{
	s->status = status;
	vsnprintf(s->text, sizeof(s->text), format, args);
}

void session_fail(struct session *s, enum mover_status status, const char *format, ...)
{
	va_list args;

	if (s->status != MOVER_OK && !s->provisional)
		return;
	s->provisional = false;
	va_start(args, format);
	fail(s, status, format, args);
	va_end(args);
}

void session_lost(struct session *s, const char *format, ...)
{
	va_list args;

	if (s->status != MOVER_OK)
		return;
	s->provisional = true;
	va_start(args, format);
	fail(s, MOVER_LOST, format, args);
	va_end(args);
}

void session_fail_errno(struct session *s, int err, const char *what)
{
	session_fail(s, MOVER_FAILED, "%s: %s", what, strerror(-err));
}

void session_fail_protocol(struct session *s, const char *what)
{
	session_fail(s, MOVER_PROTOCOL, "the peer broke the protocol: %s", what);
}

void session_fail_memory(struct session *s)
{
	session_fail(s, MOVER_FAILED, "out of memory");
}

void session_fail_stopped(struct session *s)
{
	session_fail(s, MOVER_INTERRUPTED, s->report.stream ? "stopped" : "stopped; sending again resumes from here");
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

bool session_all_received(const struct session *s)
{
	return s->control.free_sends == (1u << PROTO_CREDITS) - 1;
}

bool session_all_sent(struct session *s)
{
	return session_all_received(s) || s->control.conn.state != CONNECTION_UP;
}

bool session_peer_finished(const struct session *s)
{
	return session_all_received(s) && s->control.conn.state == CONNECTION_DOWN;
}

static void send_error(struct session *s)
{
	struct proto_end end = {.status = s->status};

	if (s->peer_notified || !control_can_send(&s->control, PROTO_ERROR))
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
	s->provisional = false;
	if (s->control.conn.state == CONNECTION_UP && !s->unawaited) {
		if (status != MOVER_OK)
			send_error(s);
		/* Let what was sent arrive. The loop runs only while the status is OK, and what it finds now does not
		 * count. */
		memcpy(text, s->text, sizeof(text));
		s->status = MOVER_OK;
		s->peer_notified = true;
		session_wait(s, session_all_sent, CLOSE_TIMEOUT_MS);
		s->status = status;
		memcpy(s->text, text, sizeof(text));
	}
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		connection_disconnect(&s->lanes.conns[i]);
	connection_disconnect(&s->control.conn);
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
	s->sent_ns = mover_now_ns();
}

bool session_handshake(struct session *s, const void *in, size_t len)
{
	uint8_t bytes[HANDSHAKE_BYTES];
	size_t out_len = sizeof(bytes);
	int result = mover_secure_handshake(s->control.secure, in, len, bytes, &out_len);

	if (out_len && !s->control.sealed) {
		struct cursor_out *out = session_begin(s, PROTO_HELLO);
		if (!out) {
			session_fail_protocol(s, "too many handshake messages");
			return false;
		}
		session_step(s, "HELLO", "version %d: %zu bytes of the handshake", PROTO_VERSION, out_len);
		put_bytes(out, bytes, out_len);
		session_send(s);
	}
	if (result == -EACCES)
		session_fail(s, MOVER_NO_TRUST, "the other side does not know the ticket");
	else if (result == -EPROTO)
		session_fail_protocol(s, "its handshake is not TLS 1.3 with a ticket");
	else if (result < 0)
		session_fail_errno(s, result, "handshake");
	if (s->status != MOVER_OK)
		return false;
	s->control.sealed = mover_secure_can_seal(s->control.secure);
	s->control.trusted = result == 1;
	return true;
}
