/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a QP has in flight counts against the congestion window of its path, which it shares with other QPs. A QP that
 * finds the window full waits in the path's list, and is made ready when there is room again.
 */
#ifndef ROCI_ENGINE_FLIGHT_H
#define ROCI_ENGINE_FLIGHT_H

#include "engine/qp.h"

/* The send window has grown: counts what is in flight on the path. */
void roci_flight_count(struct roci_qp *qp);
/* The send window has shrunk: the same, and wakes the QPs that wait for room. Does nothing without a path. */
void roci_flight_release(struct roci_qp *qp);
/* Nothing that is in flight will be acknowledged. */
void roci_flight_forget(struct roci_qp *qp);
/* Whether `bytes` more fit. If not, the QP waits for room. A QP may always have one packet in flight, so that none
 * waits for the dead peer of another one. */
bool roci_flight_fits(struct roci_qp *qp, uint64_t bytes);
/* Whether the next packet, of `bytes`, should ask for an acknowledgement: every eighth does, and those that fill the
 * window. */
bool roci_flight_wants_ack(const struct roci_qp *qp, uint64_t bytes);

#endif
