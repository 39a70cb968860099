/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgement timer: what to do when a peer is silent. After a few round trips of silence the oldest packets
 * are sent again as a probe: the last packets of a burst may be lost, and no NAK tells of that. A probe is no retry in
 * the sense of retry_cnt. Only the timeout of the standard is (IBTA 9.7.6.1.3); after retry_cnt of them the request
 * fails.
 */
#ifndef ROCI_ENGINE_ACK_TIMER_H
#define ROCI_ENGINE_ACK_TIMER_H

#include <stdint.h>

struct roci_ack_timer {
	uint64_t timeout_at; /* ns; UINT64_MAX: never */
	uint8_t probes;      /* since the last acknowledgement */
	uint8_t retries_left;
};

enum roci_ack_expiry {
	ROCI_ACK_PROBE,   /* send the oldest packets again */
	ROCI_ACK_RETRY,   /* a timeout: the same, and the path is congested */
	ROCI_ACK_GIVE_UP, /* one timeout too many: the request has failed */
};

/* Begins to wait for the next acknowledgement. `timeout`: the QP's attribute, 0 for no timeout, probes only. */
void roci_ack_timer_restart(struct roci_ack_timer *t, uint64_t now, unsigned timeout);
/* When silence has something to say next. `srtt`: the path's round trip in ns, 0 where none was measured. */
uint64_t roci_ack_timer_next(const struct roci_ack_timer *t, uint64_t now, uint64_t srtt);
/* That time has come. */
enum roci_ack_expiry roci_ack_timer_expire(struct roci_ack_timer *t, uint64_t now);

#endif
