/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/manager.h"
#include "wire/gid.h"

static uint64_t mask_of(const struct roci_cm_listen *params)
{
	return params->service_mask ? params->service_mask : UINT64_MAX;
}

/* ---- listen ---- */

static bool same_address(const struct roci_cm_listen *a, const struct roci_cm_listen *b)
{
	return mask_of(a) == mask_of(b) && !((a->service_id ^ b->service_id) & mask_of(a)) &&
	       !memcmp(a->gid, b->gid, 16) && a->ifindex == b->ifindex && a->v6_only == b->v6_only;
}

int roci_cm_listen(struct roci_cm *cm, const struct roci_cm_listen *params, struct roci_listener **out)
{
	struct roci_listener *listener;

	for (struct roci_list *l = cm->listeners.next; l != &cm->listeners; l = l->next)
		if (same_address(&roci_container_of(l, struct roci_listener, all)->params, params))
			return -EADDRINUSE;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->cm = cm;
	listener->params = *params;
	listener->params.backlog = params->backlog ? params->backlog : ROCI_BACKLOG_DEFAULT;
	roci_backlog_init(&listener->backlog);
	roci_list_append(&cm->listeners, &listener->all);
	cm->listener_count++;
	cm->pending.listener_added = true;
	*out = listener;
	return 0;
}

static struct roci_exchange *first_of(const struct roci_list *requests)
{
	return roci_container_of(requests->next, struct roci_exchange, backlog.node);
}

void roci_listener_destroy(struct roci_listener *listener, uint64_t now)
{
	struct roci_backlog *backlog = &listener->backlog;
	struct roci_cm *cm = listener->cm;

	listener->params.backlog = 0; /* nothing that waits is reported any more */
	while (!roci_list_empty(&backlog->waiting)) {
		struct roci_exchange *x = first_of(&backlog->waiting);

		x->ops->destroy(x, now);
	}
	while (!roci_list_empty(&backlog->unfetched)) {
		struct roci_exchange *x = first_of(&backlog->unfetched);

		if (roci_list_empty(&x->reporting))
			roci_backlog_fetched(x, now); /* the consumer knows it */
		else
			x->ops->destroy(x, now);
	}
	roci_backlog_stop_pacing(listener);
	roci_list_remove(&listener->all);
	cm->listener_count--;
	free(listener);
}

/* ---- find ---- */

bool roci_cm_listens_at(const struct roci_cm *cm, const uint8_t gid[16])
{
	for (const struct roci_list *l = cm->listeners.next; l != &cm->listeners; l = l->next)
		if (!memcmp(roci_container_of(l, struct roci_listener, all)->params.gid, gid, 16))
			return true;
	return false;
}

/* How closely a listener fits an address: 0 not at all; the highest is the most specific. */
static unsigned closeness(const struct roci_cm_listen *params, const uint8_t address[16], uint32_t ifindex)
{
	unsigned close = 1;

	if (params->ifindex && ifindex) {
		if (params->ifindex != ifindex)
			return 0;
		close++;
	}
	if (!memcmp(params->gid, address, 16))
		return close + 4;
	if (roci_gid_is_any_ipv4(params->gid))
		return roci_gid_is_ipv4(address) ? close + 2 : 0;
	if (!roci_gid_is_any(params->gid))
		return 0;
	return params->v6_only && roci_gid_is_ipv4(address) ? 0 : close;
}

static struct roci_listener *find(struct roci_cm *cm, uint64_t service_id, const uint8_t address[16], uint32_t ifindex)
{
	struct roci_listener *best = NULL;
	unsigned best_close = 0;

	for (struct roci_list *l = cm->listeners.next; l != &cm->listeners; l = l->next) {
		struct roci_listener *listener = roci_container_of(l, struct roci_listener, all);
		unsigned close;

		if ((listener->params.service_id ^ service_id) & mask_of(&listener->params))
			continue;
		close = closeness(&listener->params, address, ifindex);
		if (close > best_close) {
			best = listener;
			best_close = close;
		}
	}
	return best;
}

/* The IP CM header repeats the addresses of the datagram (A11.3.2). Without this check a peer could reach a listener of
 * another address, or pose as another host. */
static bool ip_matches(const struct roci_cm_ip *ip, const struct roci_cm_source *from)
{
	return !memcmp(ip->src, from->nat ? from->nat->src : from->sgid, 16) &&
	       !memcmp(ip->dst, from->nat ? from->nat->dst : from->dgid, 16);
}

struct roci_listener *roci_listener_for_request(struct roci_cm *cm, const struct roci_cm_source *from,
						const struct roci_cm_msg *req, struct roci_cm_ip *ip, bool *has_ip)
{
	*ip = (struct roci_cm_ip){0};
	*has_ip = roci_cm_service_is_ip(req->service_id) &&
		  roci_cm_ip_parse(ip, req->private, roci_cm_private_room(req->attribute));
	if (*has_ip && !ip_matches(ip, from))
		return NULL;
	if (*has_ip) { /* as this host sees them */
		memcpy(ip->src, from->sgid, 16);
		memcpy(ip->dst, from->dgid, 16);
	}
	return find(cm, req->service_id, from->dgid, from->ifindex);
}
