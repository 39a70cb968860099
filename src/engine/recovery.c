/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/recovery.h"

#define BURST_FIRST 4 /* packets: enough for the one that was lost and a few behind it */

bool roci_recovery_notice(struct roci_recovery *r)
{
	bool first = !r->noticed;

	r->noticed = true;
	return first;
}

void roci_recovery_begin(struct roci_recovery *r, uint32_t max)
{
	r->active = true;
	r->end = max;
	r->burst = BURST_FIRST;
}
