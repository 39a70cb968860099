/* SPDX-License-Identifier: BSD-2-Clause */
/* The far side of a mover's session, for fuzz targets, on fake_verbs: it has done the handshake, so all that it says is
 * sealed and believed to come from who knows the ticket. What it says is up to the target. */
#ifndef ROCI_TESTS_MOVER_PEER_H
#define ROCI_TESTS_MOVER_PEER_H

#include "fake_verbs.h"
#include "mover/proto.h"
#include "script.h"

#define MOVER_PEER_LANES 2

struct mover_peer {
	struct mover_secure *secure; /* owned */
	bool sealed;
	bool spoiled;                               /* its part in the handshake was changed on the way */
	struct fake_qp *control;                    /* the program's, */
	struct rdma_cm_id *lanes[MOVER_PEER_LANES]; /* also; NULL: none yet */
	unsigned credits_due;
	uint16_t takes; /* descriptors, as it says */
};

/* Takes ownership of `secure`. */
void mover_peer_init(struct mover_peer *p, struct mover_secure *secure);
void mover_peer_destroy(struct mover_peer *p);
/* Begins the handshake: a receiver in the answer to the connect request, whose length it returns; a sender with what
 * came in that. */
uint8_t mover_peer_answer(struct mover_peer *p, uint8_t answer[PROTO_ANSWER_BYTES]);
void mover_peer_begin(struct mover_peer *p, const void *answer, size_t len);
/* The program has sent a message. Takes the handshake's itself, and returns 0; else its type, with *payload until the
 * next call. */
enum proto_type mover_peer_hear(struct mover_peer *p, const struct fake_send *send, struct cursor_in *payload);
/* Says something; payload may be NULL. False where the program has no receive posted, or the handshake has not ended.
 */
bool mover_peer_say(struct mover_peer *p, enum proto_type type, const struct cursor_out *payload);

/* Says anything, led by the script. */
static inline bool mover_peer_say_anything(struct mover_peer *p)
{
	uint8_t bytes[256];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	size_t len = below(sizeof(bytes));

	script_fill(cursor_take(&out, len), len);
	return mover_peer_say(p, (enum proto_type)(1 + below(PROTO_TYPES)), &out);
}

/* All that the program has sent completes. */
void mover_peer_complete(struct mover_peer *p, enum ibv_wc_status status);

/* What was seen in all runs, to see that the fuzzer gets far enough: the program's events, */
void mover_peer_take_event(void *context, const struct mover_event *event);
/* and how each session ended. */
void mover_peer_ended(enum mover_status status);
/* Prints it. Returns how many entries were stored. */
unsigned long mover_peer_report(void);

#endif
