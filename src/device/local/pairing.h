/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which path two processes of a user take to each other. Both must take the same one, and neither can ask the other: so
 * whichever attaches first decides for both, once, by a word in the file of the one with the lower slot. It decides for
 * the local path where there is room for the rings of both directions, which it reserves, and where it may copy from
 * the other's memory: their rights are equal, so the other one may, too.
 */
#ifndef ROCI_DEVICE_LOCAL_PAIRING_H
#define ROCI_DEVICE_LOCAL_PAIRING_H

#include <stdbool.h>
#include <sys/types.h>

#include "device/local/shared.h"

#define ROCI_LOCAL_RINGS_MAX 64 /* of a process: its peers beyond these take the wire */

/* Where in a file the ring to the process with this slot is. */
off_t roci_local_ring_at(unsigned slot);
/* Reserves its room. Returns 0 or a negative errno. */
int roci_local_reserve(int fd, unsigned slot);
void roci_local_unreserve(int fd, unsigned slot);

/* Decides, or takes the decision that is there. `fd`, `peer_fd`: the files of the two. Returns 0: the local path;
 * -ENOTCONN: the wire, and *why says why. */
int roci_local_pair_up(struct roci_local_shared *own, int fd, struct roci_local_shared *peer, int peer_fd,
		       const char **why);

#endif
