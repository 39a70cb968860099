/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: one transfer, at either end. It owns the device's objects, the connections and the windows, and turns what
 * happens to them into calls of its role (the sender or the receiver). One thread, one loop; nothing in it waits
 * except the loop. */
#ifndef ROCI_MOVER_SESSION_H
#define ROCI_MOVER_SESSION_H

#include <poll.h>

#include "mover/control.h"
#include "mover/link.h"
#include "mover/mover.h"
#include "mover/proto.h"
#include "mover/teller.h"
#include "mover/window.h"

#define SESSION_MAX_POLLED 6
#define SESSION_NO_MEMORY  "registering memory (is `ulimit -l` too small? --memory asks for less)"

enum wr_kind {
	WR_CONTROL_RECV,
	WR_CONTROL_SEND,
	WR_LANE_RECV, /* a small message on a data connection: a greeting, or DONE */
	WR_LANE_SEND,
	WR_WINDOW, /* a window's WRITE (with its DONE), READ, SEND, or receive */
};

static inline uint64_t session_wr_id(enum wr_kind kind, unsigned lane, unsigned index)
{
	return (uint64_t)kind << 48 | (uint64_t)lane << 32 | index;
}

struct session;

struct session_role {
	/* A message has come, in the clear or opened. Fails the session by itself where it is wrong. */
	void (*message)(struct session *s, enum proto_type type, struct cursor_in *payload);
	/* A window's operation has succeeded. `len` is that of a received one. */
	void (*window_done)(struct session *s, unsigned window, unsigned lane, uint32_t len);
	/* DONE on a data connection. */
	void (*lane_message)(struct session *s, unsigned lane, uint64_t seq, uint16_t window);
	/* Goes on with whatever can go on. Returns whether it did anything. */
	bool (*pump)(struct session *s);
	/* Adds descriptors to poll; returns how many. */
	unsigned (*poll_fds)(struct session *s, struct pollfd *fds);
};

struct session {
	const struct session_role *role;
	const struct mover_common *common;
	struct teller *teller;
	unsigned number;
	unsigned stall_timeout_ms;

	struct rdma_event_channel *channel;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cqs[MOVER_MAX_QPS];
	unsigned cq_count, cq_events[MOVER_MAX_QPS];

	struct control control;
	struct link lanes[MOVER_MAX_QPS];
	unsigned lane_count;
	/* small messages on the lanes: `small_count` of PROTO_DONE_BYTES */
	uint8_t *small;
	struct ibv_mr *small_mr;
	struct window_pool windows;
	struct proto_terms terms;
	bool iwarp, rxe;

	enum mover_status status; /* OK while nothing has gone wrong */
	char text[320];           /* what has gone wrong */
	bool vague;               /* ... is only that it ended; whoever knows why may still say so */
	bool closing;             /* a disconnect is no surprise any more */
	bool peer_told;           /* the peer has sent ERROR, or vanished: nothing to tell it */

	uint64_t last_heard_ns, last_said_ns, connected_ns, last_progress_ns;
	struct mover_totals totals, told;
	unsigned steps[PROTO_TYPES + 8];
	uint8_t handshake_out[16384];
};

/* Empty; what it owns comes with the calls below. 0 or -errno. */
int session_init(struct session *s, const struct session_role *role, const struct mover_common *common,
		 struct teller *teller, unsigned number);
void session_destroy(struct session *s);

/* PD, channel and CQs on the device of the control connection's id, which is known now; then its QP. False after
 * session_fail(). */
bool session_open_device(struct session *s);
/* Undoes it, and forgets the failure: for a connection to another address. */
void session_start_over(struct session *s);
/* Windows and what the data connections need, by s->terms. `count` windows. */
bool session_open_windows(struct session *s, unsigned count, int local_access);
bool session_create_lane_qp(struct session *s, unsigned lane);

/* Runs the loop until `done` says so. False: failed, or not within `timeout_ms` (0: no bound but the peer's silence).
 */
bool session_run(struct session *s, bool (*done)(struct session *), unsigned timeout_ms, const char *what);

/* The first failure counts; session_lost()'s only until there is a better one: the other side has gone, and its reason
 * may still be in a queue. */
void session_lost(struct session *s, const char *text);
void session_fail(struct session *s, enum mover_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void session_fail_errno(struct session *s, int err, const char *what);
void session_fail_protocol(struct session *s, const char *what);

/* Whether the peer has taken all that was sent, and then closed the connection by itself. */
bool session_goodbye(const struct session *s);

/* Tells the peer of a failure if it does not know, and disconnects, waiting for at most a second or two. */
void session_close(struct session *s);

/* Control messages: begin returns NULL if none can be sent now. */
struct cursor_out *session_begin(struct session *s, enum proto_type type);
void session_send(struct session *s);

/* One flight of the handshake with what has come. Returns true when it has finished. */
bool session_handshake(struct session *s, const void *in, size_t len);

/* Small messages on a data connection. */
bool session_lane_receive(struct session *s, unsigned lane, unsigned slot);
bool session_lane_send(struct session *s, unsigned lane, unsigned slot, uint64_t wr_id, uint64_t seq, uint16_t window);

/* Events */
void session_tell(struct session *s, struct mover_event *event);
void session_step(struct session *s, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void session_warn(struct session *s, const char *text);
void session_progress(struct session *s, bool now);
void session_connected(struct session *s);
void session_ended(struct session *s);
void session_entry_done(struct session *s, const uint8_t *name, size_t name_len, uint64_t bytes,
			enum mover_outcome outcome, const char *text);

/* The status of a failure as the other side sees it. */
enum mover_status session_mirror_status(enum mover_status status);

#endif
