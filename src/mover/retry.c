/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/retry.h"

#define SHORTEST_PAUSE_NS 500000000ull
#define LONGEST_PAUSE_NS  4000000000ull

void retry_init(struct retry *retry, uint64_t for_ns, bool first)
{
	*retry = (struct retry){.for_ns = for_ns, .first = first};
}

void retry_progress(struct retry *retry)
{
	retry->since_ns = 0;
	retry->tries = 0;
}

uint64_t retry_left_ns(const struct retry *retry, uint64_t now_ns)
{
	uint64_t passed = retry->since_ns ? now_ns - retry->since_ns : 0;

	return passed < retry->for_ns ? retry->for_ns - passed : 0;
}

/* A receiver that does not listen any more has ended, and its ticket with it. One that has never listened may still be
 * started. */
static bool may_change(const struct retry *retry, enum retry_end end)
{
	switch (end) {
	case RETRY_BROKEN: return true;
	case RETRY_NO_WAY: return retry->met || retry->first;
	case RETRY_REFUSED: return !retry->met && retry->first;
	default: return false;
	}
}

/* The first attempt comes at once: most often only the connection has broken, not the network. */
static uint64_t next_pause_ns(unsigned tries)
{
	uint64_t pause = SHORTEST_PAUSE_NS;

	if (!tries)
		return 0;
	while (--tries && pause < LONGEST_PAUSE_NS)
		pause *= 2;
	return pause;
}

bool retry_again(struct retry *retry, enum retry_end end, uint64_t now_ns, uint64_t *pause_ns)
{
	uint64_t left;

	if (end == RETRY_BROKEN)
		retry->met = true;
	if (!may_change(retry, end))
		return false;
	if (!retry->since_ns)
		retry->since_ns = now_ns;
	left = retry_left_ns(retry, now_ns);
	*pause_ns = next_pause_ns(retry->tries++);
	if (*pause_ns > left)
		*pause_ns = left;
	return left > 0;
}
