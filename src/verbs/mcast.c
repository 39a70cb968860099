/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of UD queue pairs. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/qp.h"
#include "wire/gid.h"

struct group {
	struct roci_list joined; /* node of its QP */
	uint8_t gid[16];
};

static struct group *group_of(struct roci_list *joined)
{
	return roci_container_of(joined, struct group, joined);
}

static struct group *find(struct vb_qp *qp, const uint8_t gid[16])
{
	for (struct roci_list *joined = qp->groups.next; joined != &qp->groups; joined = joined->next) {
		if (!memcmp(group_of(joined)->gid, gid, 16))
			return group_of(joined);
	}
	return NULL;
}

/* Device lock held. */
static int attach(struct vb_context *ctx, struct vb_qp *qp, const uint8_t gid[16])
{
	if (find(qp, gid))
		return 0; /* counted once, as in the kernel */
	struct group *group = malloc(sizeof(*group));
	if (!group)
		return ENOMEM;
	int err = -roci_device_join(ctx->dev, gid);
	if (err)
		goto err_free;
	err = -roci_qp_attach_mcast(qp->engine, gid);
	if (err)
		goto err_leave;
	memcpy(group->gid, gid, 16);
	roci_list_append(&qp->groups, &group->joined);
	return 0;

err_leave:
	roci_device_leave(ctx->dev, gid);
err_free:
	free(group);
	return err;
}

/* Device lock held. */
static void leave(struct vb_qp *qp, struct group *group)
{
	roci_qp_detach_mcast(qp->engine, group->gid);
	roci_device_leave(vb_context(qp->ex.qp_base.context)->dev, group->gid);
	roci_list_remove(&group->joined);
	free(group);
}

bool vb_mcast_joined(struct vb_qp *qp)
{
	struct roci_device *dev = vb_context(qp->ex.qp_base.context)->dev;
	roci_device_lock(dev);
	bool joined = !roci_list_empty(&qp->groups);
	roci_device_unlock(dev);
	return joined;
}

void vb_mcast_leave_all(struct vb_qp *qp)
{
	while (!roci_list_empty(&qp->groups))
		leave(qp, group_of(qp->groups.next));
}

ALSO_1_0(ibv_attach_mcast);
VERB_DEFINE(3, ibv_attach_mcast, struct ibv_qp *, qp, const union ibv_gid *, gid, uint16_t, lid)
{
	if (!vb_is_qp(qp) || !gid)
		return EINVAL;
	if (qp->qp_type != IBV_QPT_UD)
		return ROCI_REFUSE(EINVAL, "qp_type %d: only UD QPs can join a group", (int)qp->qp_type);
	if (!roci_gid_is_multicast(gid->raw))
		return ROCI_REFUSE(EINVAL, "gid is no multicast address");
	struct vb_context *ctx = vb_context(qp->context);
	roci_device_lock(ctx->dev);
	int err = attach(ctx, vb_qp(qp), gid->raw);
	roci_device_unlock(ctx->dev);
	return err;
}

ALSO_1_0(ibv_detach_mcast);
VERB_DEFINE(3, ibv_detach_mcast, struct ibv_qp *, qp, const union ibv_gid *, gid, uint16_t, lid)
{
	if (!vb_is_qp(qp) || !gid)
		return EINVAL;
	if (qp->qp_type != IBV_QPT_UD)
		return ROCI_REFUSE(EINVAL, "qp_type %d: only UD QPs are in groups", (int)qp->qp_type);
	struct vb_context *ctx = vb_context(qp->context);
	int err = 0;
	roci_device_lock(ctx->dev);
	struct group *group = find(vb_qp(qp), gid->raw);
	if (group)
		leave(vb_qp(qp), group);
	else
		err = ROCI_REFUSE(EINVAL, "the QP is not in the group");
	roci_device_unlock(ctx->dev);
	return err;
}
