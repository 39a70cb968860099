/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link: RoCEv2 over ordinary UDP sockets, one per local address that is listened to, bound to the exact address
 * (it is under the ICRC) and port 4791, and for multicast groups, see udp_mcast.c. UDP_SEGMENT on send, UDP_GRO on
 * receive.
 */
#ifndef ROCI_DEVICE_UDP_H
#define ROCI_DEVICE_UDP_H

#include "device/device.h"
#include "device/link.h"
#include "device/registry.h"
#include "device/side_door.h"
#include "device/stats.h"

struct roci_udp;

struct roci_udp_config {
	const struct roci_gids *gids; /* what sgid_index means; borrowed */
	struct roci_registry *registry;
	struct roci_side_door *door;
	struct roci_device_stats *stats;
	int epoll_fd; /* sockets are added to it, a small number that is for roci_udp_ready() as event data */
};

/* Opens no socket yet. -ENOMEM. */
int roci_udp_open(const struct roci_udp_config *config, struct roci_udp **out);
/* The link; closing it closes everything. */
struct roci_link *roci_udp_link(struct roci_udp *udp);

/* Makes sure that packets to GID `index` arrive; what fails is told on stderr, once per address. */
int roci_udp_listen(struct roci_udp *udp, int index);

/* Counted joins of a multicast group, on every interface of the GID table, since a QP may use any of them. -EINVAL: no
 * multicast GID, or not joined; -ENOMEM; or why the group cannot be had. */
int roci_udp_join(struct roci_udp *udp, const uint8_t gid[16]);
int roci_udp_leave(struct roci_udp *udp, const uint8_t gid[16]);

/* The next receive looks at the socket of this epoll event first. */
void roci_udp_ready(struct roci_udp *udp, uint64_t event_data);

/* Brings the steering up to date: see roci_steer_repair(). */
void roci_udp_repair(struct roci_udp *udp);

/* Leaves the steering of all addresses, as the process is about to end; the sockets stay. */
void roci_udp_leave_steering(struct roci_udp *udp);

/* Closes the sockets in a forked child, and nothing else. */
void roci_udp_close_in_child(struct roci_udp *udp);

#endif
