/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service ID resolution, for its consumer: the QPN and Q_Key of a datagram service (IBTA 12.11). One SIDR_REQ, one
 * SIDR_REP. Consumers include cm/cm.h.
 */
#ifndef ROCI_CM_SIDR_H
#define ROCI_CM_SIDR_H

#include "cm/types.h"

/* IBTA table 124 */
enum roci_cm_sidr_status {
	ROCI_SIDR_SUCCESS = 0,
	ROCI_SIDR_UNSUPPORTED = 1, /* no such service */
	ROCI_SIDR_REJECT = 2,
	ROCI_SIDR_NO_QP = 3,
	ROCI_SIDR_REDIRECT = 4,
	ROCI_SIDR_UNSUPPORTED_VERSION = 5,
};

struct roci_cm_resolve {
	uint64_t service_id;
	struct roci_cm_path path;
	struct roci_cm_bytes private; /* copied; at most ROCI_CM_SIDR_REQ_PRIVATE, the IP CM header included */
	uint64_t interval_ns;         /* between retransmissions; 0: the standard's */
	uint8_t max_retries;          /* 0: the config's */
	void *user;
};
/* Sends a SIDR_REQ. -EINVAL: a field does not fit; -ENOMEM. */
int roci_sidr_resolve(struct roci_cm *cm, uint64_t now, const struct roci_cm_resolve *params, struct roci_sidr **out);

struct roci_cm_sidr_answer {
	enum roci_cm_sidr_status status;
	uint32_t qpn, qkey;
	struct roci_cm_bytes info, private; /* copied; at most ROCI_CM_SIDR_REP_INFO, ROCI_CM_SIDR_REP_PRIVATE */
};
/* Answers SIDR_REQ_RECEIVED with a SIDR_REP. Repetitions of the SIDR_REQ get the same answer for a while, even after
 * roci_sidr_destroy(). -EINVAL: answered already, or a field does not fit. */
int roci_sidr_answer(struct roci_sidr *sidr, uint64_t now, const struct roci_cm_sidr_answer *answer);
/* The consumer lets go: no event follows, and the handle is invalid. An unanswered SIDR_REQ is rejected (status 2). */
void roci_sidr_destroy(struct roci_sidr *sidr, uint64_t now);
/* The user of the exchange's events from now on. */
void roci_sidr_set_user(struct roci_sidr *sidr, void *user);
/* The consumer has fetched SIDR_REQ_RECEIVED, as roci_conn_fetched(). */
void roci_sidr_fetched(struct roci_sidr *sidr, uint64_t now, bool in_turn);

#endif
