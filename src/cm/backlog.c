/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/backlog.h"

#include "cm/internal.h"

static struct roci_exchange *first(const struct roci_listener *listener)
{
	return roci_container_of(listener->waiting.next, struct roci_exchange, queued);
}

static bool full(const struct roci_listener *listener)
{
	return listener->unfetched_count >= listener->params.backlog;
}

static bool may_report(const struct roci_listener *listener, uint64_t now)
{
	return !full(listener) && (!listener->unanswered || now >= listener->pace_until);
}

enum roci_backlog roci_backlog_admit(const struct roci_listener *listener, uint64_t now)
{
	if (may_report(listener, now) && roci_list_empty(&listener->waiting))
		return ROCI_BACKLOG_REPORT;
	if (listener->cm->waiting_count < listener->cm->config.max_waiting)
		return ROCI_BACKLOG_WAIT;
	listener->cm->stats.backlog_rejects++;
	return ROCI_BACKLOG_FULL;
}

static uint64_t pace(struct roci_listener *listener)
{
	const struct roci_cm *cm = listener->cm;
	unsigned halvings;

	if (listener->answers != cm->answered_requests) {
		listener->answers = cm->answered_requests;
		listener->reported_since_answer = 0;
	}
	listener->reported_since_answer++;
	halvings =
		listener->reported_since_answer > ROCI_PACE_FULL ? listener->reported_since_answer - ROCI_PACE_FULL : 0;
	return halvings < 64 ? cm->config.pace_ns >> halvings : 0;
}

void roci_backlog_reported(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	x->listener = listener;
	x->waiting = false;
	listener->unfetched_count++;
	roci_list_append(&listener->unfetched, &x->queued);
	if (listener->unanswered)
		listener->unanswered->pacing = NULL;
	x->pacing = listener;
	listener->unanswered = x;
	listener->pace_until = now + pace(listener);
}

/* The first that waits has the timer of the pace as well. */
static void set_timer(struct roci_exchange *x)
{
	const struct roci_listener *listener = x->listener;
	uint64_t at = x->reject_at;

	if (x == first(listener) && listener->unanswered && !full(listener) && listener->pace_until < at)
		at = listener->pace_until;
	roci_exchange_set_timer(x, at);
}

void roci_backlog_wait(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	x->listener = listener;
	x->waiting = true;
	x->reject_at = now + listener->cm->config.backlog_wait_ns;
	listener->cm->waiting_count++;
	listener->cm->stats.backlog_waits++;
	roci_list_append(&listener->waiting, &x->queued);
	set_timer(x);
}

/* Whoever waits longest moves up, while there is room. */
static void report_waiting(struct roci_listener *listener, uint64_t now)
{
	while (may_report(listener, now) && !roci_list_empty(&listener->waiting)) {
		struct roci_exchange *x = first(listener);

		roci_list_remove(&x->queued);
		listener->cm->waiting_count--;
		roci_backlog_reported(listener, x, now);
		if (x->kind == ROCI_EXCHANGE_CONN)
			roci_conn_report_req(roci_conn_of(x));
		else
			roci_sidr_report_req(roci_sidr_of(x));
	}
	if (!roci_list_empty(&listener->waiting))
		set_timer(first(listener));
}

void roci_backlog_fetched(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->listener;

	if (!listener)
		return;
	roci_list_remove(&x->queued);
	x->listener = NULL;
	if (x->waiting) {
		x->waiting = false;
		listener->cm->waiting_count--;
	} else {
		listener->unfetched_count--;
	}
	report_waiting(listener, now);
}

void roci_backlog_withdrawn(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->pacing;

	if (!listener)
		return;
	x->pacing = NULL;
	listener->unanswered = NULL;
	report_waiting(listener, now);
}

void roci_backlog_answered(struct roci_exchange *x, uint64_t now)
{
	roci_backlog_fetched(x, now);
	roci_backlog_withdrawn(x, now);
}

bool roci_backlog_timeout(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->listener;

	report_waiting(listener, now);
	if (!x->waiting)
		return false;
	if (now >= x->reject_at) {
		if (full(listener)) {
			listener->cm->stats.backlog_rejects++;
			return true;
		}
		x->reject_at = now + listener->cm->config.backlog_wait_ns;
	}
	set_timer(x);
	return false;
}

void roci_backlog_stop_pacing(struct roci_listener *listener)
{
	if (listener->unanswered)
		listener->unanswered->pacing = NULL;
	listener->unanswered = NULL;
}

void roci_listener_set_backlog(struct roci_listener *listener, uint64_t now, unsigned backlog)
{
	listener->params.backlog = backlog ? backlog : ROCI_BACKLOG_DEFAULT;
	report_waiting(listener, now);
}
