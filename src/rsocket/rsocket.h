/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsockets: byte streams (and datagrams) with the socket calls' names, over rdma_cm ids and verbs. Public API only:
 * nothing here knows which device it runs on.
 *
 * A stream moves data with RDMA Writes into the peer's receive buffer. The buffer is two halves; the peer names a half
 * in its list of targets (`target_sgl`), and when the half is read it is named again, by an RDMA Write into the
 * sender's copy of that list. Every Write carries immediate data: what it is (3 bits) and how much (29 bits). Credits
 * keep the number of messages below the posted receives. The wire is that of librdmacm's rsockets (captures
 * rxe-6.1-rstream, -riostream, -rcopy).
 */
#ifndef ROCI_RSOCKET_RSOCKET_H
#define ROCI_RSOCKET_RSOCKET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "rdmacm/public.h"

/* ---- the wire ---- */

enum rs_op {
	RS_OP_DATA = 0,      /* value: bytes */
	RS_OP_WRITE = 2,     /* riowrite(): has no immediate data, the operation is for the completion */
	RS_OP_SGL = 4,       /* value: credits */
	RS_OP_IOMAP_SGL = 6, /* value: index */
	RS_OP_CTRL = 7,      /* value: enum rs_ctrl */
};
enum rs_ctrl { RS_CTRL_DISCONNECT, RS_CTRL_KEEPALIVE, RS_CTRL_SHUTDOWN };

static inline uint32_t rs_msg(enum rs_op op, uint32_t value)
{
	return (uint32_t)op << 29 | value;
}
static inline enum rs_op rs_msg_op(uint32_t msg)
{
	return (enum rs_op)(msg >> 29);
}
static inline uint32_t rs_msg_value(uint32_t msg)
{
	return msg & 0x1fffffff;
}

struct rs_sge {
	uint64_t addr;
	uint32_t key, length;
};
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

#define RS_VERSION         1
#define RS_CONN_FLAG_NET   1 /* the peer's memory is big-endian */
#define RS_CONN_FLAG_IOMAP 2
#define RS_TARGETS         2 /* entries of a target_sgl */

/* Private data of REQ and REP, big-endian. */
struct rs_conn_data {
	uint8_t version, flags;
	__be16 credits;
	uint8_t reserved[3];
	uint8_t iomap_size;       /* in units of 8 entries */
	struct rs_sge target_sgl; /* where the peer writes its targets; length: entries */
	struct rs_sge data_buf;   /* the first target */
};

/* ---- sockets ---- */

enum rs_state {
	RS_INIT,
	RS_BOUND,
	RS_LISTENING,
	RS_CONNECTING,
	RS_CONNECTED,
	RS_DISCONNECTED, /* what was received may still be read */
	RS_ERROR,
};

struct rs_map {
	struct rs_map *next;
	struct ibv_mr *mr;
	uint64_t offset;
	int index; /* slot in the peer's list */
	bool pending;
};

struct rs_datagram;

struct rs {
	int fd; /* what the program holds: of the id's event channel, or of a datagram's UDP socket */
	int domain, type;
	struct rs_datagram *datagram; /* SOCK_DGRAM: everything else is there */

	pthread_mutex_t lock; /* all below */
	pthread_cond_t moved; /* somebody made progress */
	bool leader;          /* somebody sleeps on the descriptors for all */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	enum rs_state state;
	bool readable, writable; /* neither shut down */
	bool nonblock;
	int err;        /* of SO_ERROR */
	unsigned turns; /* of rs_progress(), since rs_arm() */

	/* Options, and what is only told back. */
	bool reuseaddr, v6only, nodelay, keepalive, oobinline;
	int keepidle, keepintvl, keepcnt, maxseg;
	struct linger linger;
	uint32_t sq_size, rq_size, inline_size, sbuf_size, rbuf_size;
	int iomap_size;

	/* Sending. */
	uint8_t *sbuf;
	struct ibv_mr *smr;
	uint32_t sbuf_offset, sbuf_avail;
	uint32_t sq_avail;          /* data messages */
	uint32_t ctrl_used;         /* of RS_CTRL_SLOTS */
	uint16_t sent, allowed;     /* data messages: so far, and up to */
	struct rs_sge *targets;     /* RS_TARGETS, written by the peer */
	struct rs_iomap *peer_maps; /* iomap_size, written by the peer; behind the targets */
	struct ibv_mr *targets_mr;
	unsigned target;

	/* Receiving. */
	uint8_t *rbuf;
	struct ibv_mr *rmr;
	uint32_t rbuf_offset, rbuf_free, rbuf_avail; /* next to read; next half to give; bytes that can be given */
	uint32_t *messages;                          /* ring of rq_size + 1 lengths */
	unsigned first, last;
	uint32_t unread; /* their sum, at most the ring of both halves */
	uint16_t received, granted;
	struct rs_sge peer_targets; /* where its list is; length: entries */
	unsigned peer_target;
	struct rs_sge peer_iomap;
	struct rs_map *maps;
};

#define RS_CTRL_SLOTS 4
#define RS_MAX_BUFFER (1u << 28) /* half of it has to fit the 29 bits of a message */

/* Bytes of both halves of the receive buffer. */
static inline uint32_t rs_ring_size(const struct rs *rs)
{
	return rs->rbuf_size / 2 * 2;
}

/* ---- table of descriptors ---- */

/* NULL with errno EBADF. */
struct rs *rs_find(int fd);
int rs_insert(struct rs *rs); /* -ENOMEM */
void rs_remove(int fd);

struct rs *rs_new(int domain, int type); /* NULL: out of memory */
void rs_free(struct rs *rs);

static inline int rs_result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

/* ---- progress; lock held ---- */

/* Takes what the CQ and the connection manager have, gives credits. Never blocks. */
void rs_progress(struct rs *rs);
#define RS_NEVER UINT64_MAX
/* Waits until done(rs), at most until `deadline` (roci_now(); 0: not at all). -EAGAIN, -ETIMEDOUT; -EINTR. */
int rs_wait_until(struct rs *rs, uint64_t deadline, bool (*done)(const struct rs *rs));
/* Waits until done(rs), as long as it takes. -EAGAIN: not now, and `nonblock`; -EINTR. */
int rs_wait(struct rs *rs, bool nonblock, bool (*done)(const struct rs *rs));
/* Asks for an event of the CQ; and takes those that came. */
void rs_arm(struct rs *rs);
void rs_take_cq_events(struct rs *rs);

bool rs_can_send(const struct rs *rs);
bool rs_can_send_ctrl(const struct rs *rs);
bool rs_has_data(const struct rs *rs);
/* Those, or a state in which they will never be true. */
bool rs_send_is_decided(const struct rs *rs);
bool rs_recv_is_decided(const struct rs *rs);

/* ---- connections; lock held ---- */

int rs_create_qp(struct rs *rs);
/* Gives the id a CQ of that many entries for sends and receives together, so that there is one descriptor to wait on,
 * which never blocks. */
int rs_create_cq(struct rdma_cm_id *id, uint32_t size);
/* Destroys what of QP, CQ and channel there is. */
void rs_destroy_qp(struct rdma_cm_id *id);
void rs_conn_data(const struct rs *rs, struct rs_conn_data *data);
/* -EPROTO: no rsocket is at the other end. */
int rs_take_conn_data(struct rs *rs, const struct rdma_conn_param *param);
void rs_cm_events(struct rs *rs);
/* Tells the peer, and waits until it knows. */
int rs_shutdown(struct rs *rs, int how);

/* ---- messages; lock held ---- */

int rs_post_recv(struct rs *rs);
/* Copies to the send buffer and sends, at most what rs_can_send() allows; returns how many bytes. */
uint32_t rs_send_some(struct rs *rs, const uint8_t *buf, uint32_t len);
/* One RDMA Write of len bytes of the send buffer at *addr. */
int rs_post_data(struct rs *rs, const uint8_t *buf, uint32_t len, uint32_t msg, uint64_t addr, uint32_t key, bool imm);
void rs_give_credits(struct rs *rs);
int rs_post_ctrl(struct rs *rs, enum rs_ctrl ctrl);
void rs_send_maps(struct rs *rs);
void rs_free_maps(struct rs *rs);

/* ---- datagrams ---- */

/* What stands behind a SOCK_DGRAM rsocket (datagram.c). Results are 0, a number of bytes, or a negative errno. */
int rs_datagram_create(struct rs *rs);
void rs_datagram_destroy(struct rs *rs);
int rs_datagram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int rs_datagram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len);
/* addr NULL: to the connected peer. */
ssize_t rs_datagram_send(struct rs *rs, const void *buf, size_t len, int flags, const struct sockaddr *addr,
			 socklen_t addrlen);
ssize_t rs_datagram_sendv(struct rs *rs, const struct iovec *iov, size_t count, int flags);
ssize_t rs_datagram_recv(struct rs *rs, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen);
short rs_datagram_events(struct rs *rs, short asked, bool arm);
int rs_datagram_cq_fd(const struct rs *rs); /* -1: none yet */

#endif
