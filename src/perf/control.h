/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP connection between the two ends: reads and writes whole messages. Its descriptor does not block. */
#ifndef ROCI_PERF_CONTROL_H
#define ROCI_PERF_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tour/failure.h"

#define CONTROL_TIMEOUT_MS 20000 /* an end answers within it */

struct perf_control {
	int fd;
	const char *address; /* of the other end */
	int end_fd;          /* readable: give up. -1: there is none besides tour_stop()'s */
	bool heeds_stop;     /* tour_stop() ends waiting. Not while the last report is awaited */
};

/* 0; -ETIMEDOUT; -ECONNRESET: the other end has gone; -EINTR. With *f. */
int control_read(const struct perf_control *c, void *bytes, size_t len, int timeout_ms, struct failure *f);
int control_write(const struct perf_control *c, const void *bytes, size_t len, struct failure *f);

/* Whether a message of this length is there, at once. Negative: the other end has gone. */
int control_has(const struct perf_control *c, size_t len, struct failure *f);

/* Waits until bytes come, or `more` (a descriptor; -1: none) is readable, or the time is over. */
void control_wait(const struct perf_control *c, int more, int64_t timeout_ns);

/* Whether waiting is to end: tour_stop(), or end_fd. */
bool control_stopped(const struct perf_control *c);

#endif
