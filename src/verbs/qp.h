/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs (qp.c, qp_attr.c, wr.c, wr_ex.c, mcast.c), shared receive queues (srq.c) and address handles (ah.c). */
#ifndef ROCI_VERBS_QP_H
#define ROCI_VERBS_QP_H

#include "verbs/context.h"

/* ---- shared receive queues ---- */

struct vb_srq {
	struct ibv_srq srq;
	struct roci_list object; /* node of its context */
	struct roci_srq *engine;
	uint32_t async_delivered; /* the async queue's lock */
};

/* ---- address handles ---- */

struct vb_ah {
	struct ibv_ah ah;
	struct roci_av av;
};

/* The address vector of *attr, for datagrams or a connected QP. EINVAL: no GRH, wrong port, bad index. Device lock
 * held. */
int vb_ah_make_av(struct vb_context *ctx, const struct ibv_ah_attr *attr, bool datagram, struct roci_av *av);

/* ---- the ibv_wr_* builder ---- */

/* A work request between ibv_wr_start() and ibv_wr_complete(). Its SGEs and inline bytes are in arrays that move when
 * they grow, so it has indices until it is posted. */
struct vb_built {
	struct roci_send_wr wr;
	size_t first; /* of its SGEs, or of its inline bytes */
	size_t inline_len;
	struct ibv_mw *mw; /* of a bind */
};

struct vb_builder {
	pthread_mutex_t lock; /* from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort() */
	int err;              /* the first mistake: nothing will be posted */
	struct vb_built *wrs;
	struct roci_sge *sges;
	uint8_t *bytes;
	size_t wr_count, wr_room, sge_count, sge_room, byte_count, byte_room;
};

/* ---- queue pairs ---- */

struct vb_qp {
	struct ibv_qp_ex ex; /* the program's pointer is &ex.qp_base */
#ifndef HAVE_IBV_WR_FLUSH
	vb_wr_flush_fn *wr_flush; /* part of `ex` for programs whose headers have it */
#endif
	struct roci_list object; /* node of its context */
	struct roci_qp *engine;
	struct roci_qp_cap cap;
	bool sq_sig_all, has_ex;
	uint64_t send_ops;          /* enum ibv_qp_create_send_ops_flags */
	struct ibv_ah_attr ah_attr; /* as the program set it; the engine has an address vector */
	struct roci_list groups;    /* multicast groups that it joined; device's lock */
	uint32_t async_delivered;   /* the async queue's lock */
	struct vb_builder builder;
};

#ifndef HAVE_IBV_WR_FLUSH
_Static_assert(offsetof(struct vb_qp, wr_flush) == sizeof(struct ibv_qp_ex), "where newer headers have it");
#endif

static inline struct vb_qp *vb_qp(struct ibv_qp *qp)
{
	return (struct vb_qp *)qp;
}
/* True for a QP of this device; false for NULL. */
static inline bool vb_is_qp(const struct ibv_qp *qp)
{
	return qp && vb_is_context(qp->context);
}

void vb_builder_init(struct vb_qp *qp);
void vb_builder_fini(struct vb_qp *qp);
/* In a forked child. */
void vb_builder_reset(struct vb_qp *qp);
/* Whether the QP is in a multicast group. */
bool vb_mcast_joined(struct vb_qp *qp);
/* Leaves every multicast group of the QP. Device lock held. */
void vb_mcast_leave_all(struct vb_qp *qp);

/* ---- entries of struct verbs_context ---- */

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
