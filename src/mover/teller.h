/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells events to whom it may concern: one at a time, and not more often than one can read. */
#ifndef ROCI_MOVER_TELLER_H
#define ROCI_MOVER_TELLER_H

#include <pthread.h>

#include "mover/mover.h"

/* Shared by the sessions of a process's mover_send() or mover_recv(). */
struct teller {
	pthread_mutex_t lock;
	mover_event_fn *event;
	void *context;
};

void teller_init(struct teller *teller, mover_event_fn *event, void *context);
void teller_destroy(struct teller *teller);
void teller_tell(struct teller *teller, const struct mover_event *event);

uint64_t mover_now_ns(void); /* CLOCK_MONOTONIC */

#endif
