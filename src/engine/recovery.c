/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/recovery.h"

#include "engine/psn.h"

#define BURST_FIRST 4          /* packets: enough for the one that was lost and a few behind it */
#define BURST_MAX   (1u << 20) /* more than can be outstanding, and far from an overflow */

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

void roci_recovery_advance(struct roci_recovery *r, uint32_t una)
{
	r->noticed = false;
	if (!r->active)
		return;
	r->burst = r->burst < BURST_MAX ? 2 * r->burst : r->burst;
	r->active = roci_psn_diff(r->end, una) > 0;
}
