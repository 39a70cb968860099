/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link that loses packets in both directions, sends or delivers them twice, swaps them with the next one of the
 * batch, or damages them, each independently of the others. The same seed and the same calls give the same faults.
 */
#ifndef ROCI_DEVICE_FAULT_H
#define ROCI_DEVICE_FAULT_H

#include "device/link.h"

struct roci_fault_plan {
	double loss, dup, reorder, corrupt; /* probabilities, 0..1 */
	uint64_t seed;
};

/* Reads "loss=0.01,dup=0.01,reorder=0.01,corrupt=0.01,seed=7", each part optional. -EINVAL. */
int roci_fault_parse(const char *text, struct roci_fault_plan *plan);

/* `inner` seals. It is owned when this succeeds. -ENOMEM. */
int roci_fault_open(struct roci_link *inner, const struct roci_fault_plan *plan, struct roci_link **out);

#endif
