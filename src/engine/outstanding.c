/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/outstanding.h"

#include <assert.h>

void roci_outstanding_add(struct roci_outstanding *o, uint32_t end)
{
	assert(o->count < ROCI_MAX_RD_ATOMIC);
	o->end[(o->first + o->count++) % ROCI_MAX_RD_ATOMIC] = end;
}

void roci_outstanding_clear(struct roci_outstanding *o)
{
	o->count = 0;
}
