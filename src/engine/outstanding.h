/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests that wait for a response of their own: READs, atomics, ATOMIC WRITEs and FLUSHes. The responder has
 * resources for a limited number of them (max_rd_atomic, IBTA 9.4.5). */
#ifndef ROCI_ENGINE_OUTSTANDING_H
#define ROCI_ENGINE_OUTSTANDING_H

#include <stdint.h>

#include "engine/limits.h"
#include "engine/psn.h"

struct roci_outstanding {
	uint8_t first, count;
	uint32_t end[ROCI_MAX_RD_ATOMIC]; /* ring: 1 beyond the last PSN of each, oldest first */
};

/* A request whose response ends before PSN `end` was sent. o->count must be less than ROCI_MAX_RD_ATOMIC. */
void roci_outstanding_add(struct roci_outstanding *o, uint32_t end);
/* Everything before `una` is answered. */
static inline void roci_outstanding_answered(struct roci_outstanding *o, uint32_t una)
{
	while (o->count && roci_psn_diff(o->end[o->first], una) <= 0) {
		o->first = (uint8_t)((o->first + 1) % ROCI_MAX_RD_ATOMIC);
		o->count--;
	}
}
/* All of them will be sent again. */
void roci_outstanding_clear(struct roci_outstanding *o);

#endif
