/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device without sockets, files, clock and thread, for fuzz targets: its engine, its connection manager, and all
 * between them and the packets that arrive are the real ones (receive.c, gsi.c, nat.c, door_trust.c, cm_host.c). The
 * target plays the network, the other processes and users of the host, and time.
 */
#ifndef ROCI_TESTS_FAKE_HOST_H
#define ROCI_TESTS_FAKE_HOST_H

#include "device/device_state.h"

#define FAKE_SLOT    5 /* ours */
#define FAKE_SIBLING 6 /* a process of this registry, */
#define FAKE_FOREIGN 7 /* and one of another */

/* Ports of rdma_cm: who listens there. */
enum { FAKE_PORT_OURS = 7001, FAKE_PORT_SIBLING, FAKE_PORT_OTHER_FAMILY, FAKE_PORT_FOREIGN };

/* ---- the target's ---- */

/* The device sends a packet; frame is not sealed. */
void fake_sent(const struct roci_frame *frame);
/* The device forwards a packet to a process, or offers it to who listens to a port. Returns what the side door would.
 */
int fake_forwarded(const struct roci_arrival *from);
void fake_cm_event(const struct roci_cm_event *event);

/* ---- for the target ---- */

struct fake_host {
	struct roci_device dev;
	struct roci_stats_file counters;
	uint64_t now;
	bool no_port; /* UDP port 4791 cannot be had */
};
extern struct fake_host host;

/* Begins anew: a device with these addresses (ROCI_GID_READY). `seed`: of all that is random. */
void fake_host_open(const uint8_t (*gids)[16], unsigned count, uint64_t seed);
void fake_host_close(void);

/* How a packet arrives: by UDP, by our side door, or by the socket of a port that we listen to. */
enum fake_way { FAKE_UDP, FAKE_DOOR, FAKE_OFFER };
/* A packet arrives; `bytes` are copied to memory of just that size. from->forwarded and ->offered are set here. */
void fake_arrive(enum fake_way way, struct roci_arrival *from, const uint8_t *bytes, uint32_t len);
/* Sends what the engine has to send. */
void fake_send_out(void);
/* Time passes, from deadline to deadline. */
void fake_pass(uint64_t ns);

#endif
