/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The regions that a process publishes for its peers on the host (shared.h). Pure. A region that finds no place
 * is not published: requests to it go the way by the engine.
 */
#ifndef ROCI_DEVICE_LOCAL_TABLE_H
#define ROCI_DEVICE_LOCAL_TABLE_H

#include <stdbool.h>

#include "device/local/shared.h"
#include "engine/engine.h"

/* By the owner, under its lock. */
void roci_local_publish_region(struct roci_local_shared *own, const struct roci_mr_attr *attr);
/* From now on nobody finds it. Who found it before has announced a hazard. */
void roci_local_revoke_region(struct roci_local_shared *own, uint32_t key);

/* By a peer that has announced its hazard: where `d` leads to, by the owner's QP and region. Returns the address in the
 * owner's memory, or 0: the short cut is not for this request. */
uint64_t roci_local_find_region(struct roci_local_shared *owner, const struct roci_direct *d);
/* Whether QP `qpn` of the owner is ROCI_PUBLISHED_NEW: true once. */
bool roci_local_is_first(struct roci_local_shared *owner, uint32_t qpn);

#endif
