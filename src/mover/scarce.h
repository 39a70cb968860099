/* SPDX-License-Identifier: BSD-2-Clause */
/* How much a message has to say to go at once where few credits are left. Pure.
 *
 * A message costs a credit, which comes back after a round trip. All windows pass once in a round trip, or less often.
 * So while no more than half of the credits are left (control_is_roomy()), what is said of them goes in a few messages,
 * each about a share of the windows: all of them together need no more than that half, without the one that is kept.
 * Then no window waits for a credit, however many there are. */
#ifndef ROCI_MOVER_SCARCE_H
#define ROCI_MOVER_SCARCE_H

#include <stdbool.h>
#include <stdint.h>

#include "mover/proto.h"

/* Messages of a round trip. A sender's: with descriptors. A receiver's: with grants or, in mode READ, about windows
 * that have been read; and ACKs. */
#define SCARCE_DESCRIPTORS (PROTO_CREDITS / 2 - 1)
#define SCARCE_GRANTS      4
#define SCARCE_ACKS        2

/* Whether `count` of `windows` are a share, where so many messages are about all of them. */
static inline bool scarce_enough(uint64_t count, unsigned windows, unsigned messages)
{
	return count * messages >= windows;
}

#endif
