/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side door: a Unix datagram socket. Each process has one, named by its slot (abstract_name.h). It takes packets
 * that another process received for it, and packets of processes of this host where nobody of ours has UDP port 4791.
 */
#ifndef ROCI_DEVICE_SIDE_DOOR_H
#define ROCI_DEVICE_SIDE_DOOR_H

#include <sys/uio.h>

#include "device/link.h"
#include "device/registry.h"

#define ROCI_SIDE_DOOR_BYTES   65536 /* of the packets in one message, at most */
#define ROCI_SIDE_DOOR_PACKETS 512   /* in one message, at most */

struct roci_side_door;

/* Makes what the side door of reg's slot needs beside its socket, which stays the registry's. Returns 0 or a negative
 * errno. */
int roci_side_door_open(const struct roci_registry *reg, struct roci_side_door **out);
void roci_side_door_close(struct roci_side_door *door);
/* Closes the descriptors in a forked child, and nothing else. */
void roci_side_door_close_in_child(struct roci_side_door *door);
/* Takes no more, as the process is about to end: for those who send, nobody is there. */
void roci_side_door_shut(struct roci_side_door *door);

/* Sends packets in one message to the process that owns `slot`: each of `segment` bytes, the last may be shorter, in
 * iov[1] and what follows. iov[0] is for the message's header. Returns 0, -ESRCH where no such process lives, -EAGAIN
 * where it does not read what it was sent, which takes no room that others need, or another negative errno. Never
 * blocks. */
int roci_side_door_send(struct roci_side_door *door, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			struct iovec *iov, unsigned iov_count);

/* Likewise, to the process of another registry that has the name of this rdma_cm port (port_names.h). */
int roci_side_door_offer(struct roci_side_door *door, unsigned ps, uint16_t port, const struct roci_arrival *from,
			 uint32_t segment, struct iovec *iov, unsigned iov_count);

/* Wakes the process that owns `slot`: there is something for it in shared memory (local/local.h). */
void roci_side_door_wake(struct roci_side_door *door, unsigned slot);

/* Whether a living process of this network namespace, whoever's, owns `slot`. */
bool roci_side_door_alive(unsigned slot);

/* As a link's recv. Counts bad messages in *malformed. fd: the side door's, or the socket of a port's name. */
unsigned roci_side_door_recv(struct roci_side_door *door, int fd, struct roci_datagram *out, uint64_t *malformed);

int roci_side_door_fd(const struct roci_side_door *door);

#endif
