/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/backlog.h"

#include "cm/internal.h"

static struct roci_exchange *first(const struct roci_listener *listener)
{
	return roci_container_of(listener->waiting.next, struct roci_exchange, queued);
}

static bool full(const struct roci_listener *listener)
{
	return listener->untaken_count >= listener->params.backlog;
}

static bool may_tell(const struct roci_listener *listener, uint64_t now)
{
	return !full(listener) && (!listener->thinking || now >= listener->pace_until);
}

enum roci_backlog roci_backlog_verdict(const struct roci_listener *listener, uint64_t now)
{
	if (may_tell(listener, now) && roci_list_empty(&listener->waiting))
		return ROCI_BACKLOG_TELL;
	if (listener->cm->waiting_count < listener->cm->config.max_waiting)
		return ROCI_BACKLOG_WAIT;
	listener->cm->stats.backlog_rejects++;
	return ROCI_BACKLOG_FULL;
}

static uint64_t pace(struct roci_listener *listener)
{
	const struct roci_cm *cm = listener->cm;
	unsigned halvings;

	if (listener->answers != cm->answers) {
		listener->answers = cm->answers;
		listener->told_since = 0;
	}
	listener->told_since++;
	halvings = listener->told_since > ROCI_PACE_FULL ? listener->told_since - ROCI_PACE_FULL : 0;
	return halvings < 64 ? cm->config.pace_ns >> halvings : 0;
}

void roci_backlog_told(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	x->listener = listener;
	x->waiting = false;
	listener->untaken_count++;
	roci_list_append(&listener->untaken, &x->queued);
	if (listener->thinking)
		listener->thinking->pacing = NULL;
	x->pacing = listener;
	listener->thinking = x;
	listener->pace_until = now + pace(listener);
}

/* The first that waits has the timer of the pace as well. */
static void set_timer(struct roci_exchange *x)
{
	const struct roci_listener *listener = x->listener;
	uint64_t at = x->give_up_at;

	if (x == first(listener) && listener->thinking && !full(listener) && listener->pace_until < at)
		at = listener->pace_until;
	roci_exchange_set_timer(x, at);
}

void roci_backlog_wait(struct roci_listener *listener, struct roci_exchange *x, uint64_t now)
{
	x->listener = listener;
	x->waiting = true;
	x->give_up_at = now + listener->cm->config.backlog_wait_ns;
	listener->cm->waiting_count++;
	listener->cm->stats.backlog_waits++;
	roci_list_append(&listener->waiting, &x->queued);
	set_timer(x);
}

/* Whoever waits longest moves up, while there is room. */
static void move_up(struct roci_listener *listener, uint64_t now)
{
	while (may_tell(listener, now) && !roci_list_empty(&listener->waiting)) {
		struct roci_exchange *x = first(listener);

		roci_list_remove(&x->queued);
		listener->cm->waiting_count--;
		roci_backlog_told(listener, x, now);
		if (x->kind == ROCI_EXCHANGE_CONN)
			roci_conn_promote(roci_conn_of(x));
		else
			roci_sidr_promote(roci_sidr_of(x));
	}
	if (!roci_list_empty(&listener->waiting))
		set_timer(first(listener));
}

void roci_backlog_taken(struct roci_exchange *x, uint64_t now)
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
		listener->untaken_count--;
	}
	move_up(listener, now);
}

void roci_backlog_withdrawn(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->pacing;

	if (!listener)
		return;
	x->pacing = NULL;
	listener->thinking = NULL;
	move_up(listener, now);
}

void roci_backlog_answered(struct roci_exchange *x, uint64_t now)
{
	roci_backlog_taken(x, now);
	roci_backlog_withdrawn(x, now);
}

bool roci_backlog_timeout(struct roci_exchange *x, uint64_t now)
{
	struct roci_listener *listener = x->listener;

	move_up(listener, now);
	if (!x->waiting)
		return false;
	if (now >= x->give_up_at) {
		if (full(listener)) {
			listener->cm->stats.backlog_rejects++;
			return true;
		}
		x->give_up_at = now + listener->cm->config.backlog_wait_ns;
	}
	set_timer(x);
	return false;
}

void roci_backlog_forget(struct roci_listener *listener)
{
	if (listener->thinking)
		listener->thinking->pacing = NULL;
	listener->thinking = NULL;
}

void roci_listener_set_backlog(struct roci_listener *listener, uint64_t now, unsigned backlog)
{
	listener->params.backlog = backlog ? backlog : ROCI_BACKLOG_DEFAULT;
	move_up(listener, now);
}
