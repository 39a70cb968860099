/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared receive queue of an id. */
#include "rdmacm/device.h"

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!id || !attr)
		return cma_error(EINVAL);
	if (!id->verbs || id->srq)
		return cma_error(CMA_REFUSE(EINVAL, "the id has %s",
					    id->srq ? "an SRQ already" : "no device: it comes with an address"));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd ? id->pd : cma_default_pd();
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		if (!attr->pd)
			return -1;
	}
	if (attr->pd->context != id->verbs)
		return cma_error(CMA_REFUSE(EINVAL, "pd is of another context than id->verbs"));
	struct ibv_srq *srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	id->srq = srq;
	id->pd = attr->pd;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (!attr)
		return cma_error(EINVAL);
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | (pd ? IBV_SRQ_INIT_ATTR_PD : 0),
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int result = rdma_create_srq_ex(id, &ex);
	attr->attr = ex.attr;
	return result;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (!id || !id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
