/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of a path of which nothing is known. It begins with about ten packets (RFC 6928), which every line bears.
 * Packets of its second half each ask for an answer, so the answers come as far apart as the narrowest line on the way
 * made them. So many bytes in so much time are a rate; what that rate carries in a round trip is the next window. A
 * short message may have gone long before them, so the clock that its answer started begins again with theirs.
 */
#ifndef ROCI_ENGINE_FIRST_WINDOW_H
#define ROCI_ENGINE_FIRST_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_FIRST_WINDOW       (UINT64_C(16) << 10)  /* bytes */
#define ROCI_FIRST_WINDOW_MOST  (UINT64_C(256) << 10) /* what one round trip tells justifies no more */
#define ROCI_FIRST_WINDOW_LEAST (UINT64_C(4) << 10)   /* bytes that make a rate */
#define ROCI_FIRST_WINDOW_SHORT (UINT64_C(1) << 10)   /* bytes that are acknowledged at once, of a short message */
#define ROCI_FIRST_WINDOW_CLOCK UINT64_C(100000)      /* ns: answers may come together that were sent so far apart */

struct roci_first_window {
	uint64_t at;    /* ns: when the first answer came; 0: none has since something was sent */
	uint64_t bytes; /* that were acknowledged since */
	uint64_t shown; /* done: bytes that a round trip carries, as they show it; no bound but what clocks can tell */
	bool brief;     /* so far, short messages only */
	bool done;
};

static inline uint64_t roci_first_window_bounded(uint64_t window)
{
	if (window > ROCI_FIRST_WINDOW_MOST)
		return ROCI_FIRST_WINDOW_MOST;
	return window < ROCI_FIRST_WINDOW ? ROCI_FIRST_WINDOW : window;
}
/* `bytes` are acknowledged; all: nothing else is in flight. A round trip takes `rtt_ns`, which is not 0. Returns the
 * window that follows; 0: it is not known yet, or was returned before. */
static inline uint64_t roci_first_window_acked(struct roci_first_window *f, uint64_t now, uint64_t bytes, bool all,
					       uint64_t rtt_ns)
{
	uint64_t took;

	if (f->done)
		return 0;
	if (f->at && f->brief && bytes >= ROCI_FIRST_WINDOW_SHORT)
		f->at = 0;
	f->brief = (!f->at || f->brief) && bytes < ROCI_FIRST_WINDOW_SHORT;
	if (f->at)
		f->bytes += bytes;
	else
		f->bytes = bytes > ROCI_FIRST_WINDOW / 2 ? bytes - ROCI_FIRST_WINDOW / 2 : 0;
	if (!f->at)
		f->at = now;
	took = now - f->at;
	if (f->bytes < ROCI_FIRST_WINDOW_LEAST) {
		f->at = all ? 0 : f->at; /* what is sent next does not follow these at once */
		return 0;
	}
	f->done = true;
	f->shown = f->bytes * rtt_ns / (took > ROCI_FIRST_WINDOW_CLOCK ? took : ROCI_FIRST_WINDOW_CLOCK);
	return roci_first_window_bounded(f->bytes * rtt_ns / (took ? took : 1));
}

#endif
