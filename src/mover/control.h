/* SPDX-License-Identifier: BSD-2-Clause */
/* The control connection: messages of at most 64 KiB by SEND, with credits, sealed once the handshake has finished. */
#ifndef ROCI_MOVER_CONTROL_H
#define ROCI_MOVER_CONTROL_H

#include "mover/link.h"
#include "mover/proto.h"
#include "mover/secure.h"

struct control {
	struct link link;
	struct mover_secure *secure; /* owned */
	bool sealed;                 /* the handshake has finished: all that follows is sealed */
	bool peer_sealed;            /* ... and the peer has sent something that is */
	struct ibv_mr *mr;
	uint8_t *memory; /* receive buffers, then send buffers */
	uint32_t free_sends;
	unsigned credits;      /* messages the peer has room for */
	unsigned owed;         /* receives posted again and not yet told */
	struct cursor_out out; /* the payload that is being written */
	enum proto_type out_type;
	uint8_t *plain, *opened;
};

/* Room for everything but the link and the secure state. 0 or -errno. */
int control_create(struct control *c, struct ibv_pd *pd);
/* Posts the receives; the QP has to be there. 0 or -errno. */
int control_start(struct control *c);
/* After its QP has been destroyed. */
void control_destroy(struct control *c);
struct link_size control_link_size(void);
/* Bytes that it keeps registered. */
size_t control_bytes(void);

/* Whether a message may be sent now. The last credit is for PING and ERROR, which return credits. */
bool control_can_send(const struct control *c, enum proto_type type);
/* Begins a message: its payload goes into what is returned. control_can_send() holds. control_send() sends it: 0, or
 * -errno; -EMSGSIZE if it has become too long. */
struct cursor_out *control_begin(struct control *c, enum proto_type type);
int control_send(struct control *c);
/* Whether the peer should hear of its credits even if there is nothing else to tell. */
bool control_owes(const struct control *c);

/* Completions: a send's, and a receive's with its message (valid until control_release()). 0, -EPROTO, -EBADMSG;
 * -ECONNABORTED: an ERROR in the clear, of a peer that gave up before it knew of the end of the handshake; nothing in
 * it is proved. */
void control_sent(struct control *c, unsigned buffer);
int control_received(struct control *c, unsigned buffer, size_t len, enum proto_type *type, struct cursor_in *payload);
int control_release(struct control *c, unsigned buffer);

#endif
