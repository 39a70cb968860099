/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines of many objects, in a binary heap. Moving a deadline to a later time costs nothing: the heap keeps the old
 * key, and finds the true deadline when the key comes due.
 */
#ifndef ROCI_ENGINE_TIMER_H
#define ROCI_ENGINE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_TIMER_OFF UINT64_MAX

struct roci_timer {
	uint64_t at;                          /* when it is due, ROCI_TIMER_OFF: never */
	uint64_t key;                         /* its place in the heap: <= at */
	int index;                            /* in the heap, -1: not in it */
	void (*expire)(struct roci_timer *t); /* what to do then, for an owner with several kinds; may be NULL */
};

struct roci_timers {
	struct roci_timer **heap; /* owned; room for `room` */
	int count, room;
};

void roci_timer_init(struct roci_timer *t);
/* Makes room for `timers` timers in all, so that roci_timer_set() cannot fail. -ENOMEM. */
int roci_timers_reserve(struct roci_timers *ts, int timers);
void roci_timers_free(struct roci_timers *ts);
/* Sets the deadline. ROCI_TIMER_OFF stops the timer. */
void roci_timer_set(struct roci_timers *ts, struct roci_timer *t, uint64_t at);
/* Stops and returns a timer that is due at `now`; NULL if none is. */
struct roci_timer *roci_timers_expired(struct roci_timers *ts, uint64_t now);
/* The earliest key: never later than the earliest deadline. ROCI_TIMER_OFF when empty. */
uint64_t roci_timers_next(const struct roci_timers *ts);

#endif
