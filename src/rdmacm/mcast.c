/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of datagram ids. On Ethernet no subnet manager is asked, so a join ends at once. */
#include <stdlib.h>

#include "rdmacm/address.h"
#include "rdmacm/device.h"

#define MULTICAST_QPN 0xffffff

struct cma_mcast {
	struct roci_list joined; /* node of the id */
	struct cma_id *id;
	union ibv_gid gid;
	bool send_only, attached;
	struct cma_event_count events;
	struct sockaddr_storage addr;
};

static int join(struct cma_id *id, const struct sockaddr *addr, bool send_only, void *context)
{
	socklen_t len = cma_addr_len(addr);
	if (!len || !cma_addr_is_multicast(addr))
		return CMA_REFUSE(-EINVAL, "addr is no multicast address");
	if (!cma_is_ud(id))
		return CMA_REFUSE(-EINVAL, "the id is not for datagrams: use RDMA_PS_UDP");
	if (!id->id.verbs || id->state == CMA_LISTEN)
		return CMA_REFUSE(-EINVAL,
				  "the id is %s, and a join comes after rdma_bind_addr() or "
				  "RDMA_CM_EVENT_ADDR_RESOLVED",
				  cma_state_name(id));
	struct cma_mcast *mc = calloc(1, sizeof(*mc));
	struct cma_event *ev = mc ? cma_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!ev) {
		free(mc);
		return -ENOMEM;
	}
	mc->id = id;
	mc->send_only = send_only;
	memcpy(&mc->addr, addr, len);
	cma_addr_to_gid(addr, &mc->gid);
	roci_list_append(&id->mcasts, &mc->joined);

	ev->mcast = mc;
	ev->count = &mc->events;
	ev->event.param.ud = (struct rdma_ud_param){
		.private_data = context,
		.qp_num = MULTICAST_QPN,
		.qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY,
		.ah_attr = {.is_global = 1,
			    .port_num = CMA_PORT_NUM,
			    .grh = {.dgid = mc->gid,
				    .sgid_index = cma_sgid_index(id),
				    .hop_limit = 1,
				    .traffic_class = id->tos}},
	};
	cma_event_push(ev);
	return 0;
}

int cma_mcast_attach(struct cma_mcast *mc)
{
	struct ibv_qp *qp = mc->id->id.qp;
	if (!qp || mc->send_only || mc->attached)
		return 0;
	int err = -ibv_attach_mcast(qp, &mc->gid, 0);
	mc->attached = !err;
	return err;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	if (!id)
		return cma_error(EINVAL);
	int err = join(cma_id(id), addr, false, context);
	return err ? cma_error(err) : cma_complete(cma_id(id));
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	if (!id || !attr)
		return cma_error(EINVAL);
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return cma_error(CMA_REFUSE(ENOTSUP, "comp_mask 0x%x has an unknown bit", attr->comp_mask));
	if ((attr->comp_mask & needed) != needed)
		return cma_error(
			CMA_REFUSE(EINVAL, "comp_mask 0x%x lacks the address or the join flags", attr->comp_mask));
	if (attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cma_error(CMA_REFUSE(EINVAL, "join_flags %u: see enum rdma_cm_mc_join_flags", attr->join_flags));
	bool send_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	int err = join(cma_id(id), attr->addr, send_only, context);
	return err ? cma_error(err) : cma_complete(cma_id(id));
}

static void detach(struct cma_mcast *mc)
{
	if (mc->attached && mc->id->id.qp)
		ibv_detach_mcast(mc->id->id.qp, &mc->gid, 0);
	mc->attached = false;
}

void cma_mcast_detach_all(struct cma_id *id)
{
	for (struct roci_list *joined = id->mcasts.next; joined != &id->mcasts; joined = joined->next)
		detach(roci_container_of(joined, struct cma_mcast, joined));
}

static void leave(struct cma_mcast *mc)
{
	struct cma_id *id = mc->id;
	struct roci_list events = ROCI_LIST_INIT(events), *queued;
	detach(mc);
	cma_channel_extract(id, &mc->events, &events); /* where the thread is cancelled, the id can leave again */
	roci_list_remove(&mc->joined);
	while ((queued = roci_list_take_first(&events)))
		free(cma_event_of(queued));
	free(mc);
}

static struct cma_mcast *find(const struct cma_id *id, const struct sockaddr *addr)
{
	for (struct roci_list *joined = id->mcasts.next; joined != &id->mcasts; joined = joined->next) {
		struct cma_mcast *mc = roci_container_of(joined, struct cma_mcast, joined);
		if (cma_addr_same_host((struct sockaddr *)&mc->addr, addr))
			return mc;
	}
	return NULL;
}

int rdma_leave_multicast(struct rdma_cm_id *rid, struct sockaddr *addr)
{
	if (!rid || !addr)
		return cma_error(EINVAL);
	if (!cma_addr_len(addr))
		return cma_error(CMA_REFUSE(EINVAL, "sa_family %d: AF_INET and AF_INET6 are allowed", addr->sa_family));
	struct cma_id *id = cma_id(rid);
	struct cma_mcast *mc = find(id, addr);
	if (!mc)
		return cma_error(CMA_REFUSE(EADDRNOTAVAIL, "the id has not joined this group"));
	if (id->sync)
		cma_forget_event(id); /* it may be the join's */
	leave(mc);
	return 0;
}

void cma_mcast_leave_all(struct cma_id *id)
{
	while (!roci_list_empty(&id->mcasts))
		leave(roci_container_of(id->mcasts.next, struct cma_mcast, joined));
}
