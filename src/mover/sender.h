/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's session and its parts, one header each. sender.c tells the story. */
#ifndef ROCI_MOVER_SENDER_H
#define ROCI_MOVER_SENDER_H

#include "mover/sender_dispatch.h"
#include "mover/sender_offer.h"
#include "mover/sender_pack.h"
#include "mover/sender_source.h"
#include "mover/session.h"
#include "mover/walk.h"

struct sender {
	struct session s;
	const struct mover_send_options *options;
	struct mover_walk *walk;
	uint32_t entry_count;
	struct offer offer;
	struct source source;
	struct packs packs;
	struct dispatch dispatch;
	bool end_sent, end_came;
};

/* sender_connect.c: the control connection, and after the terms the data connections. False after session_fail(). */
bool sender_connect(struct sender *x);
bool sender_connect_lanes(struct sender *x);

#endif
