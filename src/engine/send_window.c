/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/send_window.h"

#include <assert.h>

void roci_send_window_init(struct roci_send_window *w, uint32_t psn)
{
	*w = (struct roci_send_window){.una = psn, .next = psn, .max = psn, .acked = psn};
}

void roci_send_window_acknowledge(struct roci_send_window *w, uint32_t limit)
{
	if (roci_psn_diff(limit, w->acked) > 0)
		w->acked = limit;
}

uint64_t roci_send_window_advance(struct roci_send_window *w, uint32_t una, uint64_t una_bytes)
{
	uint64_t acked = una_bytes - w->una_bytes;

	assert(roci_psn_diff(una, w->una) > 0);
	w->una = una;
	w->una_bytes = una_bytes;
	roci_send_window_acknowledge(w, una);
	return acked;
}

void roci_send_window_seek(struct roci_send_window *w, uint32_t psn, uint64_t bytes)
{
	w->next = psn;
	w->next_bytes = bytes;
}

void roci_send_window_forget(struct roci_send_window *w)
{
	w->una = w->next;
	w->una_bytes = w->next_bytes;
}
