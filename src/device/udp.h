/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link: RoCEv2 over ordinary UDP sockets. Each local address that packets may arrive at has a socket, bound to
 * exactly that address, which the ICRC covers, and port 4791. Multicast groups have sockets of their own (udp_mcast.c).
 * Packets leave from a socket of the same address on a random port (udp_source.c), or from port 4791, as av->src_port
 * says.
 * The kernel cuts long messages into packets (UDP_SEGMENT) and joins received ones (UDP_GRO).
 */
#ifndef ROCI_DEVICE_UDP_H
#define ROCI_DEVICE_UDP_H

#include "device/device.h"
#include "device/door_queue.h"
#include "device/link.h"
#include "device/registry.h"
#include "device/stats.h"

struct roci_udp;

struct roci_udp_config {
	const struct roci_gids *gids; /* which sgid_index refers to; borrowed */
	struct roci_registry *registry;
	struct roci_door_queue *door;
	struct roci_device_stats *stats;
	int epoll_fd; /* sockets are added to it; their event data is a small number, for roci_udp_ready() */
};

/* Opens no socket yet. -ENOMEM. */
int roci_udp_open(const struct roci_udp_config *config, struct roci_udp **out);
/* Bytes of packets that a socket's buffer takes while nobody reads it, also where they are short; 0: not known. */
uint64_t roci_udp_receive_room(void);
/* The link; closing it closes everything. */
struct roci_link *roci_udp_link(struct roci_udp *udp);

/* Makes sure that packets to GID `index` arrive, now and when the host has lost the address and has it again: binds
 * port 4791, or finds that one of ours, of another user or container, has it, who sends by side doors what is for
 * others. Returns 0, or a negative errno; warns on stderr, once an address. -EADDRNOTAVAIL, without a warning: it is
 * tentative. Takes half a second where something else has the port of just this address, once. A later call may return
 * otherwise, when the port has passed on. */
int roci_udp_listen(struct roci_udp *udp, int index);
/* The same for every GID, those of the future too. Returns 0 or the first error. */
int roci_udp_listen_everywhere(struct roci_udp *udp);
/* The GID table has changed: closes the sockets of addresses that are gone, opens those that are wanted at addresses
 * that are ready now, and joins groups on new interfaces. */
void roci_udp_follow(struct roci_udp *udp, const struct roci_gid_change *change);

/* Tries again to bind the ports that could not be had: once a second, and more often while packets are sent without
 * them, so that a QP outlives the process that had the port. Takes half a second where a stranger has taken one since,
 * once in ten seconds at most. */
void roci_udp_timers(struct roci_udp *udp, uint64_t now);
/* When to call it; UINT64_MAX: no port is missing. */
uint64_t roci_udp_deadline(const struct roci_udp *udp);
/* The source port of MADs from GID `index`: 4791 where we have it. */
uint16_t roci_udp_mad_port(struct roci_udp *udp, unsigned index);

/* The address that packets to `dst`, whose port must not be 0, leave from: 0 or a negative errno. Sets a port in *src,
 * too. Nothing is sent. The kernel is asked, or was within the last millisecond (kept_answers.h). */
int roci_udp_route_source(struct roci_udp *udp, uint64_t now, const struct sockaddr *dst, socklen_t dst_len,
			  struct sockaddr_storage *src);
/* Likewise: whether there is a route from GID `index`, which is in the table, to `dgid`: 0, and what one packet
 * carries on it, bytes of UDP payload (0: not known); -ENETUNREACH or another negative errno. */
int roci_udp_route(struct roci_udp *udp, uint64_t now, unsigned index, const uint8_t dgid[16], uint32_t *carries);

/* The UDP port that packets of RC and UC leave from at GID `index`, which is in the table. It is random, and one for as
 * long as the link is open and the address is the host's. Opens its socket where there is none yet. 4791 where none can
 * be had. */
uint16_t roci_udp_source_port(struct roci_udp *udp, unsigned index);

/* Join and leave a multicast group on every interface of the GID table, since a QP may use any of them. Joins are
 * counted. -EINVAL: no multicast GID, or not joined; -ENOMEM; or the error of the socket. */
int roci_udp_join(struct roci_udp *udp, const uint8_t gid[16]);
int roci_udp_leave(struct roci_udp *udp, const uint8_t gid[16]);

/* The socket of this epoll event has something: the next receive reads it first. `error`: or it has an ICMP message. */
void roci_udp_ready(struct roci_udp *udp, uint64_t event_data, bool error);

#define ROCI_UDP_QUOTED 512 /* bytes of a packet that an ICMP message quotes at most, as far as they are kept */

/* ICMP says that a packet to port 4791 of dgid did not arrive. Anyone can send that; who has not seen the packet cannot
 * quote it. */
struct roci_udp_error {
	uint8_t dgid[16];
	int err; /* -ECONNREFUSED: nothing listens; -EHOSTUNREACH, -ENETUNREACH; -EMSGSIZE, of the kernel: see carries
		  */
	uint32_t carries; /* -EMSGSIZE: UDP payload that one packet to dgid takes now, bytes; it is less than it was */
	uint16_t len;     /* -EMSGSIZE: 0 */
	uint8_t quoted[ROCI_UDP_QUOTED]; /* the packet from its BTH on, cut */
};
/* False: there is none. A few are kept. */
bool roci_udp_next_error(struct roci_udp *udp, struct roci_udp_error *out);

/* Removes dead processes from the steering of all addresses: roci_steer_repair(). */
void roci_udp_repair(struct roci_udp *udp);

/* Gives back the ports of all addresses, as the process is about to end. */
void roci_udp_leave_host(struct roci_udp *udp);

/* Closes the sockets in a forked child, and nothing else. */
void roci_udp_close_in_child(struct roci_udp *udp);

#endif
