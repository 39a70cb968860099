/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loops of run.h have in common: the clock of a phase, and how to wait. */
#ifndef ROCI_PERF_RUN_LOOPS_H
#define ROCI_PERF_RUN_LOOPS_H

#include "perf/run.h"

/* The near end's clock of a phase. */
struct run_clock {
	uint64_t began_ns, counts_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t interval_ns, next_interval_ns, next_progress_ns;
	uint64_t base, last; /* messages before what counts, and at the last interval */
	struct hdr interval; /* of latency */
	bool counts;
};

int run_clock_start(struct run_clock *c, const struct run *run, struct run_result *r);
void run_clock_end(struct run_clock *c, struct run_result *r, uint64_t messages, uint64_t now);
/* Keeps the books at `now`, when so many messages are done. False: the phase is over. */
bool run_clock_tick(struct run_clock *c, const struct run *run, struct run_result *r, uint64_t messages, uint64_t now);

/* A sample of latency. */
static inline void run_clock_sample(struct run_clock *c, uint64_t ns)
{
	if (c->counts)
		hdr_add(&c->interval, ns);
}

/* Polls. Where the end sleeps on a channel and nothing has come, waits for an event, the other end or `timeout_ns`.
 * Returns how many completions, or negative. */
int run_poll(const struct run *run, int64_t timeout_ns, struct failure *f);

/* Takes STOP, if it has come: 1; 0: it has not; negative. */
int run_stop_came(const struct run *run, uint64_t *near_sent, struct failure *f);
/* Goes on until all that was posted has completed, and `receives` have been used up. */
int run_drain(const struct run *run, uint64_t receives, struct failure *f);

int stream_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f);
int stream_far(const struct run *run, struct talk_report *report, struct failure *f);
int ping_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f);
int ping_far(const struct run *run, struct talk_report *report, struct failure *f);
int tcp_stream_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f);
int tcp_stream_far(const struct run *run, struct talk_report *report, struct failure *f);
int tcp_ping_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f);
int tcp_ping_far(const struct run *run, struct talk_report *report, struct failure *f);

#endif
