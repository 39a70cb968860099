/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether and when a sender connects again. Pure: the caller gives the time. */
#ifndef ROCI_MOVER_RETRY_H
#define ROCI_MOVER_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* How an attempt ended. */
enum retry_end {
	RETRY_BROKEN,  /* the two were connected, and then no longer */
	RETRY_NO_WAY,  /* no connection for now: no answer, no route, no address, no room at the receiver */
	RETRY_REFUSED, /* nobody listens there */
	RETRY_FINAL,   /* it would end like this again */
};

struct retry {
	uint64_t for_ns;   /* 0: never */
	bool first;        /* also before the two were connected for the first time */
	bool met;          /* they were */
	uint64_t since_ns; /* since when nothing new has arrived; 0: it works */
	unsigned tries;    /* since then */
};

void retry_init(struct retry *retry, uint64_t for_ns, bool first);

/* Something new has arrived: the time begins anew. A connection alone is no progress, so a transfer that breaks again
 * and again at the same place ends. */
void retry_progress(struct retry *retry);

/* An attempt has ended. Returns whether to make another, and in *pause_ns after which pause. */
bool retry_again(struct retry *retry, enum retry_end end, uint64_t now_ns, uint64_t *pause_ns);

/* How long attempts may still begin; 0: no more. */
uint64_t retry_left_ns(const struct retry *retry, uint64_t now_ns);

#endif
