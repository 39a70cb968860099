/* SPDX-License-Identifier: BSD-2-Clause */
/* The control connection: messages of at most 64 KiB by SEND, with credits, sealed once the handshake has finished. */
#ifndef ROCI_MOVER_CONTROL_H
#define ROCI_MOVER_CONTROL_H

#include "mover/connection.h"
#include "mover/proto.h"
#include "mover/round_trip.h"

struct control {
	struct connection conn;
	struct mover_secure *secure; /* owned */
	bool sealed;                 /* this side seals what it sends from here on */
	bool trusted;                /* the handshake has finished: the peer seals, too, and what it says counts */
	struct ibv_mr *mr;
	uint8_t *memory; /* receive buffers, then send buffers */
	uint32_t free_sends;
	uint64_t posted_ns[PROTO_CREDITS]; /* of each SEND under way */
	struct round_trip round_trip;
	unsigned credits;      /* messages that the peer has room for */
	unsigned credits_due;  /* receives posted again; the next message reports them */
	uint16_t takes;        /* how many descriptors may be under way to this side */
	uint16_t peer_takes;   /* ... to the peer. 0: it has not said so; PROTO_DESCRIPTORS, each in its own message */
	struct cursor_out out; /* the message that is being written */
	enum proto_type out_type;
	uint8_t *plain, *opened; /* a message before sealing, and after opening */
};

/* Makes the buffers. The caller fills `conn` and `secure`. 0 or -errno. */
int control_create(struct control *c, struct ibv_pd *pd);
/* Posts the receives; the QP has to be there. 0 or -errno. */
int control_start(struct control *c);
/* After its QP has been destroyed. */
void control_destroy(struct control *c);
struct connection_size control_connection_size(void);
/* Registered bytes of a control connection. */
size_t control_bytes(void);

/* Whether a message may be sent now. The last credit is for ERROR, BYE, and a PING that returns credits. */
bool control_can_send(const struct control *c, enum proto_type type);
/* Whether more than half of the credits are left. If not, a message that may carry more later waits for that: the round
 * trip has few messages left. It waits for a round trip at most, because the peer returns what is more than half. */
bool control_is_roomy(const struct control *c);
/* Begins a message. control_can_send() must hold; the payload goes into the cursor that is returned. control_send()
 * sends it. 0 or -errno; -EMSGSIZE if it is too long. */
struct cursor_out *control_begin(struct control *c, enum proto_type type);
int control_send(struct control *c);
/* Whether so many credits are due that they deserve a message of their own. */
bool control_credits_due(const struct control *c);

/* To be called for completions: of a send; of a receive, whose message is valid until control_release(). Returns 0,
 * -EPROTO for a malformed message, or -EBADMSG for one that the peer did not seal. */
void control_sent(struct control *c, unsigned buffer);
int control_received(struct control *c, unsigned buffer, size_t len, enum proto_type *type, struct cursor_in *payload);
int control_release(struct control *c, unsigned buffer);

#endif
