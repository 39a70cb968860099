/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait after an RNR NAK: the responder had no receive for a message. The requester sends nothing for as long as the
 * NAK says, then tries again, at most rnr_retry times (IBTA 9.7.5.2.8).
 *
 * A peer that tells what is missing (ranges.h) keeps the packets behind the one that it refused. So the refused packet
 * is sent again, and those behind it that are missing. Nothing new is sent until the refused one is taken: otherwise
 * the packets that a slow program does not receive would fill its host's memory.
 */
#ifndef ROCI_ENGINE_RNR_WAIT_H
#define ROCI_ENGINE_RNR_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_RNR_RETRY_FOREVER 7 /* rnr_retry: without end */

struct roci_rnr_wait {
	bool waiting; /* nothing is sent */
	bool kept;    /* the peer keeps what came behind the refused packet, which is the oldest one */
	bool due;     /* kept: it is to be sent again */
	uint8_t retries_left;
	uint32_t psn; /* waiting: of the packet that was refused */
};

/* True where the wait is already on for the packet `psn`: this NAK is one more about the same refusal. */
bool roci_rnr_wait_is_for(const struct roci_rnr_wait *w, uint32_t psn);
/* Uses up one retry. False where none was left. */
bool roci_rnr_wait_retry(struct roci_rnr_wait *w, unsigned rnr_retry);
/* The packet `psn` was refused: the wait begins, or begins again. */
void roci_rnr_wait_begin(struct roci_rnr_wait *w, uint32_t psn);
/* The oldest packet was refused, by a peer that keeps what came behind it: it is sent again after the wait. */
void roci_rnr_wait_keep(struct roci_rnr_wait *w);
/* The refused packet got no answer. It is sent once more, unless everything is sent again. */
void roci_rnr_wait_again(struct roci_rnr_wait *w);
/* Something was acknowledged. */
void roci_rnr_wait_passed(struct roci_rnr_wait *w, unsigned rnr_retry);
/* Everything is sent again. */
void roci_rnr_wait_resend(struct roci_rnr_wait *w);

#endif
