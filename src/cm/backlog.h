/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener's backlog: requests that were reported and that the consumer has not fetched yet. A request that finds it
 * full is not reported. It waits for its turn, for backlog_wait_ns, and is then rejected (REJ 3, no resources, IBTA
 * 12.6.7.2). Linux drops it silently instead, and the peer tries again seconds later. Waiting serves a burst of clients
 * at a server with a small backlog at once, and tells the others within two seconds.
 *
 * Requests are also paced: while the last reported request has no answer, the next one is reported pace_ns later. Some
 * servers hand a request from one thread to another in a single variable (rping -P). They lose it when the next one
 * comes in the same microsecond, which happens here and not with a network in between. After ROCI_PACE_FULL reports
 * without any answer, the consumer seems to collect requests, so each further one waits half as long. A consumer that
 * answers each request before it looks for the next event hands none on: after ROCI_PACE_IN_TURN such answers in a row
 * its requests are not paced, until one is answered otherwise.
 */
#ifndef ROCI_CM_BACKLOG_H
#define ROCI_CM_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/list.h"

#define ROCI_BACKLOG_DEFAULT 1024
#define ROCI_PACE_FULL       2 /* reports in a row that wait for the full pace_ns */
#define ROCI_PACE_IN_TURN    4 /* answers in turn, in a row, that end the pace */

struct roci_exchange;
struct roci_listener;

/* Of a listener. */
struct roci_backlog {
	struct roci_list unfetched; /* requests that were reported */
	unsigned unfetched_count;
	struct roci_list waiting; /* requests that were not reported yet; the first is next */
	/* The pace */
	struct roci_exchange *unanswered; /* the request reported last, while it has no answer; else NULL */
	uint64_t pace_until;              /* the next one waits for this time, or for that answer */
	unsigned reported_since_answer;
	unsigned in_turn;           /* fetched requests in a row, before each of which the last was answered in turn */
	uint64_t answered_requests; /* cm->answered_requests when that count began */
};

/* Of a request: in its struct roci_exchange. */
struct roci_backlog_place {
	struct roci_listener *listener; /* NULL: fetched, or the listener is gone */
	struct roci_list node;          /* in `unfetched` or, if `waiting`, in `waiting` */
	bool waiting;
	uint64_t reject_at;           /* of one that waits */
	struct roci_listener *pacing; /* whose `unanswered` this is, or NULL */
};

void roci_backlog_init(struct roci_backlog *backlog);

enum roci_backlog_verdict {
	ROCI_BACKLOG_REPORT, /* report it now */
	ROCI_BACKLOG_WAIT,   /* it waits for its turn */
	ROCI_BACKLOG_FULL,   /* reject it: config.max_waiting wait already */
};
/* What becomes of a new request. */
enum roci_backlog_verdict roci_backlog_admit(struct roci_listener *listener, uint64_t now);
/* Does that for a request whose event is prepared, unless the verdict was FULL. While it waits, its exchange's timer
 * belongs to the backlog. */
void roci_backlog_enter(struct roci_listener *listener, struct roci_exchange *x, enum roci_backlog_verdict verdict,
			uint64_t now);

/* The consumer fetches it. in_turn: the one that it fetched before it has answered before it looked for another event.
 * roci_backlog_fetched() follows. Harmless without a place. */
void roci_backlog_fetches(const struct roci_exchange *x, bool in_turn);
/* The consumer has fetched it, or it was given up: reports the next one that waits. Harmless without a place. */
void roci_backlog_fetched(struct roci_exchange *x, uint64_t now);
/* The peer has withdrawn a reported request: the next one may be reported at once. This one keeps its place until the
 * consumer fetches it; otherwise a peer could have any number of requests reported by withdrawing each. */
void roci_backlog_withdrawn(struct roci_exchange *x, uint64_t now);
/* The consumer has answered it, or it was given up: as fetched, and the next one may be reported at once. */
void roci_backlog_answered(struct roci_exchange *x, uint64_t now);
/* The timer of a request that waits. True: it has waited too long; reject it. */
bool roci_backlog_timeout(struct roci_exchange *x, uint64_t now);
/* No request paces this listener any more. */
void roci_backlog_stop_pacing(struct roci_listener *listener);

#endif
