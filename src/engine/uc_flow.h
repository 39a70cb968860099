/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control of UC. The standard has none, and where the wire is a network card with a lossless link, none is missed;
 * a UDP socket's buffer overruns. So a UC sender sets AckReq now and then, which UC's receivers ignore (IBTA 9.2.4); a
 * Rocinante answers with an RC acknowledge, which other senders drop as a packet of the wrong type (IBTA 9.6.1.1.2).
 * The sender keeps its packets within the path's window like RC. It stays unreliable: nothing is sent again, and what
 * was in flight is forgotten when no answer comes for long. A peer that stays silent is mute: to it, packets go at the
 * path's pace.
 */
#ifndef ROCI_ENGINE_UC_FLOW_H
#define ROCI_ENGINE_UC_FLOW_H

#include "engine/qp.h"

/* Window bytes of `packets` UC packets: their messages may be gone when the answer comes, so each counts as full. */
static inline uint64_t roci_uc_bytes(const struct roci_qp *qp, uint32_t packets)
{
	return packets * (uint64_t)(qp->mtu + 256);
}
/* An acknowledge of the peer. */
void roci_uc_ack(struct roci_qp *qp, uint32_t psn);
/* No answer for long: what was in flight is forgotten. */
void roci_uc_silence(struct roci_qp *qp);
/* Starts the wait for an answer, where one is due. */
void roci_uc_arm(struct roci_qp *qp);

#endif
