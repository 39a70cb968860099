/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and memory windows: who may access which bytes (IBTA 10.6). Each access of the engine to user memory
 * is resolved here, packet by packet, so a deregistered region is never accessed.
 */
#ifndef ROCI_ENGINE_MR_H
#define ROCI_ENGINE_MR_H

#include "engine/engine.h"

/* What a key stands for: the first member of struct roci_mr and struct roci_mw. */
struct roci_region {
	enum { REGION_MR, REGION_MW } kind;
	uint32_t key; /* all 32 bits must match */
	uint32_t pd;
};

/* The memory that `lkey` names with `addr` and `len`, for `access` (0 or ROCI_ACCESS_LOCAL_WRITE): its first byte, or
 * NULL where the key, PD, range or right is wrong. With len 0 nothing is checked; the pointer is not NULL. */
void *roci_mr_local(struct roci_engine *e, uint32_t pd, uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access);

/* The same for an rkey, used by the peer of QP `qpn`, and one ROCI_ACCESS_REMOTE_* right. */
void *roci_mr_remote(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint64_t len,
		     uint32_t access);
/* Whether the peer of QP `qpn` may flush that range (with `whole`: all that the rkey stands for) with all the
 * ROCI_ACCESS_FLUSH_* rights of `access` (IBTA A19). The rkey is checked even where the range is empty. */
bool roci_mr_may_flush(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint64_t len,
		       bool whole, uint32_t access);

/* A bind request in a send queue. It holds keys, not pointers: the objects may be destroyed before the bind runs. */
struct roci_bind {
	uint64_t addr, len; /* len 0: unbind */
	uint32_t mw_key;    /* its upper 24 bits name the window */
	uint32_t mr_key;    /* of the region, unread when len is 0 */
	uint32_t access;
	uint32_t rkey; /* its low 8 bits become the window's; the upper 24 bits of a window never change */
};

/* Executes a bind work request on QP `qpn` of `pd`. -EINVAL where IBTA 10.6.7.2 forbids it. */
int roci_mw_bind(struct roci_engine *e, uint32_t pd, uint32_t qpn, const struct roci_bind *bind);

/* LOCAL_INV and SEND_WITH_INV: makes a bound type 2 window of this QP invalid. -EINVAL where the key names no
 * such window. */
int roci_mw_invalidate(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey);

/* QP `qpn` is destroyed: its windows of type 2 are not bound any more. Otherwise the next QP of that number would have
 * them, and their regions could not be deregistered. In ERR and RESET a QP keeps them, as with Soft-RoCE, and no packet
 * reaches them. */
void roci_mw_forget_qp(struct roci_engine *e, uint32_t qpn);

/* Frees all regions that are left. */
void roci_regions_free(struct roci_engine *e);

#endif
