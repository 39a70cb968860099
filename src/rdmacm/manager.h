/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of the process, src/device/cm_host.h, as ids use it: calls go down under the device's lock;
 * events come up under it (upcall.c).
 */
#ifndef ROCI_RDMACM_MANAGER_H
#define ROCI_RDMACM_MANAGER_H

#include "rdmacm/id.h"

/* Starts the delivery of the manager's events to cma_upcall(). */
int cma_attach(struct roci_device *dev);
/* Turns an event of the manager into one of an id. Device lock held; copies and queues only. */
void cma_upcall(const struct roci_cm_event *from);

/* The id's manager, with the device locked. NULL, and not locked: the id was inherited by a forked child, and its
 * manager is the parent's (-ENODEV to callers). */
struct roci_cm *cma_lock_cm(const struct cma_id *id);
void cma_unlock_cm(const struct cma_id *id);
/* After a call that rejects: a program may end itself next, so the message leaves at once. */
void cma_unlock_cm_last(const struct cma_id *id);
/* After a call that disconnects: likewise, but among many in a row. */
void cma_unlock_cm_disconnected(const struct cma_id *id);
/* Device lock held. Sends the id's last message if it waits: the next one would replace it. */
void cma_send_before(const struct cma_id *id);
/* The program may stop calling: sends what waits for its next call (device/hold.h). */
void cma_send_waiting(void);
/* False: inherited by a forked child. */
bool cma_is_alive(const struct cma_id *id);

/* Takes the port of the id's source address; chooses one if that is 0. connects: the id will not listen. -EADDRINUSE.
 */
int cma_bind_port(struct cma_id *id, bool connects);
/* Destroys the id's connection, SIDR exchange, listener and port. No more events come for it. */
void cma_release(struct cma_id *id);
/* The program has fetched the request: it no longer counts against the backlog. */
void cma_request_fetched(struct cma_id *id);
/* The program has answered it. */
void cma_request_answered(const struct cma_id *id);
/* Answers the peer's REP with an RTU. -EINVAL: there is no connection in that state. */
int cma_establish(struct cma_id *id);
/* Copies what is known of the connection. False: there is none. */
bool cma_conn_info(const struct cma_id *id, struct roci_conn_info *info);
/* Address handle attributes of a path. */
void cma_path_ah(const struct cma_id *id, const struct roci_cm_path *path, struct ibv_ah_attr *ah);

#endif
