/* SPDX-License-Identifier: BSD-2-Clause */
/* What ROCI_FAULT and `roci run --fault` ask for. Pure; `roci run` reads it too, before the program starts. */
#ifndef ROCI_DEVICE_FAULT_PLAN_H
#define ROCI_DEVICE_FAULT_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct roci_fault_plan {
	double loss, dup, reorder, corrupt; /* probabilities, 0..1 */
	uint64_t delay_ns, jitter_ns;       /* delay.h */
	uint64_t seed;
};

#define ROCI_FAULT_MAX_NS 10000000000u /* of delay, and of jitter */

/* Reads "loss=0.01,dup=0.01,reorder=0.01,corrupt=0.01,delay=20ms,jitter=500us,seed=7", each part optional. -EINVAL:
 * `why` (of `size` bytes) names the part that is wrong, and what is allowed. */
int roci_fault_parse(const char *text, struct roci_fault_plan *plan, char *why, size_t size);

/* The next random number of a seed: the same on every machine. */
uint64_t roci_fault_draw(uint64_t *state);

#endif
