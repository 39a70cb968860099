/* SPDX-License-Identifier: BSD-2-Clause */
/* How the near end waits for a completion: it polls the CQ, or a thread sleeps on the completion channel. */
#ifndef ROCI_TOUR_WAITER_H
#define ROCI_TOUR_WAITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tour/endpoint.h"
#include "tour/tour.h"

#define WAITER_PLACES 64u /* more than the CQ has */

struct waiter {
	struct endpoint *endpoint;
	enum tour_wait how;

	/* Of the thread. */
	pthread_t thread;
	bool started;
	int end_fd; /* wakes it for the last time */
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	bool ended;
	int err;                  /* of a call in the thread: negative errno */
	uint64_t thread_woken_ns; /* CLOCK_REALTIME: when the channel woke it last. The thread's own */
	unsigned head, count;     /* of the ring */
	struct {
		struct ibv_wc wc;
		uint64_t woken_ns;
	} ring[WAITER_PLACES];
	uint64_t woken_ns; /* when the channel woke the thread for what waiter_next() took; 0: it polls. CLOCK_REALTIME
			    */
};

/* 0 or negative, with *f. The endpoint outlives the waiter. */
int waiter_start(struct waiter *w, struct endpoint *e, enum tour_wait how, struct failure *f);
void waiter_stop(struct waiter *w);

/* Takes the next completion: 1. 0: none came until `deadline_ns` of CLOCK_MONOTONIC, or tour_stop() was called.
 * Negative: errno of a call. */
int waiter_next(struct waiter *w, struct ibv_wc *wc, uint64_t deadline_ns);

#endif
