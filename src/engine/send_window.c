/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/send_window.h"

void roci_send_window_init(struct roci_send_window *w, uint32_t psn)
{
	*w = (struct roci_send_window){.una = psn, .next = psn, .max = psn, .acked = psn};
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
