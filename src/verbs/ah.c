/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

static atomic_uint live_ahs;
static atomic_uint next_handle = 1;

int vb_ah_make_av(struct vb_context *ctx, const struct ibv_ah_attr *attr, bool datagram, struct roci_av *av)
{
	/* RoCE addresses are GIDs: IBTA annex A17 makes the GRH mandatory. */
	if (!attr->is_global)
		return ROCI_REFUSE(EINVAL, "ah_attr.is_global 0: RoCE needs 1, and the peer's GID in ah_attr.grh.dgid");
	if (attr->port_num != VB_PORT)
		return ROCI_REFUSE(EINVAL, "ah_attr.port_num %u: roci0 has port 1 only", attr->port_num);
	struct roci_ah_params params = {
		.sgid_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.datagram = datagram,
	};
	memcpy(params.dgid, attr->grh.dgid.raw, sizeof(params.dgid));
	return -roci_device_make_av(ctx->dev, &params, av);
}

ALSO_1_0(ibv_create_ah);
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (!vb_is_pd(pd) || !attr)
		return vb_null(EINVAL);
	if (!vb_quota_take(&live_ahs, ROCI_MAX_AH))
		return vb_null(ENOMEM);
	int err = ENOMEM;
	struct vb_ah *ah = calloc(1, sizeof(*ah));
	if (!ah)
		goto err_quota;
	struct vb_context *ctx = vb_context(pd->context);
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->ah.handle = atomic_fetch_add(&next_handle, 1);
	roci_device_lock(ctx->dev);
	err = vb_ah_make_av(ctx, attr, true, &ah->av);
	if (!err)
		roci_device_hold_gid(ctx->dev, ah->av.sgid_index);
	roci_device_unlock(ctx->dev);
	if (err)
		goto err_free;
	vb_pd_get(pd);
	return &ah->ah;

err_free:
	free(ah);
err_quota:
	vb_quota_give(&live_ahs);
	return vb_null(err);
}

ALSO_1_0(ibv_destroy_ah);
VERB_DEFINE(1, ibv_destroy_ah, struct ibv_ah *, ah)
{
	if (!ah || !vb_is_ours(ah->context))
		return EINVAL;
	struct roci_device *dev = vb_context(ah->context)->dev;
	if (dev) /* else the context is closed */
		roci_device_release_gid(dev, ((struct vb_ah *)ah)->av.sgid_index);
	vb_pd_put(ah->pd);
	vb_quota_give(&live_ahs);
	free(ah);
	return 0;
}
