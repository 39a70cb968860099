/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end: serves the near ends that `roci serve` hands over, each in a thread of its own. */
#ifndef ROCI_PERF_FAR_H
#define ROCI_PERF_FAR_H

#include <stdbool.h>
#include <stddef.h>

#include "perf/facts.h"

struct perf_plan;

#define PERF_FAR_CLIENTS 8u /* at once; each registers PERF_MAX_MEMORY at most */

enum perf_far_event { PERF_FAR_CONNECTED, PERF_FAR_DISCONNECTED, PERF_FAR_REFUSED, PERF_FAR_PROBLEM };

struct perf_far_options {
	const char *device; /* NULL: the one that has the address */
	bool embedded;
	perf_counters_fn *counters;
	/* Called in the threads. `plan` is NULL if there was none that could be read, `text` is NULL or says why. */
	void (*report)(void *context, enum perf_far_event event, unsigned client, const char *address,
		       const struct perf_plan *plan, const char *text);
	void *context;
};

struct perf_far;

/* NULL: no memory. */
struct perf_far *perf_far_create(const struct perf_far_options *options);
/* Ends all clients and waits for their threads. */
void perf_far_destroy(struct perf_far *far);

/* Whether these bytes, the first that a client sent, are for perf_far_adopt(). */
bool perf_far_wants(const void *bytes, size_t len);
/* Takes over the client: the descriptor, which does not block, and what was read of it. */
void perf_far_adopt(struct perf_far *far, int fd, unsigned client, const char *address, const void *bytes, size_t len);

#endif
