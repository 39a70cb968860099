/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the window of a far path grows beyond that of a near one, where the peer knows the standard only. A loss costs
 * all that is in flight then (go-back-N), so it does not grow until something is lost: it stops at the first sign of a
 * queue, and does not grow where the window was cut lately.
 */
#ifndef ROCI_ENGINE_FAR_WINDOW_H
#define ROCI_ENGINE_FAR_WINDOW_H

#include <stdint.h>

#define ROCI_FAR_WINDOW_MOST    (UINT64_C(16) << 20)  /* bytes */
#define ROCI_FAR_WINDOW_CALM_NS UINT64_C(10000000000) /* since the window was cut */
#define ROCI_FAR_WINDOW_PART    12                    /* it grows by one of so many parts in a round trip */
#define ROCI_FAR_WINDOW_QUEUE   8                     /* one of so many parts of the shortest round trip is a queue */

/* `bytes` were acknowledged while the window of `window` bytes was full. cut_at: when it was last cut; 0: never.
 * Returns the window that follows. */
static inline uint64_t roci_far_window_acked(uint64_t window, uint64_t now, uint64_t bytes, uint64_t cut_at,
					     uint64_t shortest_rtt, uint64_t latest_rtt)
{
	if (cut_at && now - cut_at < ROCI_FAR_WINDOW_CALM_NS)
		return window;
	if (latest_rtt > shortest_rtt + shortest_rtt / ROCI_FAR_WINDOW_QUEUE)
		return window;
	window += bytes / ROCI_FAR_WINDOW_PART;
	return window < ROCI_FAR_WINDOW_MOST ? window : ROCI_FAR_WINDOW_MOST;
}

#endif
