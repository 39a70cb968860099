/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link that loses packets in both directions, sends or delivers them twice, swaps them with the next one of the
 * batch, or damages them, each independently of the others. The same seed and the same calls give the same faults.
 */
#ifndef ROCI_DEVICE_FAULT_H
#define ROCI_DEVICE_FAULT_H

#include "device/fault_plan.h" /* IWYU pragma: export */
#include "device/link.h"
#include "device/stats.h"

/* `inner` seals. It is owned when this succeeds. Counts in *stats what it does, and tells `trace`, where that is not
 * NULL: a packet that is lost here was in no capture yet, or looks there as if it had come. -ENOMEM. */
int roci_fault_open(struct roci_link *inner, const struct roci_fault_plan *plan, struct roci_device_stats *stats,
		    struct roci_trace *trace, struct roci_link **out);

#endif
