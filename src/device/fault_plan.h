/* SPDX-License-Identifier: BSD-2-Clause */
/* What ROCI_FAULT and `roci run --fault` ask for. Pure; `roci run` reads it too, before the program starts. */
#ifndef ROCI_DEVICE_FAULT_PLAN_H
#define ROCI_DEVICE_FAULT_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct roci_fault_plan {
	double loss, dup, reorder, corrupt; /* probabilities, 0..1 */
	uint64_t seed;
};

/* Reads "loss=0.01,dup=0.01,reorder=0.01,corrupt=0.01,seed=7", each part optional. -EINVAL: `why` (of `size` bytes)
 * names the part that is wrong, and what is allowed. */
int roci_fault_parse(const char *text, struct roci_fault_plan *plan, char *why, size_t size);

#endif
