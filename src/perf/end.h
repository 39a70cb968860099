/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs objects of one end of a measurement: queue pairs, completion queues, registered memory. */
#ifndef ROCI_PERF_END_H
#define ROCI_PERF_END_H

#include <infiniband/verbs.h>

#include "perf/perf.h"
#include "perf/talk.h"
#include "tour/endpoint.h"

#define END_BATCH     32u /* work requests that are posted with one call, completions that are polled with one */
#define END_MIN_DEPTH 64u /* a queue has at least so many places */

struct perf_qp {
	struct endpoint endpoint; /* only its QP is in use */
	uint32_t psn;
	uint8_t *own, *window; /* what it sends or fetches; what the other end touches */
	uint64_t remote_addr;
	uint32_t remote_rkey;
	unsigned under_way; /* work requests whose completion is to come */
	unsigned to_post;   /* receives that were used up */
	/* A chain of requests of which the last one is signaled, and a single request for latency. */
	struct ibv_send_wr sends[END_BATCH], single;
	struct ibv_recv_wr receives[END_BATCH];
	struct ibv_sge send_sge, receive_sge;
};

struct perf_end {
	struct perf_plan plan;
	struct tour_port port; /* its context belongs to this end */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL: it polls. Its descriptor does not block */
	struct ibv_cq *cqs[PERF_MAX_QPS];
	unsigned cq_events[PERF_MAX_QPS]; /* not acknowledged */
	struct region memory;
	struct perf_qp *qps;
	uint32_t inline_max; /* bytes that the QPs take inline */
	unsigned rd_atomic;  /* READs and atomics of a QP under way */
	unsigned depth;      /* of a send queue: with room for what was posted without a signal */
	unsigned receives;   /* of a receive queue; 0: the operation needs none */
	unsigned batch;      /* requests in a chain */
	unsigned receive_batch;
	uint32_t size; /* of messages now */

	uint64_t done;     /* requests that have completed since perf_end_begin() */
	uint64_t received; /* receives likewise */
};

/* Opens the device that has the address (or `device`), and makes everything. What the plan asks for is checked against
 * what the device announces. Call perf_end_close() after a failure, too. 0 or negative, with *f. */
int perf_end_open(struct perf_end *e, const struct perf_plan *plan, const char *device, const struct sockaddr *address,
		  struct failure *f);
void perf_end_close(struct perf_end *e);

/* Where QP number `i` is, for the other end. */
void perf_end_describe(const struct perf_end *e, unsigned i, struct talk_qp *q);

/* Connects QP number `i`, and posts its receives. `peer` has GID, LID and MTU of the other end; `rd_atomic` is how many
 * READs and atomics that one takes at once. */
int perf_end_connect(struct perf_end *e, unsigned i, const struct talk_qp *q, struct endpoint_peer peer,
		     unsigned rd_atomic, struct failure *f);

/* Prepares for messages of `size` bytes, and forgets what was counted. */
void perf_end_begin(struct perf_end *e, uint32_t size);

/* Posts a chain of `batch` requests on a QP, which must have room. */
int perf_end_post(struct perf_end *e, struct perf_qp *q, struct failure *f);
/* Posts one request. `count` 0: it is not signaled. Else its completion stands for the `count` last ones, END_BATCH at
 * most. */
int perf_end_post_single(struct perf_end *e, struct perf_qp *q, unsigned count, struct failure *f);

/* Takes what has completed, and posts used receives again. Returns how many completions, or negative with *f. */
int perf_end_poll(struct perf_end *e, struct failure *f);

/* Asks for events of all CQs. Poll once more, then wait for `channel`. */
int perf_end_arm(struct perf_end *e, struct failure *f);
/* Takes events from the channel. */
void perf_end_take_events(struct perf_end *e);

#endif
