/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device's tests share: a private run directory, stations (registry, side door, udp link) and packets. */
#ifndef ROCI_TESTS_DEVICE_BENCH_H
#define ROCI_TESTS_DEVICE_BENCH_H

#include <errno.h>
#include <netinet/in.h>

#include "../test.h" /* IWYU pragma: export */

#include "device/seal.h"  /* IWYU pragma: export */
#include "device/steer.h" /* IWYU pragma: export */
#include "device/udp.h"

/* cmocka group setup and teardown: $ROCI_RUNDIR is a fresh directory, and where the system lets us, the network is
 * a namespace of our own with nothing but loopback: the host's registry and UDP port 4791 are left alone. */
int private_rundir(void **state);
int remove_rundir(void **state);

/* "127.77.0.1" or "::1" as a GID. */
void gid_of(const char *text, uint8_t gid[16]);

/* What a process has, with one GID. */
struct station {
	struct roci_gids gids; /* one */
	struct roci_registry registry;
	struct roci_side_door *door;
	struct roci_door_queue *door_queue;
	struct roci_udp *udp;
	struct roci_link *link; /* seal -> udp, or seal -> capture -> udp */
	struct roci_device_stats stats;
	int epoll_fd;
};
void station_open(struct station *s, const char *address);
void station_open_captured(struct station *s, const char *address, const char *path);
void station_close(struct station *s);

/* Receives, waiting up to a second for something to come. Returns how many packets came; out[] has
 * ROCI_LINK_RECV_BATCH places. */
unsigned station_wait(struct station *s, struct roci_datagram *out);

/* A batch of UC SEND Only packets, or MADs. */
struct outgoing {
	struct roci_av av;
	struct roci_frame frames[ROCI_LINK_SEND_BATCH];
	struct roci_frame sent[ROCI_LINK_SEND_BATCH]; /* as the last outgoing_send() left them: sealed */
	struct roci_span spans[ROCI_LINK_SEND_BATCH][2];
	uint8_t headers[ROCI_LINK_SEND_BATCH][ROCI_MAX_HEADER_BYTES];
	unsigned count;
};
void outgoing_start(struct outgoing *o, const struct station *from, const char *to);
/* The QPN with place `offset` in the block of `slot`, as all stations see it. */
uint32_t qpn_of(const struct station *s, unsigned slot, uint32_t offset);
/* Appends a packet to `qpn` with `psn` and `len` bytes of payload, byte i being (uint8_t)(psn + i), in two spans. */
void outgoing_add(struct outgoing *o, uint32_t qpn, uint32_t psn, unsigned len);
/* Appends a packet to QP1 with 256 bytes, which stay the caller's until it is sent. */
void outgoing_add_mad(struct outgoing *o, const uint8_t *mad);
/* `link` seals. May be called again. */
void outgoing_send(struct outgoing *o, struct roci_link *link);

/* Asserts that `d` is a whole packet as outgoing_add() made it. Returns its PSN. */
uint32_t check_datagram(const struct roci_datagram *d);
/* True where the ICRC is right (IPv4: for some identification). */
bool icrc_is_right(const struct roci_datagram *d);

#endif
