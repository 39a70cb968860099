/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses to a device and a route: rdma_bind_addr(), rdma_resolve_addr(), rdma_resolve_route(). */
#include <string.h>
#include <unistd.h>

#include "rdmacm/address.h"
#include "rdmacm/device.h"
#include "rdmacm/manager.h"

/* The kernel's value for Ethernet, where no subnet manager knows one: 4.096 us << 16, a quarter of a second. */
#define PACKET_LIFE_TIME 16

int cma_bind_gid(struct cma_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	if (cma_gid_index(id, gid, ifindex) < 0)
		return -ENODEV;
	struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	memcpy(ib->sgid.raw, gid, sizeof(ib->sgid.raw));
	ib->pkey = htons(CMA_PKEY);
	id->id.verbs = cma_device_context();
	id->id.port_num = CMA_PORT_NUM;
	return 0;
}

/* Binds the id to the device by its source address. */
static int bind_device(struct cma_id *id)
{
	const struct sockaddr *src = &id->id.route.addr.src_addr;
	union ibv_gid gid;
	cma_addr_to_gid(src, &gid);
	int err = cma_bind_gid(id, gid.raw, cma_addr_scope(src));
	if (!err && !id->id.pd)
		id->id.pd = cma_default_pd();
	return err;
}

static int bind_addr(struct cma_id *id, const struct sockaddr *addr, bool connects)
{
	socklen_t len = cma_addr_len(addr);
	if (!len)
		return addr ? CMA_REFUSE(-EAFNOSUPPORT, "sa_family %d: AF_INET and AF_INET6 are allowed",
					 addr->sa_family)
			    : -EINVAL;
	if (id->state != CMA_IDLE)
		return CMA_REFUSE(-EINVAL, "the id is %s; it can be bound once", cma_state_name(id));
	if (!cma_is_alive(id))
		return -ENODEV;
	if (cma_addr_is_link_local(addr) && !cma_addr_scope(addr))
		return CMA_REFUSE(-EINVAL, "sin6_scope_id 0: a link-local address needs its interface");
	memcpy(&id->id.route.addr.src_storage, addr, len);
	if (!cma_addr_is_any(addr) && bind_device(id)) {
		memset(&id->id.route.addr.src_storage, 0, len);
		return CMA_REFUSE(-EADDRNOTAVAIL,
				  "the address is not one of this host (ip addr), or not one that roci0 has a GID for");
	}
	int err = cma_bind_port(id, connects);
	if (err) {
		roci_verbs_why("port %u of the port space: another id of this host has it, or no port is free",
			       cma_addr_port(addr));
		memset(&id->id.route.addr.src_storage, 0, len);
		id->id.verbs = NULL;
		return err;
	}
	id->state = CMA_BOUND;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return id ? cma_result(bind_addr(cma_id(id), addr, false)) : cma_error(EINVAL);
}

/* The source address that the routing tables choose for dst, with port 0. Nothing is sent. */
static int route_source(const struct cma_id *id, const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_storage to = {0};
	int err;
	memcpy(&to, dst, cma_addr_len(dst));
	if (!cma_addr_port(dst))
		cma_addr_set_port((struct sockaddr *)&to, 9); /* connect() requires one */
	roci_device_lock(id->dev);
	err = roci_device_route_source(id->dev, (struct sockaddr *)&to, cma_addr_len(dst), src);
	roci_device_unlock_quiet(id->dev);
	if (!err)
		cma_addr_set_port((struct sockaddr *)src, 0);
	return err;
}

/* The wildcard of dst's family. */
static void any_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	memset(src, 0, sizeof(*src));
	src->ss_family = dst->sa_family;
}

/* As for sockets, the wildcard as destination means this host. */
static void set_destination(struct cma_id *id, const struct sockaddr *dst)
{
	struct rdma_addr *addr = &id->id.route.addr;
	memset(&addr->dst_storage, 0, sizeof(addr->dst_storage));
	memcpy(&addr->dst_storage, dst, cma_addr_len(dst));
	if (!cma_addr_is_any(dst))
		return;
	if (dst->sa_family == AF_INET)
		addr->dst_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		addr->dst_sin6.sin6_addr = in6addr_loopback;
}

/* Chooses a source address if the id is bound to the wildcard. Keeps the port. */
static int choose_source(struct cma_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	if (!cma_addr_is_any(&addr->src_addr))
		return 0;
	struct sockaddr_storage src;
	int err = route_source(id, &addr->dst_addr, &src);
	if (err)
		return err;
	uint16_t port = cma_addr_port(&addr->src_addr);
	addr->src_storage = src;
	cma_addr_set_port(&addr->src_addr, port);
	return 0;
}

/* Listens on the source address's UDP port 4791. An error, which was printed on stderr, means that answers of other
 * hosts cannot arrive. Peers on this host are reached without the port. */
static int open_port(const struct cma_id *id)
{
	if (cma_gid_index(id, id->id.route.addr.addr.ibaddr.dgid.raw, 0) >= 0)
		return 0;
	roci_device_lock(id->dev);
	int err = roci_device_listen(id->dev, cma_sgid_index(id));
	roci_device_unlock(id->dev);
	return err;
}

static int resolve_addr(struct cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	if (!cma_addr_len(dst))
		return dst ? CMA_REFUSE(-EAFNOSUPPORT, "sa_family %d: AF_INET and AF_INET6 are allowed", dst->sa_family)
			   : -EINVAL;
	if (id->state != CMA_IDLE && id->state != CMA_BOUND)
		return CMA_REFUSE(-EINVAL, "the id is %s; rdma_resolve_addr() comes first", cma_state_name(id));
	if (!cma_is_alive(id))
		return -ENODEV;
	if (id->state == CMA_IDLE) {
		struct sockaddr_storage any;
		any_source(dst, &any);
		if (src && src->sa_family && src->sa_family != dst->sa_family)
			return CMA_REFUSE(-EINVAL, "sa_family %d of src_addr, %d of dst_addr: they must be equal",
					  src->sa_family, dst->sa_family);
		int err = bind_addr(id, src && src->sa_family ? src : (struct sockaddr *)&any, true);
		if (err)
			return err;
	}
	struct rdma_addr *addr = &id->id.route.addr;
	if (addr->src_addr.sa_family != dst->sa_family)
		return CMA_REFUSE(-EINVAL, "sa_family %d: the id is bound to an address of family %d", dst->sa_family,
				  addr->src_addr.sa_family);
	if (cma_addr_is_link_local(dst) && !cma_addr_scope(dst))
		return CMA_REFUSE(-EINVAL, "sin6_scope_id 0: a link-local address needs its interface");
	set_destination(id, dst);
	int err = choose_source(id);
	if (err)
		return CMA_REFUSE(err, "the kernel has no route to dst_addr (ip route get)");
	cma_addr_to_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
	err = bind_device(id);
	if (err)
		roci_verbs_why(
			"roci0 has no GID for the address that the route to dst_addr leaves from (ip route get)");
	else
		err = open_port(id);
	if (err) { /* it shows by an event */
		roci_verbs_refused("rdma_resolve_addr", -err);
		return cma_event_post(id, RDMA_CM_EVENT_ADDR_ERROR, err);
	}
	id->state = CMA_ADDR_RESOLVED;
	return cma_event_post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

/* The timeout is not used: the routing tables answer at once, and the first packet resolves the neighbour. */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int timeout_ms)
{
	if (!id)
		return cma_error(EINVAL);
	int err = resolve_addr(cma_id(id), src_addr, dst_addr);
	return err ? cma_error(err) : cma_complete(cma_id(id));
}

static enum ibv_rate port_rate(struct ibv_context *context)
{
	struct ibv_port_attr attr;
	if (ibv_query_port(context, CMA_PORT_NUM, &attr))
		return IBV_RATE_10_GBPS;
	int lanes = attr.active_width == 2 ? 4 : 1;
	switch (attr.active_speed * lanes) {
	case 1: return IBV_RATE_2_5_GBPS;
	case 2: return IBV_RATE_5_GBPS;
	case 32: return IBV_RATE_25_GBPS;
	case 16: return IBV_RATE_40_GBPS;
	case 64: return IBV_RATE_50_GBPS;
	case 128: return IBV_RATE_100_GBPS;
	case 256: return IBV_RATE_200_GBPS;
	default: return IBV_RATE_10_GBPS;
	}
}

void cma_fill_route(struct cma_id *id)
{
	struct rdma_route *route = &id->id.route;
	roci_device_lock(id->dev);
	uint8_t mtu = roci_device_path_mtu(id->dev, cma_sgid_index(id), route->addr.addr.ibaddr.dgid.raw);
	roci_device_unlock_quiet(id->dev);
	id->path = (struct ibv_sa_path_rec){
		.dgid = route->addr.addr.ibaddr.dgid,
		.sgid = route->addr.addr.ibaddr.sgid,
		.hop_limit = 64,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htons(CMA_PKEY),
		.sl = id->tos >> 5,
		.mtu_selector = 2, /* exactly */
		.mtu = mtu,
		.rate_selector = 2,
		.rate = (uint8_t)port_rate(id->id.verbs),
		.packet_life_time_selector = 2,
		.packet_life_time = PACKET_LIFE_TIME,
	};
	route->path_rec = &id->path;
	route->num_paths = 1;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (!id)
		return cma_error(EINVAL);
	if (cma_id(id)->state != CMA_ADDR_RESOLVED)
		return cma_error(
			CMA_REFUSE(EINVAL, "the id is %s; rdma_resolve_route() comes after RDMA_CM_EVENT_ADDR_RESOLVED",
				   cma_state_name(cma_id(id))));
	cma_fill_route(cma_id(id));
	cma_id(id)->state = CMA_ROUTE_RESOLVED;
	int err = cma_event_post(cma_id(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return err ? cma_error(err) : cma_complete(cma_id(id));
}
