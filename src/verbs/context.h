/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device that programs see, and its contexts (device.c, port.c, query.c).
 *
 * In all headers of this room: an object begins with its public structure, so that a cast leads from one to the other;
 * the engine's object hangs on it. Functions of the public API return what its manual says: a positive errno, -1 with
 * errno, or NULL with errno; a positive errno is in errno, too (VERB_DEFINE in verbs/public.h). Other
 * functions declared in these headers return 0 or a positive errno, unless they say otherwise.
 *
 * Locks, in the order in which they may be taken:
 *	1. a builder's lock (verbs/qp.h)
 *	2. a CQ's consumer lock (verbs/cq.h); two of them by rising address
 *	3. the device's lock (roci_device_lock)
 *	4. the lock of a completion channel, or of a context's async queue
 * Two more locks are never held together with others: the one of the device list (device.c), and the public mutex of a
 * CQ, QP or SRQ, which counts acknowledged events.
 */
#ifndef ROCI_VERBS_CONTEXT_H
#define ROCI_VERBS_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device/device.h"
#include "engine/list.h"
#include "engine/why.h"
#include "verbs/async.h"
#include "verbs/public.h"

#define VB_PORT         1 /* the only one */
#define VB_COMP_VECTORS 1
#define VB_DEFAULT_PKEY 0xffff

/* ---- the device ---- */

/* Vendor libraries (mlx5dv_is_supported) look behind struct ibv_device for a mark of their own. They find zeroes. */
struct vb_device {
	struct ibv_device device;
	char zeroes[4096];
};
extern struct vb_device vb_the_device;

/* The node GUID, big-endian: the EUI-64 of the first hardware address. */
__be64 vb_device_guid(void);

/* The link width and speed codes of interface `ifname`, see <infiniband/verbs.h>. */
void vb_port_speed(const char *ifname, uint8_t *width, uint8_t *speed);

/* ---- contexts ---- */

/* The objects of a context, in the order in which closing it destroys them. */
enum vb_kind { VB_QP, VB_SRQ, VB_MW, VB_MR, VB_CQ, VB_KINDS };

struct vb_context {
	struct roci_device *dev;            /* NULL: closed, but some of its objects still exist */
	struct roci_list closed;            /* node among such contexts */
	struct roci_list open;              /* node among the device's contexts; device's lock */
	struct roci_list objects[VB_KINDS]; /* nodes of the objects; device's lock */
	atomic_uint others;                 /* objects that are in none of the lists */
	struct vb_async_queue async;
	struct verbs_context vctx; /* last: the program's pointer is &vctx.context */
};

static inline struct vb_context *vb_context(const struct ibv_context *c)
{
	return roci_container_of(c, struct vb_context, vctx.context);
}
/* True for a context of this device, open or closed; false for NULL. */
static inline bool vb_is_ours(const struct ibv_context *c)
{
	return c && c->device == &vb_the_device.device;
}
/* True for an open one. */
static inline bool vb_is_context(const struct ibv_context *c)
{
	return vb_is_ours(c) && (vb_context(c)->dev || ROCI_REFUSE(false, "the context is closed"));
}
/* An object that the device does not know, and its end: a PD, a thread domain, a channel. */
static inline void vb_context_get(struct ibv_context *c)
{
	atomic_fetch_add(&vb_context(c)->others, 1);
}
static inline void vb_context_put(struct ibv_context *c)
{
	atomic_fetch_sub(&vb_context(c)->others, 1);
}
/* Once the context is closed: its objects can only be destroyed. The calls that go by pointers refuse all else, as
 * vb_is_context() does for the others. */
void vb_context_refuse_calls(struct vb_context *ctx);

/* Takes one of `max`; false: all are taken. */
bool vb_quota_take(atomic_uint *used, unsigned max);
void vb_quota_give(atomic_uint *used);

/* Sets errno to a positive or negative error number and returns NULL: the function that uses it, a public one, refuses
 * the call. vb_null_in(): the one named `call` does. */
#define vb_null(err) vb_null_in(__func__, err)
void *vb_null_in(const char *call, int err);

/* ---- entries of struct verbs_context ---- */

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t attr_size);
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/* Not supported. */
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);
int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);
struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context, struct ibv_flow_action_esp_attr *attr);
struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *attr);
struct ibv_counters *vb_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr);

#endif
