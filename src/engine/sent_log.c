/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sent_log.h"

#include <stdlib.h>

#include "engine/burst.h"
#include "engine/psn.h"

#define FIRST_ROOM 64
#define MAX_ROOM   (UINT32_C(1) << 16)

static struct roci_sent *at(const struct roci_sent_log *log, uint32_t i)
{
	return &log->ring[i & log->mask];
}

/* Doubles the ring. False where it stays as it is. */
static bool grow(struct roci_sent_log *log)
{
	uint32_t room = log->ring ? 2 * (log->mask + 1) : FIRST_ROOM, count = log->tail - log->head;
	struct roci_sent *ring;

	if (room > MAX_ROOM)
		return false;
	ring = malloc(room * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ring[i] = *at(log, log->head + i);
	free(log->ring);
	*log = (struct roci_sent_log){.ring = ring, .mask = room - 1, .tail = count};
	return true;
}

void roci_sent_log_add(struct roci_sent_log *log, uint32_t begin, uint32_t end, bool again,
		       const struct roci_sent_state *state)
{
	struct roci_sent *last = log->head != log->tail ? at(log, log->tail - 1) : NULL;

	if (last && last->state.sent_at == state->sent_at && last->again == again) {
		last->end = end;
		last->state.flight = state->flight;
		return;
	}
	if ((!log->ring || log->tail - log->head > log->mask) && !grow(log)) {
		if (last)
			last->end = end;
		return;
	}
	*at(log, log->tail++) = (struct roci_sent){begin, end, again, *state};
}

static struct roci_sent *find(const struct roci_sent_log *log, uint32_t psn)
{
	uint32_t low = 0, high = log->tail - log->head;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (roci_psn_diff(at(log, log->head + middle)->end, psn) > 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (log->head + low == log->tail || roci_psn_diff(at(log, log->head + low)->begin, psn) > 0)
		return NULL;
	return at(log, log->head + low);
}

const struct roci_sent *roci_sent_log_find(const struct roci_sent_log *log, uint32_t psn)
{
	return find(log, psn);
}

uint32_t roci_sent_place(const struct roci_sent *sent, uint32_t psn)
{
	uint32_t count = sent ? (uint32_t)roci_psn_diff(sent->end, sent->begin) : 0;

	if (count < 4)
		return ROCI_MIDDLE;
	return (2 * (uint32_t)roci_psn_diff(psn, sent->begin) + 1) * ROCI_MIDDLE / count;
}

void roci_sent_log_again(struct roci_sent_log *log, uint32_t psn)
{
	struct roci_sent *sent = find(log, psn);

	if (sent)
		sent->again = true;
}

void roci_sent_log_advance(struct roci_sent_log *log, uint32_t una)
{
	while (log->head != log->tail && roci_psn_diff(at(log, log->head)->end, una) <= 0)
		log->head++;
}

void roci_sent_log_rewind(struct roci_sent_log *log, uint32_t psn)
{
	while (log->head != log->tail) {
		struct roci_sent *last = at(log, log->tail - 1);

		if (roci_psn_diff(last->end, psn) <= 0)
			return;
		log->tail--;
	}
}

void roci_sent_log_fini(struct roci_sent_log *log)
{
	free(log->ring);
	*log = (struct roci_sent_log){0};
}
