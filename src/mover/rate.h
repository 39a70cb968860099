/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast bytes move now: averaged over about three seconds, so that a line on a terminal can be read. Pure. */
#ifndef ROCI_MOVER_RATE_H
#define ROCI_MOVER_RATE_H

#include <stdint.h>

struct rate {
	uint64_t bytes, at_ns; /* as last seen; 0: not yet */
	double bytes_per_s;    /* 0: not known yet */
};

/* So many bytes have moved in all. */
void rate_see(struct rate *rate, uint64_t bytes, uint64_t now_ns);

#endif
