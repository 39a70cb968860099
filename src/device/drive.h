/* SPDX-License-Identifier: BSD-2-Clause */
/* One turn of the device: packets in, timers, packets out, events. turns.h says who takes it. The lock is held. */
#ifndef ROCI_DEVICE_DRIVE_H
#define ROCI_DEVICE_DRIVE_H

#include <stdint.h>

#include "device/device.h"

/* A turn of the thread. Returns the number of packets that moved. */
unsigned roci_drive(struct roci_device *dev, uint64_t now);
/* A turn of a thread of the program that waits for the event that `ready` tells of. Sending may be deferred where it
 * came. Returns the number of packets that moved. */
unsigned roci_drive_wait(struct roci_device *dev, uint64_t now, roci_ready_fn *ready, void *arg);
/* A turn of a program that polls. Sending may be deferred. Returns the number of packets received. */
unsigned roci_drive_poll(struct roci_device *dev, uint64_t now);
/* After a call that changed something: sends what is ready or defers that, reports events, and drives connections. */
void roci_drive_call(struct roci_device *dev, uint64_t now);
/* The same after work requests were posted: connections are driven only where a QP may have failed. */
void roci_drive_post(struct roci_device *dev, uint64_t now);
/* The same where what was posted is done, or waits in rings at most: no cancellation point (lock.h). */
bool roci_drive_post_is_brief(const struct roci_device *dev);
void roci_drive_post_briefly(struct roci_device *dev, uint64_t now);
/* A program polls. True: there is nothing to do for it, as far as can be told without the time and the lock. */
bool roci_drive_peek(struct roci_device *dev);
/* Reports events only. Returns whether there were any: then connections are to be driven. */
bool roci_drive_events(struct roci_device *dev);
/* Sends what a call or poll deferred. */
void roci_drive_deferred(struct roci_device *dev, uint64_t now);

#endif
