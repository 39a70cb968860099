/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device of this process: one engine, its sockets, its thread, its place in the host registry (D3-D6).
 *
 * There is one roci_device in a process, shared by every ibv_context and rdma_cm channel; it comes to life with the
 * first roci_device_get() and ends with the last roci_device_put(). A forked child starts without one.
 */
#ifndef ROCI_DEVICE_DEVICE_H
#define ROCI_DEVICE_DEVICE_H

#include "device/gid.h" /* IWYU pragma: export */
#include "engine/engine.h"

struct roci_device;

/* Completion and async events, told under the device's lock as they happen; must not block. */
typedef void roci_event_fn(const struct roci_event *ev);

/* Opens or shares the device. Returns 0 or a negative errno after a line on stderr that names the cause. */
int roci_device_get(roci_event_fn *on_event, struct roci_device **out);
void roci_device_put(struct roci_device *dev);

/* The lock under which engine calls are made. unlock() first sends what the calls made ready, and tells the thread of
 * new deadlines. */
struct roci_engine *roci_device_lock(struct roci_device *dev);
void roci_device_unlock(struct roci_device *dev);
/* As roci_device_lock(), for posting work requests: what the application's last poll left to be sent (acknowledgements)
 * waits for the unlock, to leave in one system call with what is posted. Otherwise it leaves first, so that no QP is
 * changed or destroyed with an acknowledgement owed. */
struct roci_engine *roci_device_lock_post(struct roci_device *dev);
/* Drives the engine inline if nobody else does at the moment: receive, timers, send. For polling callers. Never blocks.
 */
void roci_device_poll(struct roci_device *dev);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t roci_now(void);

/* ---- addresses ---- */

/* The table as it was when the device opened: what sgid_index means. Returns the number of entries. */
int roci_device_gids(const struct roci_device *dev, const struct roci_gid_entry **entries);

/* Makes an address vector. -EINVAL: no such sgid_index, families differ; -ENETUNREACH: no route. Lock held. */
struct roci_ah_params {
	uint8_t sgid_index, hop_limit, traffic_class;
	uint8_t dgid[16];
};
int roci_device_make_av(struct roci_device *dev, const struct roci_ah_params *params, struct roci_av *av);

/* Makes sure that packets to GID `sgid_index` arrive (binds its UDP port 4791), -1: to every GID. Lock held. Returns 0,
 * or a negative errno after a plain warning on stderr; the device goes on for peers on this host. */
int roci_device_listen(struct roci_device *dev, int sgid_index);
/* Joins and leaves multicast group `gid` on every interface that has an address of its family; counts joins. Lock held.
 * Returns 0 or a negative errno. */
int roci_device_join(struct roci_device *dev, const uint8_t gid[16]);
int roci_device_leave(struct roci_device *dev, const uint8_t gid[16]);

/* ---- numbers ---- */

/* A free QPN of this process's block, unpredictable; -ENOMEM. Lock held. */
int roci_device_alloc_qpn(struct roci_device *dev, uint32_t *qpn);
void roci_device_free_qpn(struct roci_device *dev, uint32_t qpn);
/* 32 bits of getrandom(). */
uint32_t roci_random32(void);

#endif
