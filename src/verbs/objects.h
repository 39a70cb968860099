/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands behind the public objects. The public structure comes first in each, so that a cast leads from the one to
 * the other; the engine's object hangs on it.
 *
 * Locks, in the order in which they may be taken: a CQ's consumer mutex (two of them by rising address), the device's
 * lock, the mutex of a completion channel or of a context's async queue. A builder's mutex (struct vb_builder) comes
 * before all of them.
 *
 * Functions of the public API return what its manual says: a positive errno, -1 with errno, or NULL with errno. Those
 * declared here return 0 or a positive errno.
 */
#ifndef ROCI_VERBS_OBJECTS_H
#define ROCI_VERBS_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device/device.h"
#include "verbs/public.h"

#define VB_PORT                       1 /* the only one */
#define VB_COMP_VECTORS               1
#define VB_DEFAULT_PKEY               0xffff
#define VB_CONTAINER(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

/* ---- the device ---- */

/* Helpers of vendor libraries (mlx5dv_is_supported) look behind struct ibv_device for their own mark: they find zeroes.
 */
struct vb_device {
	struct ibv_device device;
	char not_theirs[4096];
};
extern struct vb_device vb_the_device;

/* The node GUID as it goes into structures: EUI-64 of the first hardware address, big-endian. */
__be64 vb_device_guid(void);

/* IBV's width and speed codes of interface `ifname`, see <infiniband/verbs.h>. */
void vb_link_speed(const char *ifname, uint8_t *width, uint8_t *speed);

/* A doubly linked list without a head's special case. */
struct vb_link {
	struct vb_link *prev, *next;
};

/* In the order in which a closing context drops them. */
enum vb_kind { VB_QP, VB_SRQ, VB_MW, VB_MR, VB_CQ, VB_KINDS };

struct vb_async_event;

struct vb_async_queue {
	pthread_mutex_t lock;
	struct vb_async_event *head, **tail;
};

struct vb_context {
	struct roci_device *dev;          /* NULL once closed with objects left */
	struct vb_context *buried;        /* such contexts are chained */
	struct vb_link objects[VB_KINDS]; /* under the device's lock */
	struct vb_async_queue async;
	struct verbs_context vctx; /* last: the program holds &vctx.context */
};

static inline struct vb_context *vb_context(const struct ibv_context *c)
{
	return VB_CONTAINER(c, struct vb_context, vctx.context);
}
/* Is it a context of this device at all (and not NULL)? */
static inline bool vb_is_context(const struct ibv_context *c)
{
	return c && c->device == &vb_the_device.device;
}

void vb_object_add(struct vb_context *ctx, enum vb_kind kind, struct vb_link *link);
void vb_object_remove(struct vb_link *link);

/* Takes one of `max`; false when all are taken. */
bool vb_quota_take(atomic_uint *used, unsigned max);
void vb_quota_give(atomic_uint *used);

/* Sets errno to a positive or negative error number and returns NULL. */
void *vb_null(int err);

/* ---- protection domains ---- */

struct vb_td {
	struct ibv_td td;
	atomic_uint users; /* parent domains */
};
struct vb_pd {
	struct ibv_pd pd;
	struct vb_pd *base; /* the one whose number counts: itself, or the PD under a parent domain */
	struct vb_td *td;   /* of a parent domain, or NULL */
	uint32_t number;
	atomic_uint users; /* objects made in it, parent domains over it */
};

static inline uint32_t vb_pd_number(const struct ibv_pd *pd)
{
	return ((const struct vb_pd *)pd)->base->number;
}
static inline void vb_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add(&((struct vb_pd *)pd)->users, 1);
}
static inline void vb_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub(&((struct vb_pd *)pd)->users, 1);
}
static inline bool vb_is_pd(const struct ibv_pd *pd)
{
	return pd && vb_is_context(pd->context);
}

/* ---- events ---- */

/* The descriptor that a program polls: readable exactly while something waits. The caller's lock covers ring and hush.
 */
int vb_bell_create(void); /* a descriptor, or -1 with errno */
void vb_bell_ring(int fd);
void vb_bell_hush(int fd);
/* Waits for a ring. -1 with errno: EAGAIN where the program made the descriptor non-blocking, EINTR. */
int vb_bell_wait(int fd);

/* From the device, under its lock. */
void vb_on_event(const struct roci_event *ev);

void vb_async_init(struct vb_async_queue *q);
void vb_async_fini(struct vb_async_queue *q);
/* Takes back what was not delivered about `element`. Call with the device's lock free, and nothing able to raise more.
 */
void vb_async_purge(struct vb_async_queue *q, const void *element);
/* Waits until *acked equals *delivered, as every destroy must. */
void vb_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, const uint32_t *delivered);

/* ---- completion queues ---- */

struct vb_cq;

struct vb_channel {
	struct ibv_comp_channel channel;
	pthread_mutex_t lock;
	struct vb_cq *head, **tail; /* CQs with events that wait */
};

struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct vb_link link;
	struct roci_cq *engine;
	pthread_mutex_t consumer; /* who polls, purges or resizes */

	struct vb_cq *next; /* in the channel's queue, under its lock, as the next two */
	unsigned waiting;   /* its events there */
	uint32_t comp_delivered;
	uint32_t async_delivered; /* under the async queue's lock */

	bool batch; /* between ibv_start_poll and ibv_end_poll, by `poller`, which holds `consumer` */
	pthread_t poller;
	struct roci_cqe cqe; /* what the read functions read */
};

static inline bool vb_is_cq(const struct ibv_cq *cq)
{
	return cq && vb_is_context(cq->context);
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void vb_cq_ex_init(struct vb_cq *cq);
/* Locks the consumers of both (which may be the same, or NULL) in order, and lets them go. */
void vb_cq_shut_out(struct vb_cq *a, struct vb_cq *b);
void vb_cq_let_in(struct vb_cq *a, struct vb_cq *b);

void vb_channel_push(struct vb_cq *cq);
/* Forgets the CQ's events that were not delivered. */
void vb_channel_purge(struct vb_cq *cq);

/* ---- memory ---- */

struct vb_mr {
	struct ibv_mr mr;
	struct vb_link link;
	struct roci_mr *engine;
	uint64_t iova;
	unsigned access;
};
struct vb_mw {
	struct ibv_mw mw;
	struct vb_link link;
	struct roci_mw *engine;
};

/* 0 if every page of it is there and may be read (written, where `write`); EFAULT. Brings the pages in. */
int vb_range_check(void *addr, size_t len, bool write);

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		 uint32_t num_sge);
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* ---- queue pairs ---- */

struct vb_srq {
	struct ibv_srq srq;
	struct vb_link link;
	struct roci_srq *engine;
	uint32_t delivered; /* under the async queue's lock */
};

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

struct vb_ah {
	struct ibv_ah ah;
	struct roci_av av;
};

/* Address vector of *attr. Device lock held. EINVAL: no GRH, wrong port, bad index. */
int vb_make_av(struct vb_context *ctx, const struct ibv_ah_attr *attr, struct roci_av *av);

/* Work requests between ibv_wr_start() and ibv_wr_complete(). The scatter lists and inline bytes lie in arrays that
 * move as they grow, so requests hold indices until they are posted. */
struct vb_built {
	struct roci_send_wr wr;
	size_t first; /* of its SGEs, or of its inline bytes */
	size_t inline_len;
};
struct vb_builder {
	pthread_mutex_t lock;
	int err; /* the first mistake; what was built is dropped */
	struct vb_built *wrs;
	struct roci_sge *sges;
	uint8_t *bytes;
	size_t wr_count, wr_room, sge_count, sge_room, byte_count, byte_room;
};

struct vb_group {
	struct vb_group *next;
	uint8_t gid[16];
};

struct vb_qp {
	struct ibv_qp_ex ex; /* ex.qp_base is what the program holds */
#ifndef HAVE_IBV_WR_FLUSH
	vb_wr_flush_fn *wr_flush; /* part of ex to programs whose headers have it */
#endif
	struct vb_link link;
	struct roci_qp *engine;
	struct roci_qp_cap cap;
	bool sq_sig_all, has_ex;
	uint64_t send_ops;          /* enum ibv_qp_create_send_ops_flags */
	struct ibv_ah_attr ah_attr; /* as it was set; the engine keeps its own form */
	struct vb_group *groups;
	uint32_t delivered; /* under the async queue's lock */
	struct vb_builder builder;
};

#ifndef HAVE_IBV_WR_FLUSH
_Static_assert(offsetof(struct vb_qp, wr_flush) == sizeof(struct ibv_qp_ex), "where newer headers have it");
#endif

static inline struct vb_qp *vb_qp(struct ibv_qp *qp)
{
	return (struct vb_qp *)qp;
}
static inline bool vb_is_qp(const struct ibv_qp *qp)
{
	return qp && vb_is_context(qp->context);
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Fills wr->bind. EINVAL: NULL or foreign objects. */
int vb_bind_translate(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info,
		      struct roci_send_wr *wr);
void vb_builder_init(struct vb_qp *qp);
void vb_builder_fini(struct vb_qp *qp);
/* Leaves every multicast group of the QP. Device lock held. */
void vb_mcast_leave_all(struct vb_qp *qp);

/* ---- queries, parent domains: the entries of struct verbs_context ---- */

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t attr_size);
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

#endif
