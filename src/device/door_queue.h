/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that found a side door full. A door holds eleven messages, whatever their length, where the buffer of a UDP
 * socket holds hundreds of packets: programs that send datagrams rely on that. So the packets wait here, joined to
 * larger messages, until the process has read its door. Who does not read it has lost them after a second, and takes at
 * most half of the room.
 */
#ifndef ROCI_DEVICE_DOOR_QUEUE_H
#define ROCI_DEVICE_DOOR_QUEUE_H

#include "device/side_door.h"

struct roci_door_queue;

/* Counts packets that were lost here in *lost. Returns 0 or -ENOMEM. */
int roci_door_queue_open(struct roci_side_door *door, uint64_t *lost, struct roci_door_queue **out);
/* Loses what waits. */
void roci_door_queue_close(struct roci_door_queue *q);
/* As roci_side_door_send(). Returns 0 also where the packets wait; -EAGAIN: there is no room for them. */
int roci_door_queue_send(struct roci_door_queue *q, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			 struct iovec *iov, unsigned iov_count);
/* Sends what waits, as far as there is room. */
void roci_door_queue_retry(struct roci_door_queue *q);
/* When to call that again, in nanoseconds of roci_now(); UINT64_MAX: nothing waits. */
uint64_t roci_door_queue_deadline(const struct roci_door_queue *q);
/* The process is about to end: waits ten milliseconds for room, at most. */
void roci_door_queue_finish(struct roci_door_queue *q);

#endif
