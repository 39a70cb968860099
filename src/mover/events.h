/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands events to the program's callback, one at a time. Shared by the sessions of one mover_send() or mover_recv(). */
#ifndef ROCI_MOVER_EVENTS_H
#define ROCI_MOVER_EVENTS_H

#include <pthread.h>

#include "mover/mover.h"

struct events {
	pthread_mutex_t lock; /* held during a callback */
	mover_event_fn *callback;
	void *context;
};

void events_init(struct events *events, mover_event_fn *callback, void *context);
void events_destroy(struct events *events);
/* From any thread. Waits while another thread is in the callback. */
void events_emit(struct events *events, const struct mover_event *event);

#endif
