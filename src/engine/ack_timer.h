/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgement timer: what to do when a peer is silent. After a few round trips of silence a probe asks what has
 * arrived (probe.h): the last packets of a burst may be lost, and no NAK tells of that; or the peer waits for a
 * processor, and nothing is lost. Where nobody answers several probes, the oldest packets are sent again. All that is
 * no retry in the sense of retry_cnt. Only the timeout of the standard is (IBTA 9.7.6.1.3); after retry_cnt of them the
 * request fails.
 */
#ifndef ROCI_ENGINE_ACK_TIMER_H
#define ROCI_ENGINE_ACK_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct roci_ack_timer {
	uint64_t timeout_at; /* ns; UINT64_MAX: never */
	uint32_t first_ns;   /* of silence before a probe, where no round trip was measured */
	uint8_t probes;      /* since the last acknowledgement that acknowledged something */
	uint8_t retries_left;
};

enum roci_ack_expiry {
	ROCI_ACK_PROBE,   /* send a probe */
	ROCI_ACK_RESEND,  /* send the oldest packets again */
	ROCI_ACK_RETRY,   /* a timeout: the same, and the path is congested */
	ROCI_ACK_GIVE_UP, /* one timeout too many: the request has failed */
};

/* Begins to wait for the next acknowledgement. `timeout`: the QP's attribute, 0 for no timeout, probes only. `srtt`:
 * the path's round trip in ns, 0: not measured; where it takes long, so does the timeout, whatever the attribute is.
 * `answer`: where none was measured, it takes that long at most, as far as anybody knows; 0: nobody does. */
void roci_ack_timer_restart(struct roci_ack_timer *t, uint64_t now, unsigned timeout, uint64_t srtt, uint64_t answer);
/* When silence has something to say next. `srtt`: the path's round trip in ns; 0 where none was measured. bound: it may
 * be far shorter. `acked`: the peer has acknowledged something. Before, it may have to be woken first. */
uint64_t roci_ack_timer_next(const struct roci_ack_timer *t, uint64_t now, uint64_t srtt, bool bound, bool acked);
/* That time has come. Before the peer has acknowledged something, there is no PSN that is surely a duplicate,
 * and Soft-RoCE names a wrong one in its answer. */
enum roci_ack_expiry roci_ack_timer_expire(struct roci_ack_timer *t, uint64_t now, bool acked);

#endif
