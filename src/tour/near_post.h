/* SPDX-License-Identifier: BSD-2-Clause */
/* The near end's state, and how it posts its operations. */
#ifndef ROCI_TOUR_NEAR_POST_H
#define ROCI_TOUR_NEAR_POST_H

#include "tour/near.h"
#include "tour/waiter.h"

struct near {
	struct tour_plan plan;
	struct dial dial;
	struct endpoint endpoint;
	struct waiter waiter;
	struct region data; /* what is sent, in pieces; where READs and atomics put what they return */
	struct region back; /* what is READ back to verify */
	struct region controls;
	uint32_t seed;
	uint64_t heard_ns; /* when the far end's program has heard of us last, CLOCK_MONOTONIC */

	/* Of the last operation. */
	uint64_t previous, value; /* of the far end's memory, before and after an atomic operation */
	uint32_t inv_rkey;        /* what a SEND invalidates */
	bool answered;
	struct answer answer;
	off_t mark;                                                                   /* of the record */
	uint64_t posted_ns, woken_ns, completed_ns, answer_ns, operation_answered_ns; /* CLOCK_REALTIME */
};

/* Bytes of near.data: the pieces do not touch. */
uint32_t near_data_bytes(const struct tour_plan *plan);
/* Puts the content of an operation into the pieces. */
void near_fill(struct near *n, uint32_t seq);
/* Copies the pieces, one after the other. */
void near_gather(const struct near *n, uint8_t *to);

/* Posts an operation: as many requests as near_requests() says. */
int near_post(struct near *n, uint32_t seq, struct failure *f);
unsigned near_requests(const struct near *n);
int near_post_read_back(struct near *n, struct failure *f);

#endif
