/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/give_way.h"

#include <sched.h>

#include "mover/clock.h"

void give_way(struct give_way *g)
{
	uint64_t now_ns = mover_now_ns();

	if (!give_way_due(g, now_ns))
		return;
	sched_yield();
	give_way_gave(g, now_ns, mover_now_ns());
}
