/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's session and its parts, one header each. receiver.c tells the story; listener.h is about who is let in.
 */
#ifndef ROCI_MOVER_RECEIVER_H
#define ROCI_MOVER_RECEIVER_H

#include <stdatomic.h>

#include "mover/listener.h"
#include "mover/receiver_decision.h"
#include "mover/receiver_descriptors.h"
#include "mover/receiver_end.h"
#include "mover/receiver_entries.h"
#include "mover/receiver_read.h"
#include "mover/receiver_store.h"
#include "mover/receiver_verdicts.h"
#include "mover/receiver_windows.h"
#include "mover/session.h"
#include "mover/tree.h"

struct receiver {
	struct session s;
	struct registration reg;
	struct mover_tree *tree; /* NULL: standard output */
	bool terms_came;
	uint8_t token[SECURE_TOKEN_BYTES]; /* that data connections have to show */
	bool lanes_up;                     /* each data connection has greeted */
	atomic_bool ending;                /* for the workers: their results are no longer needed */
	struct worker *commit_worker;      /* commits files, and finishes folders at the end */

	struct verdicts verdicts;
	struct entries entries;
	struct windows windows;
	struct descriptors descriptors;
	struct reads reads;
	struct store store;
	struct end end;
};

extern const struct session_role receiver_role;

/* The session's thread. Takes ownership of everything but the listener's list. */
void *receiver_thread(void *receiver);
void receiver_destroy(struct receiver *r);

#endif
