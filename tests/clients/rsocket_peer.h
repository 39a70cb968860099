/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of a stream rsocket, made of rdma_cm and verbs calls: it can send what no rsocket would, and sees what an
 * rsocket really sends. It runs in the thread of the rsocket, which must not block meanwhile.
 */
#ifndef RSOCKET_PEER_H
#define RSOCKET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Messages: an operation (3 bits) and a value (29 bits). */
#define MSG(op, value) ((uint32_t)(op) << 29 | (value))
#define OP_DATA        0u
#define OP_CREDITS     4u
#define OP_CTRL        7u
#define MOST           0x1fffffffu
enum { CTRL_DISCONNECT, CTRL_KEEPALIVE, CTRL_SHUTDOWN };

struct peer_sge {
	__be64 addr;
	__be32 key, length;
};

/* Private data of both sides. */
struct peer_data {
	uint8_t version, flags;
	__be16 credits;
	uint8_t reserved[3], iomap_size;
	struct peer_sge targets, buffer;
};

struct peer {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t memory[1 << 16]; /* the rsocket writes here: two targets, then data */
	struct peer_data remote;
	bool disconnected; /* by the rsocket */
};

/* Listens at the address. All these functions print a message and end the program when they fail. */
void peer_listen(struct peer *p, struct sockaddr *address);
/* Accepts the request of an rsocket after its non-blocking rconnect(), with this many receives posted. */
void peer_accept(struct peer *p, unsigned receives);
/* Waits for the end of the handshake. The rsocket must be polled before. */
void peer_established(struct peer *p);
void peer_post_receives(struct peer *p, unsigned count);
/* Writes len bytes to the rsocket's receive buffer, with the message; returns when the rsocket's side has it. */
void peer_write(struct peer *p, uint32_t msg, const void *bytes, uint32_t len);
/* Takes a message that has arrived, other than credits. False: there is none. */
bool peer_poll(struct peer *p, uint32_t *msg);
/* Waits for one. False: the rsocket has disconnected, and all its messages have been taken. */
bool peer_receive(struct peer *p, uint32_t *msg);
void peer_end(struct peer *p);

/* Two datagram rsockets that have exchanged messages and know each other's QPN: they send over UD. The second has the
 * address, which is of IPv4. */
void datagram_pair(const struct sockaddr *address, int ends[2]);

#endif
