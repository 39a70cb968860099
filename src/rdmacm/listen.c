/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports and listeners. */
#include <string.h>

#include "device/cm_host.h"
#include "rdmacm/address.h"
#include "rdmacm/manager.h"

#define MAX_BACKLOG 1024

static void local_gid(const struct cma_id *id, uint8_t gid[16])
{
	union ibv_gid g;
	cma_addr_to_gid(&id->id.route.addr.src_addr, &g);
	memcpy(gid, g.raw, 16);
}

int cma_bind_port(struct cma_id *id, bool connects)
{
	struct sockaddr *src = &id->id.route.addr.src_addr;
	struct roci_cm_bind ask = {
		.ps = (enum roci_port_space)id->id.ps,
		.port = cma_addr_port(src),
		.v6_only = src->sa_family == AF_INET6 && id->afonly,
		.reuse = id->reuseaddr,
		.connects = connects,
	};
	local_gid(id, ask.gid);
	if (!cma_lock_cm(id))
		return -ENODEV;
	int err = roci_cm_host_bind(id->dev, &ask, &id->service);
	roci_device_unlock_quiet(id->dev);
	if (err)
		return err;
	cma_addr_set_port(src, roci_cm_service_port_of(id->service));
	return 0;
}

static int start(struct cma_id *id, unsigned backlog)
{
	struct sockaddr *src = &id->id.route.addr.src_addr;
	struct roci_cm_listen ask = {
		.service_id = roci_cm_service_id((enum roci_port_space)id->id.ps, cma_addr_port(src)),
		.v6_only = src->sa_family == AF_INET6 && id->afonly,
		.ifindex = cma_addr_scope(src),
		.backlog = backlog,
		.user = id,
	};
	local_gid(id, ask.gid);
	if (!cma_lock_cm(id))
		return -ENODEV;
	int err = roci_cm_host_listen(id->dev, id->service, &ask);
	cma_unlock_cm(id);
	return err;
}

int rdma_listen(struct rdma_cm_id *rid, int backlog)
{
	if (!rid)
		return cma_error(EINVAL);
	struct cma_id *id = cma_id(rid);
	if (id->state == CMA_IDLE) {
		struct sockaddr_in any = {.sin_family = AF_INET};
		if (rdma_bind_addr(rid, (struct sockaddr *)&any))
			return -1;
	}
	if (id->state != CMA_BOUND)
		return cma_error(CMA_REFUSE(EINVAL, "the id is %s; rdma_listen() comes after rdma_bind_addr()",
					    cma_state_name(id)));
	if (backlog <= 0 || backlog > MAX_BACKLOG)
		backlog = MAX_BACKLOG;
	int err = start(id, (unsigned)backlog);
	if (err)
		return cma_error(err);
	id->state = CMA_LISTEN;
	return 0;
}

void cma_release(struct cma_id *id)
{
	if (!id->conn && !id->sidr && !id->service)
		return;
	/* Also on a device inherited by fork(), which sends nothing. */
	roci_device_lock(id->dev);
	if (cma_is_alive(id))
		cma_send_before(id);
	if (id->conn)
		roci_conn_destroy(id->conn, roci_now());
	if (id->sidr)
		roci_sidr_destroy(id->sidr, roci_now());
	if (id->service)
		roci_cm_host_release(id->dev, id->service);
	id->conn = NULL;
	id->sidr = NULL;
	id->service = NULL;
	roci_device_unlock(id->dev);
}
