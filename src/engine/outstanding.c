/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/outstanding.h"

#include <assert.h>

#include "engine/psn.h"

void roci_outstanding_add(struct roci_outstanding *o, uint32_t end)
{
	assert(o->count < ROCI_MAX_RD_ATOMIC);
	o->end[(o->first + o->count++) % ROCI_MAX_RD_ATOMIC] = end;
}

void roci_outstanding_answered(struct roci_outstanding *o, uint32_t una)
{
	while (o->count && roci_psn_diff(o->end[o->first], una) <= 0) {
		o->first = (uint8_t)((o->first + 1) % ROCI_MAX_RD_ATOMIC);
		o->count--;
	}
}

void roci_outstanding_clear(struct roci_outstanding *o)
{
	o->count = 0;
}
