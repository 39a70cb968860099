/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/timer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void place(struct roci_timers *ts, int i, struct roci_timer *t)
{
	ts->heap[i] = t;
	t->index = i;
}

static void sift_up(struct roci_timers *ts, int i)
{
	struct roci_timer *t = ts->heap[i];

	for (; i > 0 && ts->heap[(i - 1) / 2]->key > t->key; i = (i - 1) / 2)
		place(ts, i, ts->heap[(i - 1) / 2]);
	place(ts, i, t);
}

static void sift_down(struct roci_timers *ts, int i)
{
	struct roci_timer *t = ts->heap[i];

	for (;;) {
		int child = 2 * i + 1;

		if (child >= ts->count)
			break;
		if (child + 1 < ts->count && ts->heap[child + 1]->key < ts->heap[child]->key)
			child++;
		if (ts->heap[child]->key >= t->key)
			break;
		place(ts, i, ts->heap[child]);
		i = child;
	}
	place(ts, i, t);
}

static void take_out(struct roci_timers *ts, struct roci_timer *t)
{
	int i = t->index;
	struct roci_timer *last = ts->heap[--ts->count];

	t->index = -1;
	if (last == t)
		return;
	place(ts, i, last);
	sift_up(ts, i);
	sift_down(ts, last->index);
}

void roci_timer_init(struct roci_timer *t)
{
	*t = (struct roci_timer){.at = ROCI_TIMER_OFF, .key = ROCI_TIMER_OFF, .index = -1};
}

int roci_timers_reserve(struct roci_timers *ts, int timers)
{
	int room = ts->room ? ts->room : 16;
	struct roci_timer **heap;

	if (timers <= ts->room)
		return 0;
	while (room < timers)
		room *= 2;
	heap = realloc(ts->heap, (size_t)room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	ts->heap = heap;
	ts->room = room;
	return 0;
}

void roci_timers_free(struct roci_timers *ts)
{
	free(ts->heap);
	*ts = (struct roci_timers){0};
}

void roci_timer_set(struct roci_timers *ts, struct roci_timer *t, uint64_t at)
{
	t->at = at;
	if (at == ROCI_TIMER_OFF) {
		if (t->index >= 0)
			take_out(ts, t);
	} else if (t->index < 0) {
		assert(ts->count < ts->room);
		t->key = at;
		place(ts, ts->count++, t);
		sift_up(ts, t->index);
	} else if (at < t->key) {
		t->key = at;
		sift_up(ts, t->index);
	}
}

struct roci_timer *roci_timers_expired(struct roci_timers *ts, uint64_t now)
{
	while (ts->count && ts->heap[0]->key <= now) {
		struct roci_timer *t = ts->heap[0];

		if (t->at <= now) {
			take_out(ts, t);
			t->at = ROCI_TIMER_OFF;
			return t;
		}
		t->key = t->at;
		sift_down(ts, 0);
	}
	return NULL;
}

uint64_t roci_timers_next(const struct roci_timers *ts)
{
	return ts->count ? ts->heap[0]->key : ROCI_TIMER_OFF;
}
