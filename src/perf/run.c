/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/run.h"

#include <errno.h>
#include <stdlib.h>

#include "perf/hdr_text.h"
#include "perf/run_loops.h"
#include "tour/clock.h"
#include "tour/stop.h"

#define PROGRESS_NS  UINT64_C(100000000)
#define DRAIN_NS     UINT64_C(15000000000)
#define LATE_NS      UINT64_C(10000000000) /* how long to wait for the first message that counts */
#define LATENCY_STEP 2u /* an interval of latency is that many of bandwidth's: its histogram takes time to write */

void run_result_destroy(struct run_result *r)
{
	for (unsigned i = 0; i < r->interval_count; i++)
		free(r->intervals[i].histogram);
	hdr_destroy(&r->latency);
	*r = (struct run_result){0};
}

static bool of_latency(const struct perf_order *o)
{
	return o->phase == PERF_LATENCY || o->phase == PERF_TCP_LATENCY;
}

/* ---- the clock ---- */

int run_clock_start(struct run_clock *c, const struct run *run, struct run_result *r)
{
	uint64_t length_ns = (uint64_t)run->order.time_ms * 1000000u;

	*c = (struct run_clock){.began_ns = tour_now_ns()};
	c->counts_ns = c->began_ns + length_ns / RUN_WARM_UP;
	c->end_ns = c->counts_ns + length_ns;
	c->interval_ns = length_ns / RUN_INTERVALS * (of_latency(&run->order) ? LATENCY_STEP : 1) + 1;
	c->next_progress_ns = c->began_ns + PROGRESS_NS;
	if (!of_latency(&run->order))
		return 0;
	if (hdr_init(&c->interval, 1, RUN_HIGHEST_NS, 3) || hdr_init(&r->latency, 1, RUN_HIGHEST_NS, 3))
		return -ENOMEM;
	return 0;
}

static void end_interval(struct run_clock *c, struct run_result *r, uint64_t messages, uint64_t now)
{
	struct run_interval *i = &r->intervals[r->interval_count];

	if (messages == c->last || r->interval_count > RUN_INTERVALS)
		return;
	*i = (struct run_interval){.end_ns = now - c->counts_ns, .messages = messages - c->last};
	r->interval_count++;
	c->last = messages;
	if (!c->interval.counts)
		return;
	i->p50_ns = hdr_percentile(&c->interval, 50);
	i->p99_ns = hdr_percentile(&c->interval, 99);
	i->max_ns = c->interval.max;
	i->histogram = hdr_encode(&c->interval);
	hdr_merge(&r->latency, &c->interval);
	hdr_reset(&c->interval);
}

static void set_result(const struct run_clock *c, struct run_result *r, uint64_t messages, uint64_t now)
{
	if (!c->counts)
		return;
	r->messages = messages - c->base;
	r->ns = now - c->counts_ns;
}

bool run_clock_tick(struct run_clock *c, const struct run *run, struct run_result *r, uint64_t messages, uint64_t now)
{
	if (!c->counts && now >= c->counts_ns) {
		c->counts = true;
		c->base = c->last = messages;
		c->counts_ns = now;
		c->next_interval_ns = now + c->interval_ns;
		r->began_ms = tour_wall_ns() / 1000000u;
	}
	if (c->counts && now >= c->next_interval_ns) {
		end_interval(c, r, messages, now);
		c->next_interval_ns = now + c->interval_ns; /* a late one is not followed by short ones */
	}
	if (run->progress && now >= c->next_progress_ns) {
		set_result(c, r, messages, now);
		run->progress(run->context, r, now - c->began_ns);
		c->next_progress_ns = now + PROGRESS_NS;
	}
	r->interrupted = tour_stopped();
	if (c->counts && messages == c->base && now < c->end_ns + LATE_NS) /* a slow machine: there is no figure yet */
		return !r->interrupted;
	return now < c->end_ns && !r->interrupted;
}

void run_clock_end(struct run_clock *c, struct run_result *r, uint64_t messages, uint64_t now)
{
	set_result(c, r, messages, now);
	if (c->counts)
		end_interval(c, r, messages, now);
	if (c->interval.counts)
		hdr_destroy(&c->interval);
}

/* ---- waiting ---- */

int run_poll(const struct run *run, int64_t timeout_ns, struct failure *f)
{
	struct perf_end *e = run->end;
	int got = perf_end_poll(e, f);

	if (got || !e->channel)
		return got;
	got = perf_end_arm(e, f);
	if (!got)
		got = perf_end_poll(e, f);
	if (got)
		return got;
	control_wait(run->control, e->channel->fd, timeout_ns);
	perf_end_take_events(e);
	return perf_end_poll(e, f);
}

static bool under_way(const struct perf_end *e)
{
	for (unsigned i = 0; i < e->plan.qps; i++) {
		if (e->qps[i].under_way)
			return true;
	}
	return false;
}

int run_drain(const struct run *run, uint64_t receives, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + DRAIN_NS;

	while (under_way(run->end) || run->end->received < receives) {
		int got = run_poll(run, 1000000, f);
		if (got < 0)
			return got;
		if (tour_now_ns() > deadline_ns)
			return fail(f, -ETIMEDOUT, "what was posted has not completed within %u s",
				    (unsigned)(DRAIN_NS / 1000000000u));
	}
	return 0;
}

/* ---- both ends: what surrounds the loops ---- */

static int read_report(const struct run *run, struct talk_report *report, struct failure *f)
{
	uint8_t bytes[TALK_REPORT_BYTES];
	int err = control_read(run->control, bytes, sizeof(bytes), CONTROL_TIMEOUT_MS, f);

	if (err)
		return err;
	if (talk_get_report(bytes, report))
		return fail(f, -EPROTO, "%s sent no report that can be read", run->control->address);
	return *report->text ? fail(f, -EREMOTEIO, "%s: %s", run->control->address, report->text) : 0;
}

/* The far end's report may come while this end still has completions to take: a QP with full queues cannot finish. */
static int await_report(const struct run *run, struct talk_report *report, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + DRAIN_NS;

	for (;;) {
		int has = control_has(run->control, TALK_REPORT_BYTES, f);
		int got = has ? 0 : run_poll(run, 1000000, f);
		if (has < 0 || got < 0)
			return -EIO;
		if (has || tour_now_ns() > deadline_ns)
			return read_report(run, report, f);
	}
}

/* Sends STOP, goes on until all is done at both ends, and takes the far end's report. */
static int finish_near(const struct run *run, uint64_t sent, struct run_result *r, struct failure *f)
{
	uint8_t bytes[TALK_STOP_BYTES];
	struct talk_report report;
	int err;

	talk_put_stop(bytes, sent);
	err = control_write(run->control, bytes, sizeof(bytes), f);
	if (!err)
		err = await_report(run, &report, f);
	if (!err)
		err = run_drain(
			run, perf_receives(run->end->plan.op) && run->order.phase == PERF_BANDWIDTH ? report.sent : 0,
			f);
	if (err)
		return err;
	r->far = report.facts;
	r->far_messages = report.measured;
	r->far_ns = report.measured_ns;
	r->all_messages = sent + report.sent;
	return 0;
}

int run_stop_came(const struct run *run, uint64_t *near_sent, struct failure *f)
{
	uint8_t bytes[TALK_STOP_BYTES];
	int has = control_has(run->control, sizeof(bytes), f), err;

	if (has <= 0)
		return has;
	err = control_read(run->control, bytes, sizeof(bytes), CONTROL_TIMEOUT_MS, f);
	if (err)
		return err;
	return talk_get_stop(bytes, near_sent)
		       ? fail(f, -EPROTO, "%s sent something else than a stop", run->control->address)
		       : 1;
}

int run_near(struct run *run, struct run_result *r, struct failure *f)
{
	static int (*const loops[])(const struct run *, struct run_result *, uint64_t *, struct failure *) = {
		[PERF_BANDWIDTH] = stream_near,
		[PERF_LATENCY] = ping_near,
		[PERF_TCP_BANDWIDTH] = tcp_stream_near,
		[PERF_TCP_LATENCY] = tcp_ping_near,
	};
	uint8_t bytes[TALK_ORDER_BYTES];
	struct talk_report ready;
	struct perf_look before, after;
	struct failure cause;
	uint64_t sent = 0;
	int err;

	*r = (struct run_result){0};
	perf_end_begin(run->end, run->order.size);
	talk_put_order(bytes, &run->order);
	run->control->heeds_stop = true;
	err = control_write(run->control, bytes, sizeof(bytes), f);
	if (!err)
		err = read_report(run, &ready, f);
	if (err)
		return err;
	run->control->heeds_stop = false; /* a phase that was begun is ended in good order */
	perf_look(&before, run->device, run->counters);
	err = loops[run->order.phase](run, r, &sent, f);
	perf_look(&after, run->device, run->counters);
	perf_facts_between(&r->near, &before, &after);
	r->near.mtu = device_mtu_bytes(run->end->port.mtu);
	if (!err)
		err = finish_near(run, sent, r, f);
	if (!err && !r->messages && !r->interrupted)
		return fail(f, -ETIMEDOUT, "no message of %u bytes completed within %u s", run->order.size,
			    (unsigned)(r->ns / 1000000000u));
	if (!err)
		return 0;
	/* what the far end says of it is a better reason than that it has gone */
	if (err == -ECONNRESET || control_has(run->control, TALK_REPORT_BYTES, &cause) > 0) {
		if (read_report(run, &ready, &cause) == -EREMOTEIO)
			*f = cause;
	}
	return err;
}

int run_far(struct run *run, struct failure *f)
{
	static int (*const loops[])(const struct run *, struct talk_report *, struct failure *) = {
		[PERF_BANDWIDTH] = stream_far,
		[PERF_LATENCY] = ping_far,
		[PERF_TCP_BANDWIDTH] = tcp_stream_far,
		[PERF_TCP_LATENCY] = tcp_ping_far,
	};
	uint8_t bytes[TALK_REPORT_BYTES];
	struct talk_report report = {.text = ""};
	struct perf_look before, after;
	int err;

	perf_end_begin(run->end, run->order.size);
	talk_put_report(bytes, &report);
	err = control_write(run->control, bytes, sizeof(bytes), f);
	if (err)
		return err;
	perf_look(&before, run->device, run->counters);
	err = loops[run->order.phase](run, &report, f);
	if (err)
		return err;
	perf_look(&after, run->device, run->counters);
	perf_facts_between(&report.facts, &before, &after);
	report.facts.mtu = device_mtu_bytes(run->end->port.mtu);
	report.facts.clients = run->others;
	talk_put_report(bytes, &report);
	return control_write(run->control, bytes, sizeof(bytes), f);
}
