/* SPDX-License-Identifier: BSD-2-Clause */
/* Bandwidth: keeps the send queues full. Posts and polls in batches, and reads the clock once in several rounds. */
#include <errno.h>

#include "perf/run_loops.h"
#include "tour/clock.h"

#define ROUNDS       16u  /* of polling between two looks at the clock */
#define IDLE_ROUNDS  256u /* of the far end, between two looks at the connection */
#define LOOK_NS      UINT64_C(20000000)
#define SLEEP_NS     50000000
#define RATE_STEP_NS UINT64_C(1000000) /* how long to sleep at most where a rate is given */

struct stream {
	const struct run *run;
	uint64_t posted;
	uint64_t allowed; /* messages that the rate allows until now */
};

/* Posts chains until the queues are full, one on each QP in turn. */
static int fill(struct stream *s, struct failure *f)
{
	struct perf_end *e = s->run->end;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned i = 0; i < e->plan.qps && s->posted + e->batch <= s->allowed; i++) {
			struct perf_qp *q = &e->qps[i];
			int err;
			if (q->under_way + e->batch > e->plan.depth)
				continue;
			err = perf_end_post(e, q, f);
			if (err)
				return err;
			s->posted += e->batch;
			more = true;
		}
	}
	return 0;
}

/* One round: takes completions, and posts. Returns how many completions, or negative. */
static int turn(struct stream *s, struct failure *f)
{
	bool held_back = s->allowed != UINT64_MAX;
	int err = fill(s, f), got = err ? err : run_poll(s->run, held_back ? (int64_t)RATE_STEP_NS : SLEEP_NS, f);

	return got;
}

static uint64_t allowance(const struct run *run, uint64_t elapsed_ns)
{
	if (!run->order.rate)
		return UINT64_MAX;
	return (uint64_t)((double)run->order.rate * (double)elapsed_ns / 1e9 / run->order.size) + run->end->batch;
}

/* With a rate, single requests: a chain would be a burst. */
static void begin(struct stream *s, const struct run *run)
{
	*s = (struct stream){.run = run, .allowed = allowance(run, 0)};
	if (!run->order.rate)
		return;
	run->end->batch = 1;
	for (unsigned i = 0; i < run->end->plan.qps; i++) {
		struct perf_qp *q = &run->end->qps[i];
		q->sends[0] = q->single;
		q->sends[0].send_flags |= IBV_SEND_SIGNALED;
	}
}

int stream_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f)
{
	struct stream s;
	struct run_clock c;
	uint64_t now, look_ns;
	unsigned rounds = 0;
	int err = run_clock_start(&c, run, r);

	if (err)
		return fail_call(f, "hdr_init", ENOMEM);
	begin(&s, run);
	now = c.began_ns;
	look_ns = now + LOOK_NS;
	for (;;) {
		int got = turn(&s, f);
		if (got < 0) {
			err = got;
			break;
		}
		if (got && ++rounds % ROUNDS && !run->order.rate)
			continue;
		now = tour_now_ns();
		s.allowed = allowance(run, now - c.began_ns);
		if (!run_clock_tick(&c, run, r, run->end->done, now))
			break;
		if (now < look_ns)
			continue;
		look_ns = now + LOOK_NS;
		err = control_has(run->control, 1, f);
		if (err) { /* it says nothing before it is asked, unless it cannot go on */
			err = err > 0 ? fail(f, -ECONNRESET, "%s has given up", run->control->address) : err;
			break;
		}
	}
	run_clock_end(&c, r, run->end->done, now);
	*sent = s.posted;
	return err;
}

/* Follows until STOP comes. With nothing to do for its program, sleeps. */
static int follow(struct stream *s, bool idle, struct talk_report *report, uint64_t *near_sent, struct failure *f)
{
	uint64_t began_ns = tour_now_ns(), counts_ns = began_ns + s->run->order.time_ms * UINT64_C(100000), base = 0;
	unsigned rounds = 0;

	for (;;) {
		int got = 0, stop;
		if (idle)
			control_wait(s->run->control, -1, SLEEP_NS);
		else
			got = turn(s, f);
		if (got < 0)
			return got;
		if (!idle && !s->run->end->channel && ++rounds % (got ? ROUNDS : IDLE_ROUNDS) && !s->run->order.rate)
			continue;
		uint64_t now = tour_now_ns();
		if (!report->measured_ns && now >= counts_ns) {
			report->measured_ns = 1;
			counts_ns = now;
			base = s->run->end->done;
		}
		if (!idle && s->run->end->plan.bidir)
			s->allowed = allowance(s->run, now - began_ns);
		stop = control_stopped(s->run->control) ? fail(f, -EINTR, "interrupted") : 0;
		if (!stop)
			stop = run_stop_came(s->run, near_sent, f);
		if (!stop)
			continue;
		report->measured = s->run->end->done - base;
		report->measured_ns = report->measured_ns ? now - counts_ns : 0;
		return stop < 0 ? stop : 0;
	}
}

int stream_far(const struct run *run, struct talk_report *report, struct failure *f)
{
	const struct perf_plan *p = &run->end->plan;
	struct stream s;
	uint64_t near_sent;
	int err;

	begin(&s, run);
	s.allowed = p->bidir ? s.allowed : 0;
	err = follow(&s, !p->bidir && !perf_receives(p->op), report, &near_sent, f);
	if (!err)
		err = run_drain(run, perf_receives(p->op) ? near_sent : 0, f);
	report->sent = s.posted;
	report->received = run->end->received;
	return err;
}
