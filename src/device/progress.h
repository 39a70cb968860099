/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's thread, and what it sleeps on. turns.h decides when it drives, naps and sleeps. */
#ifndef ROCI_DEVICE_PROGRESS_H
#define ROCI_DEVICE_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Data of epoll events. Sockets of the udp link have small numbers. */
#define ROCI_PROGRESS_WAKE      UINT64_MAX
#define ROCI_PROGRESS_DOOR      (UINT64_MAX - 1)
#define ROCI_PROGRESS_ADDRESSES (UINT64_MAX - 2)

struct roci_device;

struct roci_progress {
	pthread_t thread;
	int epoll_fd;
	int wake_fd;  /* an eventfd */
	int alarm_fd; /* a timerfd, for the thread when it stands by */
	int stop_fd;  /* an eventfd: readable from the stop on, for threads of the program that wait for an event */
	bool stop;
};

/* Opens the descriptors. Returns 0 or a negative errno. */
int roci_progress_open(struct roci_progress *p);
void roci_progress_close(struct roci_progress *p);
/* The thread wakes when `fd` is readable. Returns 0 or a negative errno. */
int roci_progress_watch(struct roci_progress *p, int fd, uint64_t event_data);
/* It does not any more. */
void roci_progress_unwatch(struct roci_progress *p, int fd);

/* Starts the thread. Returns 0 or a negative errno. */
int roci_progress_start(struct roci_device *dev);
/* Stops the thread and waits for its end. The lock is not held. */
void roci_progress_stop(struct roci_device *dev);
/* When the engine, the connection manager or a link has work next, or what was posted is to be sent; ROCI_NEVER. The
 * lock is held. */
uint64_t roci_progress_deadline(const struct roci_device *dev);
/* When the program last called. */
uint64_t roci_progress_last_call(const struct roci_device *dev);
/* Notes what is ready on `epoll_fd`, without waiting. The lock is held. */
void roci_progress_look(struct roci_device *dev);
struct timespec roci_to_timespec(uint64_t ns);
/* Alarms the thread, which stands by, at that time. The lock is held. */
void roci_progress_alarm(struct roci_device *dev, uint64_t at);
/* Wakes who sleeps on `epoll_fd`. */
void roci_progress_wake_now(struct roci_device *dev);
/* After a call or poll: wakes the thread where it sleeps and must not. The lock is held. */
void roci_progress_wake(struct roci_device *dev);

#endif
