/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of the hostile sender, by subject. */
#ifndef HOSTILE_SENDER_H
#define HOSTILE_SENDER_H

#include "mover/mover.h"

/* What the receiver has to do. */
enum reaction {
	ERROR_PROTOCOL = MOVER_PROTOCOL, /* send ERROR with that status, and close */
	ERROR_LOST = MOVER_LOST,
	REJECTED = 100, /* reject the connection */
	CLOSED,         /* close without an ERROR, because we broke the connection */
	ACCESS_ERROR,   /* refuse our RDMA operation */
	CHECKED,        /* the case checks it itself */
};

struct scenario {
	const char *name;
	void (*run)(void);
	enum reaction reaction;
	unsigned variants;
};

/* Each ends with an empty one. */
extern const struct scenario hostile_messages[], hostile_offers[], hostile_content[];

extern unsigned hostile_variant;
extern const char *hostile_outside; /* a folder that nothing may be written to */

#endif
