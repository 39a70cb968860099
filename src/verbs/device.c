/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, and contexts: from ibv_get_device_list() to ibv_close_device(). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/event_fd.h"
#include "verbs/mr.h"
#include "verbs/pd.h"
#include "verbs/qp.h"
#include "verbs/sysfs/sysfs.h"

struct vb_device vb_the_device = {
	.device =
		{
			.node_type = IBV_NODE_CA,
			.transport_type = IBV_TRANSPORT_IB,
			.name = "roci0",
			.dev_name = "uverbs-roci0",
		},
};
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER; /* device_guid, the sysfs tree, closed contexts */
static __be64 device_guid;

void *vb_null_in(const char *call, int err)
{
	roci_verbs_refused(call, abs(err));
	return NULL;
}

bool vb_quota_take(atomic_uint *used, unsigned max)
{
	if (atomic_fetch_add(used, 1) < max)
		return true;
	atomic_fetch_sub(used, 1);
	return false;
}

void vb_quota_give(atomic_uint *used)
{
	atomic_fetch_sub(used, 1);
}

static void device_refresh(void)
{
	struct roci_gids gids;
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* or device_lock would stay locked */
	vb_sysfs_current();
	if (roci_device_host_gids(&gids))
		gids.count = 0;
	pthread_mutex_lock(&device_lock);
	roci_gid_guid(gids.entries, gids.count, (uint8_t *)&device_guid);
	vb_sysfs_refresh(&vb_the_device.device, &gids, device_guid);
	pthread_mutex_unlock(&device_lock);
	pthread_setcancelstate(before, NULL);
}

__be64 vb_device_guid(void)
{
	pthread_mutex_lock(&device_lock);
	__be64 guid = device_guid;
	pthread_mutex_unlock(&device_lock);
	return guid;
}

ALSO_1_0(ibv_get_device_list);
/* Only roci0 is listed. A program that wants the machine's real devices runs without `roci run`. */
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));
	if (num_devices)
		*num_devices = list ? 1 : 0;
	if (!list)
		return vb_null(ENOMEM);
	device_refresh();
	list[0] = &vb_the_device.device;
	return list;
}

ALSO_1_0(ibv_free_device_list);
void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

ALSO_1_0(ibv_get_device_name);
const char *ibv_get_device_name(struct ibv_device *device)
{
	return device ? device->name : vb_null(EINVAL);
}

ALSO_1_0(ibv_get_device_guid);
__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return device == &vb_the_device.device ? vb_device_guid() : 0;
}

/* The index is the kernel's, which does not know this device. */
int ibv_get_device_index(struct ibv_device *device)
{
	errno = EOPNOTSUPP;
	return -1;
}

/* ---- contexts ---- */

static const struct verbs_context verbs_template = {
	.query_port = vb_query_port,
	.modify_cq = vb_modify_cq,
	.get_srq_num = vb_get_srq_num,
	.post_srq_ops = vb_post_srq_ops,
	.modify_qp_rate_limit = vb_modify_qp_rate_limit,
	.open_xrcd = vb_open_xrcd,
	.open_qp = vb_open_qp,
	.alloc_dm = vb_alloc_dm,
	.alloc_null_mr = vb_alloc_null_mr,
	.ibv_create_flow = vb_create_flow,
	.create_flow_action_esp = vb_create_flow_action_esp,
	.create_wq = vb_create_wq,
	.create_rwq_ind_table = vb_create_rwq_ind_table,
	.create_counters = vb_create_counters,
	.advise_mr = vb_advise_mr,
	.alloc_parent_domain = vb_alloc_parent_domain,
	.dealloc_td = vb_dealloc_td,
	.alloc_td = vb_alloc_td,
	.query_rt_values = vb_query_rt_values,
	.create_cq_ex = vb_create_cq_ex,
	.query_device_ex = vb_query_device_ex,
	.create_qp_ex = vb_create_qp_ex,
	.create_srq_ex = vb_create_srq_ex,
	.sz = sizeof(struct verbs_context),
	.context =
		{
			.device = &vb_the_device.device,
			.ops =
				{
					._compat_query_device = ibv_query_device,
					._compat_query_port = ibv_query_port,
					.alloc_mw = vb_alloc_mw,
					.bind_mw = vb_bind_mw,
					.dealloc_mw = vb_dealloc_mw,
					.poll_cq = vb_poll_cq,
					.req_notify_cq = vb_req_notify_cq,
					.post_srq_recv = vb_post_srq_recv,
					.post_send = vb_post_send,
					.post_recv = vb_post_recv,
				},
			.num_comp_vectors = VB_COMP_VECTORS,
			.abi_compat = __VERBS_ABI_IS_EXTENDED,
		},
};

static void on_port_event(enum roci_async_type type, struct roci_device *dev)
{
	struct roci_list *contexts = roci_device_contexts(dev);
	for (struct roci_list *open = contexts->next; open != contexts; open = open->next)
		vb_async_push_port(type, roci_container_of(open, struct vb_context, open));
}

static void on_event(const struct roci_event *ev)
{
	bool of_port = ev->type == ROCI_EVENT_GID_CHANGE || ev->type == ROCI_EVENT_PORT_ACTIVE ||
		       ev->type == ROCI_EVENT_PORT_ERR;
	if (ev->kind == ROCI_EV_COMPLETION)
		vb_channel_push(ev->user);
	else if (of_port)
		on_port_event(ev->type, ev->user);
	else
		vb_async_push(ev->type, ev->user);
}

/* The locks of a forked child's inherited objects are free, and nobody will acknowledge events that the parent has
 * fetched: the child destroys objects, or leaves them alone. The device's lock need not be held. */
static void reset_objects(struct vb_context *ctx)
{
	struct roci_list *objects;
	for (int kind = 0; kind < VB_KINDS; kind++) {
		objects = &ctx->objects[kind];
		for (struct roci_list *l = objects->next; l != objects; l = l->next) {
			if (kind == VB_QP) {
				struct vb_qp *qp = roci_container_of(l, struct vb_qp, object);
				vb_builder_reset(qp);
				vb_async_reset_acks(&qp->ex.qp_base.mutex, &qp->ex.qp_base.cond);
				qp->async_delivered = qp->ex.qp_base.events_completed;
			} else if (kind == VB_SRQ) {
				struct vb_srq *srq = roci_container_of(l, struct vb_srq, object);
				vb_async_reset_acks(&srq->srq.mutex, &srq->srq.cond);
				srq->async_delivered = srq->srq.events_completed;
			} else if (kind == VB_CQ) {
				struct vb_cq *cq = roci_container_of(l, struct vb_cq, object);
				vb_cq_reset(cq);
				if (cq->cq.channel)
					vb_channel_reset((struct vb_channel *)cq->cq.channel, objects);
			}
		}
	}
}

static void after_fork_in_child(struct roci_device *dev)
{
	struct roci_list *contexts = roci_device_contexts(dev);
	pthread_mutex_init(&device_lock, NULL);
	for (struct roci_list *l = contexts->next; l != contexts; l = l->next) {
		struct vb_context *ctx = roci_container_of(l, struct vb_context, open);
		vb_async_reset(&ctx->async);
		reset_objects(ctx);
	}
}

ALSO_1_0(ibv_open_device);
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (device != &vb_the_device.device)
		return vb_null(device ? ROCI_REFUSE(ENODEV, "device is not roci0") : EINVAL);

	struct vb_context *ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return vb_null(ENOMEM);
	ctx->vctx = verbs_template;
	struct ibv_context *c = &ctx->vctx.context;
	pthread_mutex_init(&c->mutex, NULL);
	vb_async_init(&ctx->async);
	for (int kind = 0; kind < VB_KINDS; kind++)
		roci_list_init(&ctx->objects[kind]);

	int err;
	c->async_fd = vb_event_fd_create();
	if (c->async_fd < 0) {
		err = errno;
		goto err_free;
	}
	/* Programs duplicate it, to pass it to another process. ibv_import_device() then fails there. */
	c->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (c->cmd_fd < 0) {
		err = errno;
		goto err_close_async;
	}
	roci_device_on_fork(after_fork_in_child);
	err = -roci_device_get(on_event, &ctx->dev);
	if (err)
		goto err_close_cmd;
	roci_device_lock(ctx->dev);
	roci_list_append(roci_device_contexts(ctx->dev), &ctx->open);
	roci_device_unlock(ctx->dev);
	return c;

err_close_cmd:
	close(c->cmd_fd);
err_close_async:
	close(c->async_fd);
err_free:
	vb_async_fini(&ctx->async);
	pthread_mutex_destroy(&c->mutex);
	free(ctx);
	return vb_null(err);
}

static void destroy_in_engine(struct vb_context *ctx, enum vb_kind kind, struct roci_list *object)
{
	switch (kind) {
	case VB_QP: {
		struct vb_qp *qp = roci_container_of(object, struct vb_qp, object);
		uint32_t qpn = qp->ex.qp_base.qp_num;
		vb_mcast_leave_all(qp);
		roci_qp_destroy(qp->engine);
		roci_device_free_qpn(ctx->dev, qpn);
		break;
	}
	case VB_SRQ: roci_srq_destroy(roci_container_of(object, struct vb_srq, object)->engine); break;
	case VB_MW: roci_mw_destroy(roci_container_of(object, struct vb_mw, object)->engine); break;
	case VB_MR: vb_mr_destroy_engine(ctx, roci_container_of(object, struct vb_mr, object)); break;
	case VB_CQ: roci_cq_destroy(roci_container_of(object, struct vb_cq, object)->engine); break;
	case VB_KINDS: break;
	}
}

/* Closing a device destroys its objects and ends its events, as the kernel does: a forgotten MR would let peers write
 * to memory that the program uses for something else by now. Returns true if there were objects. */
static bool destroy_objects(struct vb_context *ctx)
{
	bool any = false;
	roci_device_lock(ctx->dev);
	roci_list_remove(&ctx->open);
	for (int kind = 0; kind < VB_KINDS; kind++) {
		struct roci_list *objects = &ctx->objects[kind];
		for (struct roci_list *object = objects->next; object != objects; object = object->next) {
			destroy_in_engine(ctx, kind, object);
			any = true;
		}
	}
	roci_device_unlock(ctx->dev);
	return any;
}

/* Some programs destroy objects after their context. So the context stays in memory, in a list where leak checkers
 * find it. */
static void keep_closed(struct vb_context *ctx)
{
	static struct roci_list closed = ROCI_LIST_INIT(closed);
	pthread_mutex_lock(&device_lock);
	roci_list_append(&closed, &ctx->closed);
	pthread_mutex_unlock(&device_lock);
}

ALSO_1_0(ibv_close_device);
VERB_DEFINE(1, ibv_close_device, struct ibv_context *, context)
{
	if (!vb_is_context(context))
		return EINVAL;
	struct vb_context *ctx = vb_context(context);
	bool objects_left = destroy_objects(ctx) || atomic_load(&ctx->others);
	roci_device_put(ctx->dev);
	ctx->dev = NULL;
	close(context->cmd_fd);
	close(context->async_fd);
	if (objects_left) {
		vb_context_refuse_calls(ctx);
		keep_closed(ctx);
		return 0;
	}
	vb_async_fini(&ctx->async);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}
