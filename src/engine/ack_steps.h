/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which steps a responder names PSNs to its peer. One acknowledgement would do for all that was executed since the
 * last one (IBTA 9.7.5.1.2). But the peer believes only what is near (far_answer.h), so a longer way goes in steps:
 * each is an acknowledgement of its own. A duplicate of an old packet says that the peer may have heard none of those
 * since.
 */
#ifndef ROCI_ENGINE_ACK_STEPS_H
#define ROCI_ENGINE_ACK_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"
#include "wire/packet.h"

#define ROCI_ACK_STEP  56   /* PSNs; the peer hears the next one, too, where three in a row are lost */
#define ROCI_ACK_STEPS 8192 /* PSNs; a peer that is farther behind is no Rocinante, and needs no steps */

struct roci_ack_steps {
	uint32_t named; /* 1 beyond the newest PSN that the peer was told of */
};

/* An answer that names `psn` is sent. */
static inline void roci_ack_steps_sent(struct roci_ack_steps *s, uint32_t psn)
{
	if (roci_psn_diff(psn, s->named) >= 0)
		s->named = roci_psn_add(psn, 1);
}

/* Takes the step that has to go before an answer that names `psn`. False where that is near; else *step is the PSN of
 * an acknowledgement. */
static inline bool roci_ack_steps_next(struct roci_ack_steps *s, uint32_t psn, uint32_t *step)
{
	if (roci_psn_diff(psn, s->named) < ROCI_ACK_STEP)
		return false;
	s->named = roci_psn_add(s->named, ROCI_ACK_STEP);
	*step = roci_psn_add(s->named, ROCI_PSN_MASK);
	return true;
}

/* The peer sent `psn` again, `epsn` is expected: it may not have heard of what follows. */
static inline void roci_ack_steps_repeat(struct roci_ack_steps *s, uint32_t psn, uint32_t epsn)
{
	if (roci_psn_diff(psn, s->named) < 0 && roci_psn_diff(epsn, psn) <= ROCI_ACK_STEPS)
		s->named = roci_psn_add(psn, 1);
}

#endif
