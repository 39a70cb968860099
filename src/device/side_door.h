/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side door: a Unix datagram socket in the run directory, one per process, named by its slot. Through it go packets
 * that the kernel gave to the wrong process of the host, and, where UDP port 4791 cannot be had, packets between
 * processes of this host. The directory's permissions (0700) are its authentication; what comes in is still validated.
 */
#ifndef ROCI_DEVICE_SIDE_DOOR_H
#define ROCI_DEVICE_SIDE_DOOR_H

#include <sys/uio.h>

#include "device/link.h"
#include "device/registry.h"

struct roci_side_door;

/* Opens the door of reg's slot. */
int roci_side_door_open(const struct roci_registry *reg, struct roci_side_door **out);
void roci_side_door_close(struct roci_side_door *door);
/* Takes its name away, as the process is about to end. */
void roci_side_door_unlink(struct roci_side_door *door);

/* Hands `count` packets of one message (each `segment` bytes long, the last may be shorter), gathered from
 * iov[1..iov_count
 * - 1], to the process that owns `slot`; iov[0] is for the door's header. Returns 0, -ESRCH where no such process
 * lives, or another negative errno; -EAGAIN: its queue is full. Never blocks. */
int roci_side_door_send(struct roci_side_door *door, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			struct iovec *iov, unsigned iov_count);

/* As a link's recv; bad messages are counted in *malformed. */
unsigned roci_side_door_recv(struct roci_side_door *door, struct roci_datagram *out, uint64_t *malformed);

int roci_side_door_fd(const struct roci_side_door *door);

#endif
