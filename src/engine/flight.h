/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a QP has in flight counts against the congestion window of its path, which it shares with other QPs. A QP that
 * finds the window full waits in the path's list, and is made ready when there is room again.
 */
#ifndef ROCI_ENGINE_FLIGHT_H
#define ROCI_ENGINE_FLIGHT_H

#include "engine/qp.h"

/* The send window has grown by the packet `psn` of `bytes`, which was just sent: counts what is in flight on the
 * path. again: it was sent before. */
void roci_flight_sent(struct roci_qp *qp, uint32_t psn, uint64_t bytes, bool again);
/* The same for a packet that was sent again by itself (selective.h). */
void roci_flight_resent(struct roci_qp *qp, uint64_t bytes);
/* The peer has `count` packets more beyond the oldest one, `newest` among them. */
void roci_flight_marked(struct roci_qp *qp, uint32_t count, uint32_t newest);
/* Everything before the window's `una` was acknowledged, `packets` and `bytes` more than before: tells the path, and
 * wakes the QPs that wait for room. */
void roci_flight_acked(struct roci_qp *qp, uint32_t packets, uint64_t bytes);
/* The send window has shrunk: the same, and wakes the QPs that wait for room. Does nothing without a path. */
void roci_flight_release(struct roci_qp *qp);
/* Nothing that is in flight will be acknowledged. */
void roci_flight_forget(struct roci_qp *qp);
/* The QPs that wait for room on the path try again, in the order in which they began to wait. */
void roci_flight_wake(struct roci_path *path);
/* The path's timer: the next burst may go. */
void roci_flight_expire(struct roci_timer *timer);
/* Whether `bytes` more may go now. If not, the QP waits for room, or for the next burst. A QP may always have one
 * packet in flight, so that none waits for the dead peer of another one. */
bool roci_flight_fits(struct roci_qp *qp, uint64_t bytes);
/* Whether the QP's packets may go a part of the window without asking for an acknowledgement: RC, on the wire, to a
 * peer nearby that was heard of, where few QPs have something in flight in a large window. */
bool roci_flight_streams(const struct roci_qp *qp);
/* Whether the next packet, of `bytes`, should ask for an acknowledgement: every eighth does, or less in a stream, and
 * those that fill the window (in a stream: where no answer is due). On a far path: roci_path_ack_every(). */
bool roci_flight_wants_ack(const struct roci_qp *qp, uint64_t bytes);

#endif
