/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a stream rsocket, made of plain rdma_cm and verbs calls, so that it can write what no rsocket would,
 * and see what an rsocket really sends. All in one thread with the rsocket, which therefore must not block meanwhile.
 */
#ifndef RSOCKET_PEER_H
#define RSOCKET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Messages of the wire: what (3 bits), and how much (29 bits). */
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
	uint8_t memory[1 << 16]; /* what the rsocket may write to: two targets, then its data */
	struct peer_data remote;
	bool disconnected; /* by the rsocket */
};

/* Listens at the address. Of these functions none returns when something fails: they end the program and say why. */
void peer_listen(struct peer *p, struct sockaddr *address);
/* Accepts the request of an rsocket, which has called rconnect() without blocking, with that many receives posted. */
void peer_accept(struct peer *p, unsigned receives);
/* Waits for the end of the handshake, for which the rsocket has to be polled before. */
void peer_established(struct peer *p);
void peer_post_receives(struct peer *p, unsigned count);
/* Writes len bytes to the rsocket's receive buffer, with the message; returns when the rsocket's side has it. */
void peer_write(struct peer *p, uint32_t msg, const void *bytes, uint32_t len);
/* Takes a message other than credits that has arrived. False: there is none. */
bool peer_poll(struct peer *p, uint32_t *msg);
/* Waits for one. False: the rsocket has disconnected, and all that it sent has been taken. */
bool peer_receive(struct peer *p, uint32_t *msg);
void peer_end(struct peer *p);

#endif
