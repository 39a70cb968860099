/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait after an RNR NAK: the responder had no receive for a message. The requester sends nothing for as long as the
 * NAK says, then tries again, at most rnr_retry times (IBTA 9.7.5.2.8).
 */
#ifndef ROCI_ENGINE_RNR_WAIT_H
#define ROCI_ENGINE_RNR_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_RNR_RETRY_FOREVER 7 /* rnr_retry: without end */

struct roci_rnr_wait {
	bool waiting; /* nothing is sent */
	uint32_t psn; /* waiting: of the packet that was refused */
	uint8_t retries_left;
};

/* True where the wait is already on for the packet `psn`: this NAK is one more about the same refusal. */
bool roci_rnr_wait_is_for(const struct roci_rnr_wait *w, uint32_t psn);
/* Uses up one retry. False where none was left. */
bool roci_rnr_wait_retry(struct roci_rnr_wait *w, unsigned rnr_retry);
/* The packet `psn` was refused: the wait begins, or begins again. */
void roci_rnr_wait_begin(struct roci_rnr_wait *w, uint32_t psn);

#endif
