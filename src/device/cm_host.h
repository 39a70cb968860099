/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of this process, as the device drives it. MADs come and go by gsi.h; events go to src/rdmacm.
 * All calls need the device's lock. What they cause is sent and reported when it is released.
 */
#ifndef ROCI_DEVICE_CM_HOST_H
#define ROCI_DEVICE_CM_HOST_H

#include "cm/cm.h"
#include "device/device.h"
#include "device/ports.h"

/* ---- for src/rdmacm ---- */

/* Called for each event as it happens, under the device's lock. Must not block; may call roci_conn_*() and
 * roci_sidr_*(). */
typedef void roci_cm_event_fn(const struct roci_cm_event *ev);
/* Called after one or more events, before the device is unlocked. */
typedef void roci_cm_events_end_fn(void);

/* From now on events are reported to on_event. -ENODEV: a forked child's inherited device. */
int roci_cm_host_attach(struct roci_device *dev, roci_cm_event_fn *on_event, roci_cm_events_end_fn *on_end);
/* NULL: a forked child's inherited device. */
struct roci_cm *roci_cm_host_cm(struct roci_device *dev);

/* A call on the manager ends, before the device is unlocked. more: the program has events to take, so it calls again
 * soon, and MADs that are ready may wait for that (hold.h). */
void roci_cm_host_called(struct roci_device *dev, bool more);
/* Likewise, of a call that disconnects: of many in a row the MADs leave together. */
void roci_cm_host_disconnected(struct roci_device *dev);
/* A connection is established, and its QP is in RTS: the QP learns how long the peer took to answer. */
void roci_cm_host_established(struct roci_device *dev, const struct roci_conn *conn);
/* Whether MADs wait. Needs no lock. */
bool roci_cm_host_holds(const struct roci_device *dev);
/* Sends all that is ready. */
void roci_cm_host_send(struct roci_device *dev, uint64_t now);

/* A port of the host that this process has bound, and the listener on it, if there is one. */
struct roci_cm_service;

/* -EADDRINUSE; -EADDRNOTAVAIL: no free port; -ENOMEM. */
int roci_cm_host_bind(struct roci_device *dev, const struct roci_cm_bind *ask, struct roci_cm_service **out);
uint16_t roci_cm_service_port_of(const struct roci_cm_service *service);
/* Starts to listen, and makes sure that requests arrive. -EADDRINUSE, -ENOMEM; -EINVAL: it listens already. */
int roci_cm_host_listen(struct roci_device *dev, struct roci_cm_service *service, const struct roci_cm_listen *params);
/* Stops listening, and gives the port back. */
void roci_cm_host_release(struct roci_device *dev, struct roci_cm_service *service);
/* The GID table has changed: listeners of an address that is ready now hear there. */
void roci_cm_host_follow(struct roci_device *dev, const struct roci_gid_change *change);

/* ---- for the device ---- */

struct roci_gsi;

int roci_cm_host_open(struct roci_device *dev); /* -ENOMEM, -EMFILE */
void roci_cm_host_close(struct roci_device *dev);
/* The process ends: disconnects every peer, once, as the kernel would. */
void roci_cm_host_disconnect_all(struct roci_device *dev, uint64_t now);
struct roci_gsi *roci_cm_host_gsi(struct roci_device *dev);
struct roci_port_names *roci_cm_host_port_names(struct roci_device *dev);
/* Closes the descriptors in a forked child, and nothing else. */
void roci_cm_host_close_in_child(struct roci_device *dev);
/* sender_id: the communication id of the MAD's sender. What answers it is sent by the next roci_cm_host_drive(),
 * or where ROCI_GSI_BATCH have come. */
void roci_cm_host_rx(struct roci_device *dev, uint64_t now, const uint8_t *mad, const uint8_t sgid[16],
		     const uint8_t dgid[16], uint32_t sender_id, const struct roci_nat_terms *nat);
/* Runs timers, reports events and sends MADs until nothing is left to do, but what waits for the program's next call.
 */
void roci_cm_host_drive(struct roci_device *dev, uint64_t now);
/* A QP failed by itself, maybe because its peer is silent (roci_qp_keepalive()): the next drive checks the peers. */
void roci_cm_host_qp_failed(struct roci_device *dev);
/* When the thread has to be back for the manager. */
uint64_t roci_cm_host_deadline(const struct roci_device *dev);

#endif
