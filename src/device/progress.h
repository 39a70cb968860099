/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's thread, and what it sleeps on. turns.h decides when it drives, naps and sleeps. */
#ifndef ROCI_DEVICE_PROGRESS_H
#define ROCI_DEVICE_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Data of epoll events. Sockets of the udp link have small numbers. */
#define ROCI_PROGRESS_WAKE      UINT64_MAX
#define ROCI_PROGRESS_DOOR      (UINT64_MAX - 1)
#define ROCI_PROGRESS_ADDRESSES (UINT64_MAX - 2)

struct roci_device;

struct roci_progress {
	pthread_t thread;
	int epoll_fd;
	int wake_fd; /* an eventfd */
	bool stop;
};

/* Opens the descriptors. Returns 0 or a negative errno. */
int roci_progress_open(struct roci_progress *p);
void roci_progress_close(struct roci_progress *p);
/* The thread wakes when `fd` is readable. Returns 0 or a negative errno. */
int roci_progress_watch(struct roci_progress *p, int fd, uint64_t event_data);

/* Starts the thread. Returns 0 or a negative errno. */
int roci_progress_start(struct roci_device *dev);
/* Stops the thread and waits for its end. The lock is not held. */
void roci_progress_stop(struct roci_device *dev);
/* After a call or poll: wakes the thread where it sleeps and must not. The lock is held. */
void roci_progress_wake(struct roci_device *dev);

#endif
