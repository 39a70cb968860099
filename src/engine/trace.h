/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who records a capture is told of each post, what becomes of it, each completion and each change of a QP's state.
 * Where nobody records, that costs a branch. Nothing in the engine depends on it.
 */
#ifndef ROCI_ENGINE_TRACE_H
#define ROCI_ENGINE_TRACE_H

struct roci_cqe;
struct roci_packet;
struct roci_qp;
struct roci_recv_wr;
struct roci_send_wr;
struct roci_srq;
struct roci_swqe;

/* A post that was accepted. */
void roci_trace_post_send(const struct roci_qp *qp, const struct roci_send_wr *wr);
void roci_trace_post_recv(const struct roci_qp *qp, const struct roci_recv_wr *wr);
void roci_trace_post_srq(const struct roci_srq *srq, const struct roci_recv_wr *wr);
/* The requester begins with the request: its packets are made from now on, or it fails without one. */
void roci_trace_send_taken(const struct roci_qp *qp, const struct roci_swqe *w);
/* A message takes the receive qp->resp.rwqe. */
void roci_trace_recv_taken(const struct roci_qp *qp);
/* The last packet of a request that takes no receive was executed. */
void roci_trace_executed(const struct roci_qp *qp, const struct roci_packet *p);
/* `w`: the request, or NULL for a receive. */
void roci_trace_completion(const struct roci_qp *qp, const struct roci_swqe *w, const struct roci_cqe *cqe);
void roci_trace_state(const struct roci_qp *qp);

#define ROCI_TRACE(engine, call) (__builtin_expect((engine)->trace != NULL, 0) ? (call) : (void)0)

#endif
