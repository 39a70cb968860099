/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link that delivers what it receives later, as from a peer that is far away. Packets keep their order. It has memory
 * for ROCI_DELAY_BYTES, which it takes when it is opened: what comes when that is full is lost, as in a router.
 *
 * Sending is not delayed: both ends, or both directions between two processes, each delay what they receive.
 */
#ifndef ROCI_DEVICE_DELAY_H
#define ROCI_DEVICE_DELAY_H

#include "device/fault_plan.h"
#include "device/link.h"
#include "device/stats.h"

/* With a few bytes beside each packet: 20 ms hold what comes at 26 Gbit/s. */
#define ROCI_DELAY_BYTES (64u << 20)

/* As plan->delay_ns and plan->jitter_ns say. `inner` is owned when this succeeds. Counts in *stats what is delayed, and
 * what is lost. -ENOMEM. */
int roci_delay_open(struct roci_link *inner, const struct roci_fault_plan *plan, struct roci_device_stats *stats,
		    struct roci_link **out);

/* What has come by another way than `inner`, at that time, is delivered later, too. What the link delivers says that it
 * was delayed, so that no other process delays it again which gets it from this one. */
void roci_delay_hold(struct roci_link *link, uint64_t now, const struct roci_datagram *datagrams, unsigned count);

/* When the next packet is to be delivered; ROCI_NEVER: none waits. */
uint64_t roci_delay_deadline(const struct roci_link *link);

#endif
