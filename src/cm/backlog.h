/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener's backlog: requests that the consumer has not taken yet. One that finds it full is not told to the
 * consumer; it waits for its turn, for backlog_wait_ns, and is then rejected for want of resources (REJ 3,
 * IBTA 12.6.7.2).
 *
 * Linux drops it silently, so that the peer tries again seconds later. Waiting here serves a burst of clients at a
 * server with a small backlog at once, and tells the others in two seconds what Linux lets them find out in minutes.
 *
 * And there is a pace: while the consumer has not answered a request, the next one is told pace_ns later. Servers hand
 * a request from one thread to another through a single variable (rping -P does) and lose it when the next one comes in
 * the same microsecond, as it does here and not with a network between. But where ROCI_PACE_FULL have been told and
 * none was answered, the consumer seems to collect them, and each further one waits half as long as the one before.
 */
#ifndef ROCI_CM_BACKLOG_H
#define ROCI_CM_BACKLOG_H

#include "cm/exchange.h"

#define ROCI_BACKLOG_DEFAULT 1024
#define ROCI_PACE_FULL       2

struct roci_listener {
	struct roci_cm *cm;
	struct roci_list all; /* in cm->listeners */
	struct roci_cm_listen params;
	unsigned unfetched_count;
	struct roci_list unfetched;       /* exchanges that the consumer was told of */
	struct roci_list waiting;         /* and those that it was not */
	struct roci_exchange *unanswered; /* the last one told, if it is not answered yet */
	uint64_t pace_until;              /* it holds up the next one until then */
	unsigned reported_since_answer;   /* requests told since the consumer answered one, of any listener */
	uint64_t answers;                 /* how many it had answered then */
};

/* The listener for a service; NULL: none. address: see struct roci_cm_listen. */
struct roci_listener *roci_listener_find(struct roci_cm *cm, uint64_t service_id, const uint8_t address[16],
					 uint32_t ifindex);
/* The listener for a REQ or SIDR_REQ; NULL: none, or its IP CM header lies. *ip is that header, if *has_ip. */
struct roci_listener *roci_listener_for_request(struct roci_cm *cm, const struct roci_cm_source *from,
						const struct roci_cm_msg *req, struct roci_cm_ip *ip, bool *has_ip);

enum roci_backlog { ROCI_BACKLOG_REPORT, ROCI_BACKLOG_WAIT, ROCI_BACKLOG_FULL };
/* What becomes of a new request. */
enum roci_backlog roci_backlog_admit(const struct roci_listener *listener, uint64_t now);
void roci_backlog_reported(struct roci_listener *listener, struct roci_exchange *x, uint64_t now);
void roci_backlog_wait(struct roci_listener *listener, struct roci_exchange *x, uint64_t now);
/* The consumer has it, or it was given up: its place goes to the next that waits. Harmless when it has none. */
void roci_backlog_fetched(struct roci_exchange *x, uint64_t now);
/* The peer has withdrawn what the consumer was told of: the next one may come at once. It keeps its place until the
 * consumer has it; else a peer could have any number of requests told, and withdraw each. */
void roci_backlog_withdrawn(struct roci_exchange *x, uint64_t now);
/* It was answered, or given up: as taken, and the next one may come at once. */
void roci_backlog_answered(struct roci_exchange *x, uint64_t now);
/* The timer of one that waits. True: it has waited too long and is to be rejected. */
bool roci_backlog_timeout(struct roci_exchange *x, uint64_t now);
/* The listener goes. */
void roci_backlog_stop_pacing(struct roci_listener *listener);

#endif
