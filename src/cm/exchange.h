/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection and a SIDR exchange have in common: a peer's address, one message on its way to the peer (resent
 * until it is answered), one timer, and one event for the consumer.
 */
#ifndef ROCI_CM_EXCHANGE_H
#define ROCI_CM_EXCHANGE_H

#include "cm/backlog.h"
#include "cm/cm.h"
#include "cm/msg.h"
#include "engine/list.h"
#include "engine/timer.h"

/* A 5-bit time in nanoseconds. What a peer may ask us to wait is cut at 69 s. */
#define ROCI_CM_LONGEST_WAIT 24
static inline uint64_t roci_cm_time_ns(unsigned t)
{
	return 4096ull << (t < ROCI_CM_LONGEST_WAIT ? t : ROCI_CM_LONGEST_WAIT);
}

/* Where a MAD came from: what a reply needs to know. */
struct roci_cm_source {
	const uint8_t *sgid, *dgid; /* the peer's, ours */
	uint32_t ifindex;
	const struct roci_nat_terms *nat; /* NULL: none on the way */
};

/* What conn.c and sidr.c do with an exchange of theirs. */
struct roci_exchange_ops {
	void (*free)(struct roci_exchange *x);
	void (*destroy)(struct roci_exchange *x, uint64_t now); /* as the consumer's call */
	void (*timeout)(struct roci_exchange *x, uint64_t now); /* the timer has expired */
	/* The network has said twice that the last message did not arrive. */
	void (*unreachable)(struct roci_exchange *x, uint64_t now, int err);
	void (*report_req)(struct roci_exchange *x); /* the request's turn in the backlog has come */
};

struct roci_exchange {
	struct roci_cm *cm;
	const struct roci_exchange_ops *ops;
	struct roci_conn *conn; /* that this is part of; or */
	struct roci_sidr *sidr;
	void *user;
	bool orphan;                /* the consumer has let go: report nothing, free at the end */
	struct roci_list all;       /* in cm->exchanges */
	struct roci_list sending;   /* in cm->sending: mad is to be sent */
	struct roci_list reporting; /* in cm->events: event is to be reported */
	struct roci_timer timer;

	struct roci_cm_path *path;             /* in the object: what the two agree on */
	uint8_t local_gid[16], remote_gid[16]; /* where MADs travel */
	uint32_t ifindex;
	struct roci_nat_terms nat; /* nat.token: of every exchange */
	struct roci_list natted;   /* in cm->natted, where there is a NAT */

	uint8_t mad[ROCI_CM_MAD_BYTES]; /* the last message */
	uint16_t sent;                  /* its attribute; 0: none */
	uint64_t asked_at;              /* when the last one that is resent until it is answered was first sent */
	unsigned refusals;              /* roci_cm_unreachable() */
	struct {
		uint64_t interval_ns;     /* to the next retransmission */
		uint64_t max_interval_ns; /* it doubles up to this */
		unsigned left;            /* retransmissions */
	} retry;

	struct roci_backlog_place backlog; /* of a request */

	struct roci_cm_event event;
	uint8_t private[ROCI_CM_MAX_PRIVATE], info[ROCI_CM_REJ_ARI]; /* of the event */
};

/* Adds it to cm; conn or sidr is set by the caller, as are the GIDs. -ENOMEM: nothing done. */
int roci_exchange_init(struct roci_exchange *x, struct roci_cm *cm, const struct roci_exchange_ops *ops,
		       struct roci_cm_path *path);
/* Takes it out of all lists. */
void roci_exchange_fini(struct roci_exchange *x);

/* Where MADs travel, and whose exchange it is: of the passive end, from the request that began it. */
void roci_exchange_come_from(struct roci_exchange *x, const struct roci_cm_source *from, uint64_t token);

/* Whether a message comes from the peer. One behind a NAT that knows the token may have moved: it is followed. */
bool roci_exchange_is_from(struct roci_exchange *x, const struct roci_cm_source *from);

/* ---- messages ---- */

/* Replaces the last message, and sends it once. */
void roci_exchange_send(struct roci_exchange *x, const struct roci_cm_msg *msg);
/* Sends the last message once more. There must be one. */
void roci_exchange_resend(struct roci_exchange *x);
/* The last message, which is sent for the first time, is sent `retries` times again, at most max_interval_ns apart,
 * until roci_exchange_stop_timer(). */
void roci_exchange_start_retries(struct roci_exchange *x, uint64_t now, uint64_t max_interval_ns, unsigned retries);
/* The timer has expired: resends and returns true, or returns false when no retries are left. */
bool roci_exchange_retransmit(struct roci_exchange *x, uint64_t now);
/* An MRA came: nothing is resent for wait_ns. */
void roci_exchange_postpone(struct roci_exchange *x, uint64_t now, uint64_t wait_ns);
void roci_exchange_set_timer(struct roci_exchange *x, uint64_t at);
void roci_exchange_stop_timer(struct roci_exchange *x);

/* ---- events ---- */

/* Fills the event, with the message's private data and info (msg may be NULL). The caller may add to it. */
struct roci_cm_event *roci_exchange_prepare_event(struct roci_exchange *x, enum roci_cm_event_kind kind,
						  const struct roci_cm_msg *msg);
/* Queues the prepared event, if there is a consumer. */
void roci_exchange_report(struct roci_exchange *x);
/* Prepares and queues an event that needs nothing else. */
void roci_exchange_report_event(struct roci_exchange *x, enum roci_cm_event_kind kind, const struct roci_cm_msg *msg);
/* Prepares and queues one of the ..._ERROR kinds. */
void roci_exchange_report_error(struct roci_exchange *x, enum roci_cm_event_kind kind, int err);
/* Takes back an event that is queued. */
void roci_exchange_cancel_event(struct roci_exchange *x);

/* Copies `from`. False, and nothing is copied: it does not fit in `room`. */
bool roci_cm_copy(void *to, unsigned room, struct roci_cm_bytes from);

#endif
