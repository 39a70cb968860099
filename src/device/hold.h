/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long MADs wait that calls of the program made. A program that has more events to take calls again soon, so its
 * answers leave together: in one system call, and in one message of the kernel where they go to one host. So do the
 * requests of a program that disconnects one connection after the other. Where it has no more events, and does not
 * disconnect in a row, nothing waits. Pure, like turns.h.
 */
#ifndef ROCI_DEVICE_HOLD_H
#define ROCI_DEVICE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* So long they wait at most, where the program stops calling; or until the thread's nap ends, a millisecond later.
 * Peers wait for half a second before they send again. */
#define ROCI_HOLD_NS    200000
#define ROCI_HOLD_CALLS 16
/* A row of disconnects: so many before, each so soon after the last. A call that sends takes some 10 us. */
#define ROCI_HOLD_ROW    3
#define ROCI_HOLD_ROW_NS 100000

struct roci_hold {
	unsigned calls; /* whose MADs wait; 0: none do */
	uint64_t until; /* then they leave at the latest */
	unsigned row;   /* disconnects that followed each other so soon */
	uint64_t disconnected_at;
};

/* A call of the program ends, and MADs are ready. more: the program has events to take. */
static inline void roci_hold_called(struct roci_hold *h, uint64_t now, bool more)
{
	if (!more) {
		h->calls = 0;
		return;
	}
	if (!h->calls)
		h->until = now + ROCI_HOLD_NS;
	h->calls++;
}

/* A call of the program that disconnects ends, and its MAD is ready. */
static inline void roci_hold_disconnected(struct roci_hold *h, uint64_t now)
{
	h->row = now - h->disconnected_at <= ROCI_HOLD_ROW_NS ? h->row + 1 : 0;
	h->disconnected_at = now;
	roci_hold_called(h, now, h->row >= ROCI_HOLD_ROW);
}

/* Whether MADs that are ready wait still. */
static inline bool roci_hold_waits(const struct roci_hold *h, uint64_t now)
{
	return h->calls && h->calls < ROCI_HOLD_CALLS && now < h->until;
}

/* When the thread has to be back for them; UINT64_MAX: none wait. */
static inline uint64_t roci_hold_deadline(const struct roci_hold *h)
{
	return h->calls ? h->until : UINT64_MAX;
}

/* All that was ready has been sent, or is to be sent now. */
static inline void roci_hold_end(struct roci_hold *h)
{
	h->calls = 0;
}

#endif
