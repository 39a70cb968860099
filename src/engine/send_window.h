/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packets of a send queue are sent and not acknowledged: their PSNs, and their bytes as a congestion window
 * counts them. The names are those of TCP (RFC 9293 3.3.1). In the order of PSNs: una <= acked <= max and una <= next
 * <= max.
 */
#ifndef ROCI_ENGINE_SEND_WINDOW_H
#define ROCI_ENGINE_SEND_WINDOW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"

struct roci_send_window {
	uint32_t una;   /* oldest PSN not acknowledged */
	uint32_t next;  /* PSN of the next packet to send; less than max while packets are sent again */
	uint32_t max;   /* 1 beyond the newest PSN ever sent */
	uint32_t acked; /* 1 beyond the newest PSN that an acknowledgement named; una stays at a missing response */
	uint64_t una_bytes, next_bytes; /* bytes of all packets before una and before next */
};

/* Nothing was sent yet; the first packet gets `psn`. */
void roci_send_window_init(struct roci_send_window *w, uint32_t psn);

/* Packets sent and not acknowledged. */
static inline uint32_t roci_send_window_packets(const struct roci_send_window *w)
{
	return (uint32_t)roci_psn_diff(w->next, w->una);
}
/* Bytes sent and not acknowledged. */
static inline uint64_t roci_send_window_bytes(const struct roci_send_window *w)
{
	return w->next_bytes - w->una_bytes;
}
/* True where the next packet goes for the first time. */
static inline bool roci_send_window_is_new(const struct roci_send_window *w)
{
	return roci_psn_diff(w->next, w->max) >= 0;
}
/* `packets` PSNs were sent; `next_bytes` is the new count. */
static inline void roci_send_window_sent(struct roci_send_window *w, uint32_t packets, uint64_t next_bytes)
{
	w->next = roci_psn_add(w->next, packets);
	w->next_bytes = next_bytes;
	if (roci_psn_diff(w->next, w->max) > 0)
		w->max = w->next;
}

/* An acknowledgement named everything before PSN `limit`. */
static inline void roci_send_window_acknowledge(struct roci_send_window *w, uint32_t limit)
{
	if (roci_psn_diff(limit, w->acked) > 0)
		w->acked = limit;
}
/* Everything before `una` is done, `una_bytes` in all. `una` must be newer than w->una. Where it is newer than w->next,
 * the caller moves that with roci_send_window_seek(). Returns the bytes that this acknowledged. */
static inline uint64_t roci_send_window_advance(struct roci_send_window *w, uint32_t una, uint64_t una_bytes)
{
	uint64_t acked = una_bytes - w->una_bytes;

	assert(roci_psn_diff(una, w->una) > 0);
	w->una = una;
	w->una_bytes = una_bytes;
	roci_send_window_acknowledge(w, una);
	return acked;
}
/* The next packet to send is `psn`, with `bytes` before it. */
void roci_send_window_seek(struct roci_send_window *w, uint32_t psn, uint64_t bytes);
/* What was sent is no longer in flight: nobody will acknowledge it. */
void roci_send_window_forget(struct roci_send_window *w);

#endif
