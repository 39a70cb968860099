/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Received packets: from the links and the side door to the engine, to QP1 (gsi.h), or on to the process of this host
 * whose they are.
 */
#ifndef ROCI_DEVICE_RECEIVE_H
#define ROCI_DEVICE_RECEIVE_H

#include "device/door_trust.h"
#include "device/link.h"
#include "device/local/glance.h"
#include "device/pieces.h"

struct roci_device;

struct roci_receive {
	struct roci_rx rx;
	struct roci_datagram datagrams[ROCI_LINK_RECV_BATCH];
	unsigned door_check_in; /* receives until the side door is checked */
	unsigned door_busy;     /* receives for which it is checked each time */
	uint64_t door_at;       /* when it was last checked */
	uint64_t repaired_at;   /* when the steering was last repaired */
	uint64_t looked_at;     /* when it was last looked up whether it should be */
	struct roci_door_trust trust;
	struct roci_local_glance glance;
	struct roci_pieces pieces;
};

/* Receives what has arrived. Returns the number of packets. The lock is held. */
unsigned roci_receive(struct roci_device *dev, uint64_t now);
/* The same, but only from processes of this host that need no packets (local/local.h). */
unsigned roci_receive_by_rings(struct roci_device *dev, uint64_t now);
/* Receives what has come by now, before the sockets are closed: other processes wait for what is forwarded to them, and
 * the peer may have ended after an acknowledgement that it sends once. The lock is held. */
void roci_receive_rest(struct roci_device *dev, uint64_t now);
/* Something waits at the side door: the next receive checks it. */
void roci_receive_door_ready(struct roci_receive *r);

#endif
