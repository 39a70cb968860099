/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency: one message at a time, on the first QP. Where both ends send in turn it is half of a round trip; else the
 * time until the completion. There is one look at the clock for each message.
 */
#include <errno.h>

#include "perf/run_loops.h"
#include "tour/clock.h"

#define SIGNAL_EVERY 16u
#define LOOK_EVERY   4096u /* rounds without a message between two looks at the connection */
#define SLEEP_NS     50000000

struct ping {
	const struct run *run;
	struct perf_qp *q;
	bool by_memory; /* a WRITE is noticed by looking at its last byte */
	const uint8_t *last;
	uint64_t sent, heard;
};

static void begin(struct ping *p, const struct run *run)
{
	struct perf_qp *q = &run->end->qps[0];

	*p = (struct ping){.run = run,
			   .q = q,
			   .by_memory = run->end->plan.op == TOUR_WRITE && !run->end->plan.events,
			   .last = q->window + run->order.size - 1};
}

static int post(struct ping *p, struct failure *f)
{
	p->sent++;
	if (!perf_ping_pong(p->run->end->plan.op, p->run->end->plan.events))
		return perf_end_post_single(p->run->end, p->q, 1, f);
	p->q->own[p->run->order.size - 1] = (uint8_t)p->sent;
	return perf_end_post_single(p->run->end, p->q, p->sent % SIGNAL_EVERY ? 0 : SIGNAL_EVERY, f);
}

/* Whether the other end's message number heard + 1 has come. */
static bool came(struct ping *p)
{
	const struct perf_end *e = p->run->end;

	if (p->by_memory)
		return __atomic_load_n(p->last, __ATOMIC_ACQUIRE) == (uint8_t)(p->heard + 1);
	return (perf_ping_pong(e->plan.op, e->plan.events) ? e->received : e->done) > p->heard;
}

/* Waits for it: 1. 0: `rounds` went by; negative. */
static int wait_for(struct ping *p, unsigned rounds, struct failure *f)
{
	while (rounds--) {
		int got;
		if (came(p)) {
			p->heard++;
			return 1;
		}
		got = run_poll(p->run, SLEEP_NS, f);
		if (got < 0)
			return got;
		if (p->run->end->channel && !got && rounds > 8) /* a round was a sleep */
			rounds = 8;
	}
	return 0;
}

/* Waits for the answer. Meanwhile looks now and then whether the far end is there and whether to end. */
static int await(struct ping *p, struct run_clock *c, struct run_result *r, struct failure *f)
{
	for (;;) {
		int got = wait_for(p, LOOK_EVERY, f), has;
		if (got)
			return got;
		has = control_has(p->run->control, 1, f);
		if (has)
			return has > 0 ? fail(f, -ECONNRESET, "%s has given up", p->run->control->address) : has;
		if (!run_clock_tick(c, p->run, r, p->heard, tour_now_ns()))
			return 0;
	}
}

int ping_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f)
{
	bool half = perf_ping_pong(run->end->plan.op, run->end->plan.events);
	struct ping p;
	struct run_clock c;
	uint64_t now = 0;
	int err = run_clock_start(&c, run, r);

	if (err)
		return fail_call(f, "hdr_init", ENOMEM);
	begin(&p, run);
	uint64_t before = c.began_ns;
	for (;;) {
		int got;
		err = post(&p, f);
		got = err ? err : await(&p, &c, r, f);
		now = tour_now_ns();
		if (got <= 0) {
			err = got;
			break;
		}
		run_clock_sample(&c, half ? (now - before) / 2 : now - before);
		before = now;
		if (now < c.next_interval_ns && now < c.next_progress_ns && now < c.end_ns && !r->interrupted &&
		    c.counts)
			continue;
		if (!run_clock_tick(&c, run, r, p.heard, now))
			break;
		before = tour_now_ns(); /* keeping the books does not count */
	}
	run_clock_end(&c, r, p.heard, now);
	*sent = p.sent;
	return err;
}

int ping_far(const struct run *run, struct talk_report *report, struct failure *f)
{
	bool answers = perf_ping_pong(run->end->plan.op, run->end->plan.events);
	struct ping p;
	uint64_t near_sent;

	begin(&p, run);
	for (;;) {
		int got = 0, err;
		if (answers)
			got = wait_for(&p, LOOK_EVERY, f);
		else
			control_wait(run->control, -1, SLEEP_NS);
		err = got > 0 ? post(&p, f) : got;
		if (err < 0)
			return err;
		if (got)
			continue;
		err = control_stopped(run->control) ? fail(f, -EINTR, "interrupted") : 0;
		if (!err)
			err = run_stop_came(run, &near_sent, f);
		if (err < 0)
			return err;
		if (err)
			break;
	}
	report->sent = 0;
	report->received = p.heard;
	return run_drain(run, 0, f);
}
