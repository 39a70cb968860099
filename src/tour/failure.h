/* SPDX-License-Identifier: BSD-2-Clause */
/* Why something did not work, in words and as the number that verbs gave. */
#ifndef ROCI_TOUR_FAILURE_H
#define ROCI_TOUR_FAILURE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct failure {
	char text[320];   /* "" : nothing failed */
	int err;          /* negative errno; 0: not from a call */
	const char *call; /* "rdma_connect"; NULL: not from a call */
	bool completed;   /* `status` is that of a completion */
	enum ibv_wc_status status;
	int reject; /* reason of RDMA_CM_EVENT_REJECTED; -1: it was none */
};

/* Fills *f. Returns a negative number, so that `return fail(...)` works: err if that is negative, else -EIO. */
__attribute__((format(printf, 3, 4))) int fail(struct failure *f, int err, const char *format, ...);
/* A call of verbs or rdma_cm failed with errno. */
int fail_call(struct failure *f, const char *call, int err);
/* A work request completed in error. */
int fail_wc(struct failure *f, const char *what, enum ibv_wc_status status);

#endif
