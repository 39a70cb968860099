/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for copiers. This process has taken something back that a peer may copy from or to. A peer that has announced
 * no hazard will see that. One that has may be copying: it is waited for, unless it is dead, or stopped outside of a
 * system call after its guard page was taken away.
 */
#ifndef ROCI_DEVICE_LOCAL_SETTLE_H
#define ROCI_DEVICE_LOCAL_SETTLE_H

#include "device/local/local.h"

/* Returns when no copy that `peer` has begun before goes on, and none will. */
void roci_local_settle(struct roci_local *l, struct roci_local_peer *peer);

#endif
