/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery from a loss. All packets from the oldest unacknowledged one on are sent again (go-back-N), but only a few at
 * once: the receiver may have kept most of them. Each acknowledgement doubles how many may be outstanding, until
 * everything that was sent before the loss is acknowledged.
 */
#ifndef ROCI_ENGINE_RECOVERY_H
#define ROCI_ENGINE_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"

#define ROCI_RECOVERY_BURST_MAX (1u << 20) /* more than can be outstanding, and far from an overflow */

struct roci_recovery {
	bool active;
	bool noticed;   /* a NAK or a gap showed the loss; cleared by the next acknowledgement */
	uint32_t end;   /* active: PSN that ends it when everything before it is acknowledged */
	uint32_t burst; /* active: packets that may be outstanding */
};

/* A NAK or a gap says that the oldest packet is missing. True for the first such notice since the last acknowledgement;
 * the others are about the same loss. */
bool roci_recovery_notice(struct roci_recovery *r);
/* Packets are sent again from the oldest on. `max`: 1 beyond the newest PSN ever sent. */
void roci_recovery_begin(struct roci_recovery *r, uint32_t max);
/* Everything before `una` is acknowledged, which was not before. */
static inline void roci_recovery_advance(struct roci_recovery *r, uint32_t una)
{
	r->noticed = false;
	if (!r->active)
		return;
	r->burst = r->burst < ROCI_RECOVERY_BURST_MAX ? 2 * r->burst : r->burst;
	r->active = roci_psn_diff(r->end, una) > 0;
}
/* Whether one more packet may go, while `outstanding` are not acknowledged. */
static inline bool roci_recovery_allows(const struct roci_recovery *r, uint32_t outstanding)
{
	return !r->active || outstanding < r->burst;
}

#endif
