/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same through TCP, for comparison: through the connection that both ends have already, one send() a message. The
 * first byte of a message says whether it is the last one of its direction. The near end sends its last one when the
 * time is over; the far end answers it with its own; then the near end says STOP. So neither reads beyond the messages.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "perf/run_loops.h"
#include "tour/clock.h"

#define BUFFER_BYTES  (256u << 10)
#define REQUEST_BYTES 16u /* what asks for a message where the operation fetches */
#define SLEEP_MS      50
#define DRAIN_NS      UINT64_C(15000000000)

enum { LAST, MORE };

struct flow {
	const struct run *run;
	uint32_t out_size, in_size; /* of messages */
	uint8_t *out, *in;
	uint32_t out_at, in_at; /* bytes of the message that are sent, that have come */
	uint64_t sent, received;
	uint64_t limit; /* so many messages may be sent, */
	bool ends;      /* and then the last one */
	bool ended, got_last;
};

static int flow_begin(struct flow *w, const struct run *run, uint32_t out_size, uint32_t in_size, bool at_once,
		      struct failure *f)
{
	int no_delay = at_once;

	*w = (struct flow){.run = run, .out_size = out_size, .in_size = in_size};
	setsockopt(run->control->fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
	w->out = calloc(1, w->out_size);
	w->in = malloc(BUFFER_BYTES);
	return w->out && w->in ? 0 : fail_call(f, "malloc", ENOMEM);
}

static void flow_end(struct flow *w)
{
	int no_delay = 1;

	setsockopt(w->run->control->fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
	free(w->out);
	free(w->in);
}

static int gone(const struct flow *w, struct failure *f)
{
	return fail(f, -ECONNRESET, "%s has closed the connection", w->run->control->address);
}

/* Sends a part of a message. Returns whether it could, or negative. */
static int push(struct flow *w, struct failure *f)
{
	ssize_t n;

	if (w->ended || (!w->out_at && w->sent >= w->limit && !w->ends))
		return 0;
	if (!w->out_at)
		w->out[0] = w->ends ? LAST : MORE;
	n = send(w->run->control->fd, w->out + w->out_at, w->out_size - w->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : gone(w, f);
	w->out_at += (uint32_t)n;
	if (w->out_at == w->out_size) {
		w->out_at = 0;
		w->ended = w->out[0] == LAST;
		w->sent++;
	}
	return 1;
}

/* Whether the whole of the other end's last message has come. The far end answers it only then: what follows that
 * answer is no message. */
static bool heard_all(const struct flow *w)
{
	return w->got_last && !w->in_at;
}

/* Finds the messages in what came. */
static void count(struct flow *w, const uint8_t *bytes, size_t len)
{
	while (len) {
		size_t part = w->in_size - w->in_at;
		if (!w->in_at && bytes[0] == LAST)
			w->got_last = true;
		part = part < len ? part : len;
		bytes += part;
		len -= part;
		w->in_at += (uint32_t)part;
		if (w->in_at == w->in_size) {
			w->in_at = 0;
			w->received++;
		}
	}
}

/* Takes what has come. Returns whether anything has, or negative. */
static int pull(struct flow *w, struct failure *f)
{
	ssize_t n;

	if (heard_all(w))
		return 0;
	n = recv(w->run->control->fd, w->in, BUFFER_BYTES, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : gone(w, f);
	if (!n)
		return gone(w, f);
	count(w, w->in, (size_t)n);
	return 1;
}

static void sleep_until_ready(const struct flow *w)
{
	bool out = !w->ended && (w->out_at || w->sent < w->limit || w->ends);
	struct pollfd fd = {.fd = w->run->control->fd, .events = (short)(POLLIN | (out ? POLLOUT : 0))};

	poll(&fd, 1, SLEEP_MS);
}

/* Sends and receives what can be. `sleeps`: waits if nothing can. Returns whether anything moved, or negative. */
static int turn(struct flow *w, bool sleeps, struct failure *f)
{
	int pushed = push(w, f), pulled = pushed < 0 ? pushed : pull(w, f);

	if (pushed < 0 || pulled < 0)
		return -ECONNRESET;
	if (!pushed && !pulled && sleeps)
		sleep_until_ready(w);
	return pushed || pulled;
}

/* Sends the last message if that has not happened, and waits for that of the other end. */
static int finish(struct flow *w, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + DRAIN_NS;

	w->ends = true;
	while (!w->ended || !heard_all(w)) {
		if (turn(w, true, f) < 0)
			return -ECONNRESET;
		if (tour_now_ns() > deadline_ns)
			return fail(f, -ETIMEDOUT, "%s does not take what is sent through TCP",
				    w->run->control->address);
	}
	return 0;
}

/* ---- bandwidth ---- */

static int begin_stream(struct flow *w, const struct run *run, bool near, struct failure *f)
{
	const struct perf_plan *p = &run->end->plan;
	int err = flow_begin(w, run, run->order.size, run->order.size, false, f);

	w->limit = p->bidir || perf_fetches(p->op) != near ? UINT64_MAX : 0;
	return err;
}

int tcp_stream_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f)
{
	bool fetches = perf_fetches(run->end->plan.op), bidir = run->end->plan.bidir;
	struct flow w;
	struct run_clock c;
	uint64_t now = 0, done = 0;
	int err = begin_stream(&w, run, true, f);

	run_clock_start(&c, run, r); /* of bandwidth it cannot fail */
	while (!err) {
		int moved = turn(&w, true, f);
		if (moved < 0) {
			err = moved;
			break;
		}
		now = tour_now_ns();
		done = bidir ? w.sent + w.received : fetches ? w.received : w.sent;
		if (!run_clock_tick(&c, run, r, done, now))
			break;
	}
	run_clock_end(&c, r, done, now);
	if (!err)
		err = finish(&w, f);
	*sent = w.sent + w.received;
	flow_end(&w);
	return err;
}

/* Answers until the last message comes. */
static int serve(struct flow *w, struct talk_report *report, struct failure *f)
{
	int err = 0;

	while (!err && !heard_all(w)) {
		err = turn(w, true, f) < 0 ? -ECONNRESET : 0;
		if (!err && control_stopped(w->run->control))
			err = fail(f, -EINTR, "interrupted");
	}
	if (!err)
		err = finish(w, f);
	report->received = w->received;
	return err;
}

/* Until STOP has come. */
static int await_stop(const struct run *run, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + DRAIN_NS, near_sent;

	for (;;) {
		int came = run_stop_came(run, &near_sent, f);
		if (came)
			return came < 0 ? came : 0;
		if (tour_now_ns() > deadline_ns || control_stopped(run->control))
			return fail(f, -ETIMEDOUT, "%s did not end its measurement", run->control->address);
		control_wait(run->control, -1, SLEEP_MS * INT64_C(1000000));
	}
}

int tcp_stream_far(const struct run *run, struct talk_report *report, struct failure *f)
{
	struct flow w;
	int err = begin_stream(&w, run, false, f);

	if (!err)
		err = serve(&w, report, f);
	flow_end(&w);
	return err ? err : await_stop(run, f);
}

/* ---- latency: each end sleeps until the other one's message comes, as most programs do ---- */

static int begin_ping(struct flow *w, const struct run *run, bool near, struct failure *f)
{
	uint32_t size = run->order.size, request = perf_fetches(run->end->plan.op) ? REQUEST_BYTES : size;

	return flow_begin(w, run, near ? request : size, near ? size : request, true, f);
}

/* Goes on until `messages` have come: 1; 0: the clock says that the time is over. */
static int await(struct flow *w, uint64_t messages, struct run_clock *c, struct run_result *r, struct failure *f)
{
	while (w->received < messages) {
		if (turn(w, true, f) < 0)
			return -ECONNRESET;
		if (w->received < messages && !run_clock_tick(c, w->run, r, w->received, tour_now_ns()))
			return 0;
	}
	return 1;
}

int tcp_ping_near(const struct run *run, struct run_result *r, uint64_t *sent, struct failure *f)
{
	bool half = perf_ping_pong(run->end->plan.op, run->end->plan.events);
	struct flow w;
	struct run_clock c;
	uint64_t now = 0;
	int err = begin_ping(&w, run, true, f), got = 1;

	if (run_clock_start(&c, run, r) && !err)
		err = fail_call(f, "hdr_init", ENOMEM);
	while (!err && got > 0) {
		uint64_t before = tour_now_ns();
		w.limit++;
		got = await(&w, w.limit, &c, r, f);
		now = tour_now_ns();
		if (got > 0)
			run_clock_sample(&c, half ? (now - before) / 2 : now - before);
		if (got > 0 && !run_clock_tick(&c, run, r, w.received, now))
			break;
		err = got < 0 ? got : 0;
	}
	run_clock_end(&c, r, w.received, now);
	if (!err)
		err = finish(&w, f);
	*sent = w.sent;
	flow_end(&w);
	return err;
}

int tcp_ping_far(const struct run *run, struct talk_report *report, struct failure *f)
{
	struct flow w;
	int err = begin_ping(&w, run, false, f);

	while (!err && !heard_all(&w)) {
		err = turn(&w, true, f) < 0 ? -ECONNRESET : 0;
		w.limit = w.received - heard_all(&w);
		if (!err && control_stopped(run->control))
			err = fail(f, -EINTR, "interrupted");
	}
	if (!err)
		err = finish(&w, f);
	report->received = w.received;
	flow_end(&w);
	return err ? err : await_stop(run, f);
}
