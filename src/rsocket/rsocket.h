/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsockets: byte streams and datagrams with the names of the socket calls, over rdma_cm ids and verbs. Only the public
 * functions of both are used, and the clock: nothing here knows the device.
 *
 *	rsocket.c	makes, binds and closes sockets		connect.c	rconnect(), raccept()
 *	connection.c	a stream's QP, buffers, beginning and end
 *	stream.c	a stream's messages			io.c		the reading and writing calls
 *	wait.c		waiting for progress			poll.c		rpoll(), rselect()
 *	iomap.c		riomap(), riowrite()			option.c	options
 *	datagram.c	SOCK_DGRAM				table.c		descriptors
 *
 * Functions declared here return 0 or a negative errno, unless they say otherwise.
 *
 * Locks: the table's (table.c) is held for a look-up only. A socket's lock guards its state, and is released while a
 * call sleeps. Under it, functions of rdma_cm and verbs are called, with their locks.
 */
#ifndef ROCI_RSOCKET_RSOCKET_H
#define ROCI_RSOCKET_RSOCKET_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/list.h"
#include "rdmacm/public.h"
#include "rsocket/protocol.h"

enum rs_state {
	RS_INIT,
	RS_BOUND,
	RS_LISTENING,
	RS_CONNECTING,
	RS_CONNECTED,
	RS_DISCONNECTED, /* received data can still be read */
	RS_ERROR,
};

/* Options of option.c. Sizes are those of buffers and queues once these exist. */
struct rs_options {
	bool reuseaddr, v6only, nodelay, keepalive, oobinline;
	int keepidle, keepintvl, keepcnt, maxseg;
	struct linger linger;
	uint32_t sq_size, rq_size, inline_size, sbuf_size, rbuf_size;
	int iomap_size; /* entries */
};

/* The sending side of a stream. */
struct rs_send {
	uint8_t *buf; /* ring of sbuf_size bytes */
	struct ibv_mr *mr;
	uint32_t offset, room; /* next byte to use; unused bytes */
	uint32_t sq_room;      /* data messages that fit into the send queue */
	uint32_t ctrl_used;    /* control messages in the send queue, at most RS_CTRL_SLOTS */
	uint16_t messages;     /* data messages sent so far, */
	uint16_t allowed;      /* and allowed by credits */
	/* Written by the peer: */
	struct rs_sge *targets; /* RS_TARGETS entries */
	struct rs_iomap *maps;  /* iomap_size entries, behind the targets */
	struct ibv_mr *targets_mr;
	unsigned target; /* the one in use */
};

/* The receiving side of a stream. */
struct rs_recv {
	uint8_t *buf; /* two halves */
	struct ibv_mr *mr;
	uint32_t offset;    /* next byte to read */
	uint32_t next_half; /* offset of the half to name next */
	uint32_t freed;     /* bytes that were read since their half was named */
	uint32_t *lengths;  /* of unread messages: ring of rq_size + 1 */
	unsigned first, last;
	uint32_t unread;   /* sum of the lengths, at most rs_ring_size() */
	uint16_t messages; /* read so far, */
	uint16_t granted;  /* and when new credits are due */
	/* Lists of the peer: */
	struct rs_sge peer_targets; /* length: entries */
	unsigned peer_target;       /* the one to write next */
	struct rs_sge peer_maps;    /* length: entries */
};

#define RS_CTRL_SLOTS 4 /* of the send queue, for control messages */

struct rs {
	int fd;      /* the program's: of the id's event channel, or of a datagram's UDP socket */
	pid_t owner; /* the process that made it */
	int domain, type;
	struct rs_datagram *datagram; /* SOCK_DGRAM; it uses only the lock and nonblock of the rest */

	pthread_mutex_t lock;      /* all below */
	pthread_cond_t progressed; /* a thread has found a completion, or wakes up */
	/* A thread sleeps on the descriptors, and takes the events that make them readable: it would not see those that
	 * another one takes. Others wait for `progressed`. */
	bool sleeping;
	int wake_fd; /* wakes that thread; -1: none has slept yet, or there was no descriptor for it */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	enum rs_state state;
	bool readable, writable; /* not shut down */
	bool nonblock;
	int err;        /* SO_ERROR */
	unsigned polls; /* calls of rs_stream_progress() since rs_wait_arm() */

	struct rs_options options;
	struct rs_send send;
	struct rs_recv recv;
	struct roci_list maps; /* riomap() */
};

/* Bytes of both halves of the receive buffer. */
static inline uint32_t rs_ring_size(const struct rs *rs)
{
	return rs->options.rbuf_size / 2 * 2;
}

/* The public result of 0 or a negative errno: 0, or -1 with errno. */
static inline int rs_result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

struct rs *rs_new(int domain, int type); /* NULL: out of memory */
void rs_free(struct rs *rs);
/* Sets the options of rdma_set_option() that the socket has. */
int rs_apply_id_options(struct rs *rs);
int rs_set_nonblocking(int fd);
/* Copies an address as accept(2) does: cut to *addrlen, which becomes the full length. */
void rs_copy_addr(const struct sockaddr *from, struct sockaddr *addr, socklen_t *addrlen);

/* ---- table of descriptors ---- */

/* NULL with errno EBADF. */
struct rs *rs_table_find(int fd);
int rs_table_insert(struct rs *rs); /* -ENOMEM */
void rs_table_remove(int fd);

/* As poll(2), but returns 0 or a negative errno, and 0 also early. -EINTR: vb_event_fd_interrupted(). Lock not held. */
int rs_sleep(struct pollfd *fds, unsigned count, int timeout_ms);

/* ---- waiting; lock held ---- */

#define RS_NEVER UINT64_MAX
/* Waits until done(rs), at most until `deadline` (roci_now(); 0: does not wait). -EAGAIN, -ETIMEDOUT; -EINTR. */
int rs_wait_until(struct rs *rs, uint64_t deadline, bool (*done)(const struct rs *rs));
/* Waits until done(rs). -EAGAIN: not done, and `nonblock`; -EINTR. */
int rs_wait(struct rs *rs, bool nonblock, bool (*done)(const struct rs *rs));
/* The state has changed by a call: the threads that wait look whether they are done. */
void rs_wake(struct rs *rs);
/* Requests an event for the next completion. */
void rs_wait_arm(struct rs *rs);
/* Takes the events of the CQ, so that its descriptor is not readable. Not while a thread sleeps. */
void rs_wait_take_cq_events(struct rs *rs);

/* ---- connections; lock held ---- */

/* The QP, its CQ and the buffers. */
int rs_conn_create_qp(struct rs *rs);
/* Gives the id one CQ of `size` entries for sends and receives, so that there is one descriptor to wait on. It does not
 * block. */
int rs_conn_create_cq(struct rdma_cm_id *id, uint32_t size);
/* Destroys QP, CQ and channel, as far as they exist. */
void rs_conn_destroy_qp(struct rdma_cm_id *id);
void rs_conn_fill_data(const struct rs *rs, struct rs_conn_data *data);
/* -EPROTO: the peer is no rsocket. */
int rs_conn_take_data(struct rs *rs, const struct rdma_conn_param *param);
/* Processes the events of the connection manager. Not while a thread sleeps. */
void rs_conn_take_events(struct rs *rs);
/* As rshutdown(): tells the peer, and waits until it has the rest of the stream. */
int rs_conn_shutdown(struct rs *rs, int how);

/* ---- streams; lock held ---- */

/* Processes completions and events, gives credits. Never blocks. */
void rs_stream_progress(struct rs *rs);

bool rs_stream_can_send(const struct rs *rs);
bool rs_stream_can_send_ctrl(const struct rs *rs);
bool rs_stream_has_data(const struct rs *rs);
/* The call need not wait: it can send (has data), or never will. */
bool rs_stream_send_is_decided(const struct rs *rs);
bool rs_stream_recv_is_decided(const struct rs *rs);

int rs_stream_post_recv(struct rs *rs);
/* Copies to the send buffer and sends, as much as rs_stream_can_send() allows. Returns the number of bytes. */
uint32_t rs_stream_send(struct rs *rs, const uint8_t *buf, uint32_t len);
/* One RDMA WRITE of `len` bytes from the send buffer, after copying them there. The buffer must have room. */
int rs_stream_post_data(struct rs *rs, const uint8_t *buf, uint32_t len, uint32_t msg, uint64_t addr, uint32_t key,
			bool imm);
void rs_stream_give_credits(struct rs *rs);
int rs_stream_post_ctrl(struct rs *rs, enum rs_ctrl ctrl);

/* ---- direct writes; lock held ---- */

/* Sends the mappings that the peer does not know yet, as far as possible. */
void rs_iomap_send(struct rs *rs);
void rs_iomap_free_all(struct rs *rs);

#endif
