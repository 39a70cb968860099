/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection and a SIDR exchange have in common: a peer's address, one message that is under way to it, perhaps
 * again and again until it is answered, a timer, and one event for the consumer.
 */
#ifndef ROCI_CM_EXCHANGE_H
#define ROCI_CM_EXCHANGE_H

#include "cm/cm.h"
#include "cm/msg.h"
#include "engine/list.h"
#include "engine/timer.h"

/* A 5-bit time in nanoseconds; what a peer may ask us to wait is cut at 69 s. */
#define ROCI_CM_LONGEST_WAIT 24
static inline uint64_t roci_cm_time_ns(unsigned t)
{
	return 4096ull << (t < ROCI_CM_LONGEST_WAIT ? t : ROCI_CM_LONGEST_WAIT);
}

/* Where a MAD came from: what answers need to know. */
struct roci_cm_source {
	const uint8_t *sgid, *dgid; /* the peer's, ours */
	uint32_t ifindex;
};

enum roci_exchange_kind { ROCI_EXCHANGE_CONN, ROCI_EXCHANGE_SIDR };

struct roci_exchange {
	struct roci_cm *cm;
	enum roci_exchange_kind kind;
	bool orphan; /* the consumer has let go: tell nothing, free at the end */
	void *user;
	struct roci_list all;       /* in cm->exchanges */
	struct roci_list sending;   /* in cm->sending: mad is to be sent */
	struct roci_list reporting; /* in cm->events: event is to be told */
	struct roci_timer timer;

	struct roci_cm_path *path;             /* in the object: what the connection uses, or the peer asked for */
	uint8_t local_gid[16], remote_gid[16]; /* where messages travel: the path's GIDs */
	uint32_t ifindex;

	uint8_t mad[ROCI_CM_MAD_BYTES]; /* the last message */
	uint16_t sent;                  /* its attribute, 0: none yet */
	struct {
		uint64_t interval_ns,
			max_interval_ns; /* to the next retransmission; never longer than max_interval_ns */
		unsigned left;           /* retransmissions */
	} retry;

	/* Requests not yet taken by the consumer, see backlog.h. */
	struct roci_listener *listener; /* NULL: taken, or the listener is gone */
	struct roci_list queued;        /* in listener->unfetched or, if `waiting`, ->waiting */
	bool waiting;
	uint64_t reject_at;           /* of one that waits */
	struct roci_listener *pacing; /* whose next request waits for the answer to this one, or NULL */

	struct roci_cm_event event;
	uint8_t private[ROCI_CM_MAX_PRIVATE], info[ROCI_CM_REJ_ARI]; /* of the event */
};

/* Makes it a member of cm. -ENOMEM: nothing done. */
int roci_exchange_init(struct roci_exchange *x, struct roci_cm *cm, enum roci_exchange_kind kind,
		       struct roci_cm_path *path);
/* Takes it out of all lists. */
void roci_exchange_fini(struct roci_exchange *x);

/* Replaces the last message, and sends it once. */
void roci_exchange_send(struct roci_exchange *x, const struct roci_cm_msg *msg);
/* The last message once more. */
void roci_exchange_resend(struct roci_exchange *x);
/* The last message shall be sent again until roci_exchange_stop(): `retries` times, at most max_interval_ns apart. */
void roci_exchange_start_retries(struct roci_exchange *x, uint64_t now, uint64_t max_interval_ns, unsigned retries);
/* The timer has run out: sends again and returns true, or returns false when there were enough. */
bool roci_exchange_retransmit(struct roci_exchange *x, uint64_t now);
/* The peer asks for patience (MRA): nothing is sent again before wait_ns have passed. */
void roci_exchange_postpone(struct roci_exchange *x, uint64_t now, uint64_t wait_ns);
void roci_exchange_stop(struct roci_exchange *x);
void roci_exchange_set_timer(struct roci_exchange *x, uint64_t at);

/* Prepares the event, with the message's private data and info (msg may be NULL); the caller completes it. */
struct roci_cm_event *roci_exchange_prepare_event(struct roci_exchange *x, enum roci_cm_event_kind event,
						  const struct roci_cm_msg *msg);
/* Tells it to the consumer, if there is one. */
void roci_exchange_report(struct roci_exchange *x);
/* Tells one of the ..._ERROR kinds. */
void roci_exchange_report_timeout(struct roci_exchange *x, enum roci_cm_event_kind event);
/* An event that was not told yet is not told at all. */
void roci_exchange_cancel_event(struct roci_exchange *x);

/* False, and nothing copied, where `from` does not fit in `room`. */
bool roci_cm_copy(void *to, unsigned room, struct roci_cm_bytes from);

#endif
