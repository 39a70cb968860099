/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/backlog.h"

#include "cm/listener.h"
#include "cm/manager.h"

void roci_backlog_init(struct roci_backlog *backlog)
{
	roci_list_init(&backlog->unfetched);
	roci_list_init(&backlog->waiting);
}

static struct roci_exchange *first_waiting(const struct roci_listener *listener)
{
	return roci_container_of(listener->backlog.waiting.next, struct roci_exchange, backlog.node);
}

static bool full(const struct roci_listener *listener)
{
	return listener->backlog.unfetched_count >= listener->params.backlog;
}

static bool may_report(const struct roci_listener *listener, uint64_t now)
{
	const struct roci_backlog *backlog = &listener->backlog;

	return !full(listener) &&
	       (!backlog->unanswered || now >= backlog->pace_until || backlog->in_turn >= ROCI_PACE_IN_TURN);
}

enum roci_backlog_verdict roci_backlog_admit(struct roci_listener *listener, uint64_t now)
{
	struct roci_cm *cm = listener->cm;

	if (may_report(listener, now) && roci_list_empty(&listener->backlog.waiting))
		return ROCI_BACKLOG_REPORT;
	if (cm->waiting_count < cm->config.max_waiting)
		return ROCI_BACKLOG_WAIT;
	cm->stats.backlog_rejects++;
	return ROCI_BACKLOG_FULL;
}

/* How long the next request waits for an answer to the one that is being reported. */
static uint64_t next_pace(struct roci_listener *listener)
{
	struct roci_backlog *backlog = &listener->backlog;
	const struct roci_cm *cm = listener->cm;
	unsigned halvings = 0;

	if (backlog->answered_requests != cm->answered_requests) {
		backlog->answered_requests = cm->answered_requests;
		backlog->reported_since_answer = 0;
	}
	if (++backlog->reported_since_answer > ROCI_PACE_FULL)
		halvings = backlog->reported_since_answer - ROCI_PACE_FULL;
	return halvings < 64 ? cm->config.pace_ns >> halvings : 0;
}

static void report(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	struct roci_backlog *backlog = &listener->backlog;

	x->backlog.listener = listener;
	x->backlog.waiting = false;
	backlog->unfetched_count++;
	roci_list_append(&backlog->unfetched, &x->backlog.node);
	if (backlog->unanswered)
		backlog->unanswered->backlog.pacing = NULL;
	x->backlog.pacing = listener;
	backlog->unanswered = x;
	backlog->pace_until = now + next_pace(listener);
	x->ops->report_req(x);
}

/* The timer of the first that waits also serves the pace. */
static void set_timer(struct roci_exchange *x)
{
	const struct roci_listener *listener = x->backlog.listener;
	const struct roci_backlog *backlog = &listener->backlog;
	uint64_t at = x->backlog.reject_at;

	if (x == first_waiting(listener) && backlog->unanswered && !full(listener) && backlog->pace_until < at)
		at = backlog->pace_until;
	roci_exchange_set_timer(x, at);
}

static void wait(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	struct roci_cm *cm = listener->cm;

	x->backlog.listener = listener;
	x->backlog.waiting = true;
	x->backlog.reject_at = now + cm->config.backlog_wait_ns;
	cm->waiting_count++;
	cm->stats.backlog_waits++;
	roci_list_append(&listener->backlog.waiting, &x->backlog.node);
	set_timer(x);
}

void roci_backlog_enter(struct roci_listener *listener, struct roci_exchange *x, enum roci_backlog_verdict verdict,
			uint64_t now)
{
	if (verdict == ROCI_BACKLOG_REPORT)
		report(listener, x, now);
	else
		wait(listener, x, now);
}

/* Oldest first, while there is room. */
static void report_waiting(struct roci_listener *listener, uint64_t now)
{
	while (may_report(listener, now) && !roci_list_empty(&listener->backlog.waiting)) {
		struct roci_exchange *x = first_waiting(listener);

		roci_list_remove(&x->backlog.node);
		listener->cm->waiting_count--;
		report(listener, x, now);
	}
	if (!roci_list_empty(&listener->backlog.waiting))
		set_timer(first_waiting(listener));
}

void roci_backlog_fetches(const struct roci_exchange *x, bool in_turn)
{
	struct roci_backlog *backlog = x->backlog.listener ? &x->backlog.listener->backlog : NULL;

	if (!backlog)
		return;
	if (!in_turn)
		backlog->in_turn = 0;
	else if (backlog->in_turn < ROCI_PACE_IN_TURN)
		backlog->in_turn++;
}

void roci_backlog_fetched(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->backlog.listener;

	if (!listener)
		return;
	roci_list_remove(&x->backlog.node);
	x->backlog.listener = NULL;
	if (x->backlog.waiting) {
		x->backlog.waiting = false;
		listener->cm->waiting_count--;
	} else {
		listener->backlog.unfetched_count--;
	}
	report_waiting(listener, now);
}

void roci_backlog_withdrawn(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->backlog.pacing;

	if (!listener)
		return;
	roci_backlog_stop_pacing(listener);
	report_waiting(listener, now);
}

void roci_backlog_answered(struct roci_exchange *x, uint64_t now)
{
	roci_backlog_fetched(x, now);
	roci_backlog_withdrawn(x, now);
}

bool roci_backlog_timeout(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->backlog.listener;
	struct roci_cm *cm = listener->cm;

	report_waiting(listener, now);
	if (!x->backlog.waiting)
		return false;
	if (now >= x->backlog.reject_at) {
		if (full(listener)) {
			cm->stats.backlog_rejects++;
			return true;
		}
		x->backlog.reject_at = now + cm->config.backlog_wait_ns; /* it waits for the pace only */
	}
	set_timer(x);
	return false;
}

void roci_backlog_stop_pacing(struct roci_listener *listener)
{
	if (listener->backlog.unanswered)
		listener->backlog.unanswered->backlog.pacing = NULL;
	listener->backlog.unanswered = NULL;
}
