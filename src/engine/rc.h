/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC: packets are sent until they are acknowledged, within the path's congestion window (IBTA 9.7). The requester
 * builds them. Here the small objects of struct roci_requester are put to work: they decide when a packet may go, what
 * silence means, and when packets are sent again.
 */
#ifndef ROCI_ENGINE_RC_H
#define ROCI_ENGINE_RC_H

#include "engine/qp.h"

/* Everything before PSN `una` is done, `bytes` window bytes in all. `una` is newer than before. */
void roci_rc_advance(struct roci_qp *qp, uint32_t una, uint64_t bytes);
/* Sends again from the oldest unacknowledged packet on. */
void roci_rc_resend(struct roci_qp *qp);
/* A NAK or a gap says that the oldest packet is missing: sends again, but only once for all the hints of one loss. */
void roci_rc_loss(struct roci_qp *qp);
/* Sends a probe. If its answer says nothing new, the oldest packet is missing. */
void roci_rc_ask(struct roci_qp *qp);
/* An acknowledgement of nothing new came. True where it answers a probe: the oldest packet is missing. */
bool roci_rc_probe_answered(struct roci_qp *qp, const struct roci_packet *p);
/* (Re)starts the acknowledgement timer, or stops it where nothing is outstanding. An RNR wait goes on. */
void roci_rc_restart_timer(struct roci_qp *qp);
/* Sends nothing for `wait_ns`: the responder refused the packet `psn` with an RNR NAK. */
void roci_rc_wait(struct roci_qp *qp, uint32_t psn, uint64_t wait_ns);

#endif
