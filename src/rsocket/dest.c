/* SPDX-License-Identifier: BSD-2-Clause */
#include "rsocket/dest.h"

#include <stdlib.h>
#include <string.h>

static bool same_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family ||
	    ((const struct sockaddr_in *)a)->sin_port != ((const struct sockaddr_in *)b)->sin_port)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

static struct rs_dest *dest_of(struct roci_list *used)
{
	return roci_container_of(used, struct rs_dest, used);
}

static void destroy(struct rs_dest *dest)
{
	if (dest->ah)
		ibv_destroy_ah(dest->ah);
	free(dest);
}

/* One can be forgotten: there are more than sends and the peer. */
static void forget_oldest(struct rs_dests *dests)
{
	struct roci_list *l = dests->used.next;
	while (dest_of(l) == dests->peer || dest_of(l)->sends)
		l = l->next;
	roci_list_remove(l);
	dests->count--;
	destroy(dest_of(l));
}

static struct rs_dest *find(struct rs_dests *dests, const struct sockaddr_storage *addr)
{
	for (struct roci_list *l = dests->used.prev; l != &dests->used; l = l->prev) {
		if (same_addr(&dest_of(l)->addr, addr))
			return dest_of(l);
	}
	return NULL;
}

void rs_dests_init(struct rs_dests *dests)
{
	roci_list_init(&dests->used);
}

struct rs_dest *rs_dest_use(struct rs_dests *dests, const struct sockaddr_storage *addr)
{
	struct rs_dest *dest = find(dests, addr);
	if (dest) {
		roci_list_remove(&dest->used);
	} else {
		dest = calloc(1, sizeof(*dest));
		if (!dest)
			return NULL;
		memcpy(&dest->addr, addr, rs_addr_len((const struct sockaddr *)addr));
		if (dests->count == RS_MAX_DESTS)
			forget_oldest(dests);
		dests->count++;
	}
	roci_list_append(&dests->used, &dest->used);
	return dest;
}

void rs_dests_free(struct rs_dests *dests)
{
	struct roci_list *used;
	while ((used = roci_list_take_first(&dests->used)))
		destroy(dest_of(used));
}

/* ---- the address handle ---- */

static int gid_index(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	union ibv_gid entry;
	for (int i = 0; !ibv_query_gid(context, port, i, &entry); i++) {
		if (!memcmp(&entry, gid, sizeof(entry)))
			return i;
	}
	return -1;
}

static struct ibv_ah *make_ah(const struct rdma_cm_id *own, struct rs_dest *dest)
{
	struct rdma_cm_id *id;
	struct ibv_ah *ah = NULL;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return NULL;
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&dest->addr, 2000) && !rdma_resolve_route(id, 2000)) {
		int index = gid_index(own->verbs, own->port_num, &own->route.addr.addr.ibaddr.sgid);
		struct ibv_ah_attr attr = {.is_global = 1,
					   .port_num = own->port_num,
					   .grh = {.dgid = id->route.addr.addr.ibaddr.dgid,
						   .hop_limit = id->route.path_rec->hop_limit,
						   .sgid_index = (uint8_t)index}};
		if (index >= 0)
			ah = ibv_create_ah(own->pd, &attr);
	}
	rdma_destroy_id(id);
	return ah;
}

void rs_dest_heard(struct rs_dests *dests, const struct sockaddr_storage *addr, struct rdma_cm_id *id, uint32_t qpn,
		   bool answer)
{
	struct rs_dest *dest = find(dests, addr);
	if (!dest)
		return;
	if (!answer || !dest->asked) {
		dest->doubted = dest->doubted || dest->qpn != qpn;
		return;
	}
	if (!dest->ah)
		dest->ah = make_ah(id, dest);
	if (!dest->ah)
		return;
	dest->qpn = qpn;
	dest->asked = dest->doubted = false;
}
