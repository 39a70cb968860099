/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: work requests become packets, once or, after a loss, again (IBTA 9.7.2, 9.7.3, 9.7.7). When a packet
 * may go, and what becomes of it, is decided by the QP's service (service.h).
 *
 * What is in flight is bounded by the path's congestion window. A request's window bytes are its payload (for a READ:
 * the payload of the responses it asks for) plus a fixed cost per packet. A READ is asked for in pieces as the window
 * allows; each piece is a READ request of its own on the wire, with the PSNs that one big request would have had. How
 * large they are is decided when the READ begins. So is how long the packets of a SEND or WRITE are (plpmtu.h).
 */
#ifndef ROCI_ENGINE_REQUESTER_H
#define ROCI_ENGINE_REQUESTER_H

#include "engine/qp.h"

/* Adds up to `quantum` packets of the send queue to *batch. Returns true if there may be more to send at once. */
bool roci_requester_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum);
/* Completes the requests at the head of the queue that are done: acknowledged, sent (UC, UD) or executed (local). */
void roci_requester_retire(struct roci_qp *qp);
/* The QP's timer has expired. */
void roci_requester_expire(struct roci_timer *timer);
/* The next packet to send is `psn`, of a request that was started. `bytes`: all window bytes of the QP before it. */
void roci_requester_seek(struct roci_qp *qp, uint32_t psn, uint64_t bytes);
/* The oldest request fails: it completes with `status`, the rest is flushed, the QP is in error. */
void roci_requester_fail(struct roci_qp *qp, enum roci_wc_status status);

/* The request of the packet `psn`, which is outstanding: one that was started. */
struct roci_swqe *roci_requester_find(const struct roci_qp *qp, uint32_t psn);
/* PSNs that packet `index` of *w stands for: 1, or for a READ the rest of its piece. */
uint32_t roci_requester_step(const struct roci_swqe *w, uint32_t index);
/* Whether packet `index` of the READ *w begins a piece. */
bool roci_requester_begins(const struct roci_swqe *w, uint32_t index);

/* Payload bytes of a full packet of *w, of a QP that has a path. */
static inline uint32_t roci_swqe_full(const struct roci_qp *qp, const struct roci_swqe *w)
{
	return w->longer ? w->longer : qp->mtu;
}
/* Window bytes of the first `packets` packets of *w. Those of a READ that is far count on another path. */
static inline uint64_t roci_swqe_bytes(const struct roci_qp *qp, const struct roci_swqe *w, uint32_t packets)
{
	uint64_t bytes = (uint64_t)packets * roci_swqe_full(qp, w);

	if (roci_qp_is_local(qp)) /* one packet at most */
		return packets * (ROCI_PATH_PACKET_BYTES + (w->length <= ROCI_LOCAL_INLINE ? w->length : 0));
	if (w->opcode == ROCI_WR_RDMA_READ && packets > w->read.far_from) {
		packets = w->read.far_from;
		bytes = (uint64_t)packets * qp->mtu;
	}
	return (bytes < w->length ? bytes : w->length) + packets * ROCI_PATH_PACKET_BYTES;
}
static inline struct roci_swqe *roci_swqe_head(const struct roci_qp *qp)
{
	return roci_sq_at(&qp->sq, qp->sq.head);
}

#endif
