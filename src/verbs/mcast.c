/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of UD queue pairs. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/objects.h"
#include "wire/gid.h"

static struct vb_group **find(struct vb_qp *qp, const uint8_t gid[16])
{
	struct vb_group **p = &qp->groups;
	while (*p && memcmp((*p)->gid, gid, 16))
		p = &(*p)->next;
	return p;
}

/* Device lock held. */
static int attach(struct vb_context *ctx, struct vb_qp *qp, const uint8_t gid[16])
{
	if (*find(qp, gid))
		return 0; /* already there: the kernel counts once, too */
	struct vb_group *group = malloc(sizeof(*group));
	if (!group)
		return ENOMEM;
	int err = -roci_device_join(ctx->dev, gid);
	if (err)
		goto err_free;
	err = -roci_qp_attach_mcast(qp->engine, gid);
	if (err)
		goto err_leave;
	memcpy(group->gid, gid, 16);
	group->next = qp->groups;
	qp->groups = group;
	return 0;

err_leave:
	roci_device_leave(ctx->dev, gid);
err_free:
	free(group);
	return err;
}

static void leave(struct vb_context *ctx, struct vb_qp *qp, struct vb_group **p)
{
	struct vb_group *group = *p;
	roci_qp_detach_mcast(qp->engine, group->gid);
	roci_device_leave(ctx->dev, group->gid);
	*p = group->next;
	free(group);
}

void vb_mcast_leave_all(struct vb_qp *qp)
{
	while (qp->groups)
		leave(vb_context(qp->ex.qp_base.context), qp, &qp->groups);
}

ALSO_1_0(ibv_attach_mcast);
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!vb_is_qp(qp) || !gid || qp->qp_type != IBV_QPT_UD || !roci_gid_is_multicast(gid->raw))
		return EINVAL;
	struct vb_context *ctx = vb_context(qp->context);
	roci_device_lock(ctx->dev);
	int err = attach(ctx, vb_qp(qp), gid->raw);
	roci_device_unlock(ctx->dev);
	return err;
}

ALSO_1_0(ibv_detach_mcast);
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!vb_is_qp(qp) || !gid || qp->qp_type != IBV_QPT_UD)
		return EINVAL;
	struct vb_context *ctx = vb_context(qp->context);
	int err = EINVAL;
	roci_device_lock(ctx->dev);
	struct vb_group **p = find(vb_qp(qp), gid->raw);
	if (*p) {
		leave(ctx, vb_qp(qp), p);
		err = 0;
	}
	roci_device_unlock(ctx->dev);
	return err;
}
