/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's session and its parts, one header each. sender.c tells the story. */
#ifndef ROCI_MOVER_SENDER_H
#define ROCI_MOVER_SENDER_H

#include <netdb.h>

#include "mover/retry.h"
#include "mover/sender_dispatch.h"
#include "mover/sender_offer.h"
#include "mover/sender_pack.h"
#include "mover/sender_source.h"
#include "mover/session.h"
#include "mover/walk.h"

struct sender {
	struct session s; /* the only one, or the newest: each that breaks is followed by another */

	/* of the whole transfer */
	const struct mover_send_options *options;
	struct events *events;
	struct mover_walk *walk;
	uint32_t entry_count;
	uint8_t *history;           /* of each entry, from earlier sessions (sender_offer.c) */
	struct addrinfo *addresses; /* of the receiver's host */
	const struct addrinfo *met; /* the one of them at which it was; NULL: at none yet */
	uint8_t transfer[PROTO_TRANSFER_BYTES];
	struct retry retry;
	struct mover_totals arrived;                     /* when the last session ended */
	char broke[sizeof(((struct session *)0)->text)]; /* why the connection broke; empty: it never did */
	struct {
		bool known;
		enum mover_status status;
		char text[sizeof(((struct session *)0)->text)];
		uint64_t entries_total, entries_failed;
	} outcome; /* of a session that had the END. Later ones only tell the receiver so */

	/* of the session */
	bool refused;    /* nobody listens there, where the receiver was */
	uint64_t number; /* the session's */
	bool lanes_up;   /* each data connection has its greeting */
	bool lanes_begun;
	uint64_t lanes_early; /* bits: those that failed before the terms were agreed on */
	uint64_t lanes_deadline_ns;
	struct offer offer;
	struct source source;
	struct packs packs;
	struct dispatch dispatch;
	bool end_came;
	bool receiver_stays; /* it goes on after END, whatever becomes of BYE */
};

/* sender.c: makes an empty session. False after session_fail(). */
bool sender_begin(struct sender *x);
/* Ends the session, and what belongs to it. */
void sender_disconnect(struct sender *x);

/* sender_again.c: the session has failed. Decides whether another comes, reports it, waits, and begins it, if that
 * works. False: no other; s->status and s->text tell why. */
bool sender_again(struct sender *x);

/* sender_connect.c: makes the control connection. False after session_fail(). */
bool sender_connect(struct sender *x);
/* Together with the terms: begins to make all data connections at once, and takes each of them further. Offers and
 * verdicts need none, so nothing waits for them but content. begin: false after session_fail(). pump: whether one came
 * up. */
bool sender_begin_lanes(struct sender *x);
bool sender_lanes_pump(struct sender *x);

#endif
