/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for copiers. This process has taken something back that a peer may copy from or to. A peer that has announced
 * no hazard will see that. One that has may be copying: it is waited for, until it has copied one piece and looks
 * again, unless it is dead, or stopped outside of a system call after its guard page was taken away.
 */
#ifndef ROCI_DEVICE_LOCAL_SETTLE_H
#define ROCI_DEVICE_LOCAL_SETTLE_H

#include "device/local/local.h"

/* Returns when no copy of `peer` goes on that has not seen what was taken back, and none will. */
void roci_local_settle(struct roci_local *l, struct roci_local_peer *peer);

#endif
