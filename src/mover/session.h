/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: one transfer, at either end. It owns the device's objects, the connections and the windows. It turns
 * completions and connection events into calls of its role, the sender or the receiver. A session is one thread with
 * one loop; only the loop waits. */
#ifndef ROCI_MOVER_SESSION_H
#define ROCI_MOVER_SESSION_H

#include <poll.h>

#include "mover/connection.h"
#include "mover/control.h"
#include "mover/events.h"
#include "mover/give_way.h"
#include "mover/mover.h"
#include "mover/proto.h"
#include "mover/rate.h"
#include "mover/window.h"

#define SESSION_MAX_POLLED 6
#define SESSION_NO_MEMORY  "registering memory (is `ulimit -l` too small? --memory asks for less)"

struct session;

struct session_role {
	/* TERMS has come. */
	void (*terms)(struct session *s, struct cursor_in *payload);
	/* Any other message of a transfer has come; only after s->ready. */
	void (*message)(struct session *s, enum proto_type type, struct cursor_in *payload);
	/* An operation on a window has succeeded. `len` is that of a receive. */
	void (*window_done)(struct session *s, unsigned window, unsigned lane, uint32_t len);
	/* A greeting or DONE has come on a data connection. */
	void (*lane_message)(struct session *s, unsigned lane, uint64_t seq, uint16_t window);
	/* Does whatever can be done now. Returns whether it did anything. */
	bool (*pump)(struct session *s);
	/* Adds at most SESSION_MAX_POLLED descriptors to poll; returns how many. */
	unsigned (*poll_fds)(struct session *s, struct pollfd *fds);
};

/* session_device.c */
struct session_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cqs[MOVER_MAX_QPS];
	unsigned cq_count;
	unsigned cq_events[MOVER_MAX_QPS]; /* taken and not yet acknowledged */
	bool iwarp, rxe;
};

/* session_lanes.c. A lane is a data connection. */
struct session_lanes {
	struct connection conns[MOVER_MAX_QPS];
	unsigned count;
	unsigned slots;    /* of each: 1 and one for each window, as they were at first */
	uint8_t *messages; /* buffers of PROTO_DONE_BYTES: on each lane one for the greeting and one for each window */
	struct ibv_mr *mr;
};

/* session_events.c */
struct session_report {
	struct events *events;
	unsigned number;                 /* the session's, for people */
	unsigned steps[PROTO_TYPES + 8]; /* so far, of each name */
	struct mover_totals before;      /* of the sessions before, which this one continues */
	struct mover_totals progress;    /* as last reported */
	uint64_t progress_ns, connected_ns;
	struct rate rate;
	uint64_t round_trip_ns;   /* as last measured: the last report comes after the connection's end */
	char *part_file;          /* receiver, at the end: the first temporary file that stays; NULL: none */
	unsigned part_files;      /* ... and how many there are */
	enum mover_stream stream; /* it has begun to read or write it */
};

struct session {
	const struct session_role *role;
	const struct mover_common *common;
	unsigned stall_timeout_ms;
	uint32_t peer_timeout_ms; /* that of the peer; 0: it has not said so */

	struct rdma_event_channel *channel;
	struct session_device dev;
	struct control control;
	struct session_lanes lanes;
	struct window_pool pool;
	struct proto_terms terms;
	bool ready; /* set by the role: it can take the messages of a transfer */
	/* Set by the role: messages that come now wait for session_release_held(), in their order. */
	bool holding;
	struct {
		unsigned buffer;
		uint32_t len;
	} held[PROTO_CREDITS];
	unsigned held_count;

	enum mover_status status; /* OK while nothing has gone wrong */
	char text[600];           /* what has gone wrong */
	bool provisional;         /* the status only says that the connection ended; a better reason may replace it */
	bool closing;             /* a disconnect is expected */
	bool unawaited;           /* what was sent last need not arrive */
	bool peer_notified;       /* the peer knows how the session ended, or is gone: send no ERROR */

	_Atomic uint64_t received_ns; /* when something last came; other sessions may ask */
	uint64_t sent_ns;             /* when a message was last sent */
	struct give_way way;
	struct mover_totals totals;
	struct session_report report;
};

/* Empty; the calls below add what it owns. 0 or -errno. session_destroy() is allowed after a failure too. */
int session_init(struct session *s, const struct session_role *role, const struct mover_common *common,
		 struct events *events, unsigned number);
void session_destroy(struct session *s);

/* session_device.c: makes PD, channel and CQs on the device of the control connection's id, then the QP and the buffers
 * of the control connection. False after session_fail(). */
bool session_open_device(struct session *s);
void session_close_device(struct session *s);

/* Closes the device and forgets the failure, to try another address. */
void session_start_over(struct session *s);

/* session_lanes.c: makes s->terms.windows windows and the buffers of the lanes. `local_access` is as for
 * window_pool_create(). False after session_fail(). */
bool session_open_lanes(struct session *s, int local_access);
/* Makes the windows again where s->terms has fewer or smaller ones now. None is in use. */
bool session_fit_windows(struct session *s, int local_access);
void session_close_lanes(struct session *s);
/* Makes the QP of a lane whose id is there. */
bool session_lane_create_qp(struct session *s, unsigned lane);
/* Short messages on a lane; `slot` is 0 for the greeting, 1 + window for DONE. False after session_fail(). */
bool session_lane_receive(struct session *s, unsigned lane, unsigned slot);
bool session_lane_send(struct session *s, unsigned lane, unsigned slot, uint64_t wr_id, uint64_t seq, uint16_t window);
/* The buffer into which session_lane_receive() receives. */
uint8_t *session_lane_buffer(struct session *s, unsigned lane, unsigned slot);

/* session_loop.c: takes the messages that were held, and holds no more. If the session is not ready, only an ERROR
 * among them counts. */
void session_release_held(struct session *s);
/* runs the loop until `done` holds. `timeout_ms` 0: only the stall timeout ends a wait. */
enum session_wait {
	SESSION_DONE,
	SESSION_FAILED,
	SESSION_TIMED_OUT, /* s->status is still OK */
};
enum session_wait session_wait(struct session *s, bool (*done)(struct session *), unsigned timeout_ms);
/* As session_wait(), but fails the session when time runs out: "`what` took too long". True: done. */
bool session_run(struct session *s, bool (*done)(struct session *), unsigned timeout_ms, const char *what);

/* The first failure counts, except that it replaces one from session_lost(). session_lost(): the peer has gone, and the
 * reason may still be in a queue, or held. */
void session_lost(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void session_fail(struct session *s, enum mover_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void session_fail_errno(struct session *s, int err, const char *what);
void session_fail_protocol(struct session *s, const char *what);
void session_fail_memory(struct session *s);
void session_fail_stopped(struct session *s);
/* The status of a failure as the other side sees it. */
enum mover_status session_mirror_status(enum mover_status status);

/* Sends ERROR after a failure unless the peer knows already, and disconnects. Waits for two seconds at most. */
void session_close(struct session *s);
/* Whether the peer has received all that was sent; and whether it has then disconnected by itself. */
bool session_all_received(const struct session *s);
/* ... or none can be any more. */
bool session_all_sent(struct session *s);
bool session_peer_finished(const struct session *s);

/* Control messages. begin returns NULL if none can be sent now. */
struct cursor_out *session_begin(struct session *s, enum proto_type type);
void session_send(struct session *s);

/* Takes the next step of the handshake with the bytes that have come. False after session_fail(). */
bool session_handshake(struct session *s, const void *in, size_t len);

/* session_events.c */
void session_emit(struct session *s, struct mover_event *event);
void session_step(struct session *s, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void session_warn(struct session *s, const char *text);
/* What the program gets to see: s->totals with those of the sessions before. */
struct mover_totals session_totals(const struct session *s);
void session_progress(struct session *s, bool now); /* `now`: even if the last report is recent */
void session_connected(struct session *s);
void session_reconnecting(struct session *s, uint64_t left_ns); /* s->text says why; `left_ns` is in the event */
void session_ended(struct session *s);
void session_entry_done(struct session *s, const uint8_t *name, size_t name_len, uint64_t bytes,
			enum mover_outcome outcome, const char *text);

#endif
