/* SPDX-License-Identifier: BSD-2-Clause */
/* Who listens to what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/internal.h"
#include "wire/gid.h"

static uint64_t mask_of(const struct roci_cm_listen *params)
{
	return params->service_mask ? params->service_mask : UINT64_MAX;
}

/* ---- listen ---- */

static bool same_place(const struct roci_cm_listen *a, const struct roci_cm_listen *b)
{
	return mask_of(a) == mask_of(b) && !((a->service_id ^ b->service_id) & mask_of(a)) &&
	       !memcmp(a->gid, b->gid, 16) && a->ifindex == b->ifindex && a->v6_only == b->v6_only;
}

int roci_cm_listen(struct roci_cm *cm, const struct roci_cm_listen *params, struct roci_listener **out)
{
	struct roci_listener *listener;

	for (struct roci_list *l = cm->listeners.next; l != &cm->listeners; l = l->next)
		if (same_place(&roci_container_of(l, struct roci_listener, all)->params, params))
			return -EADDRINUSE;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->cm = cm;
	listener->params = *params;
	listener->params.backlog = params->backlog ? params->backlog : ROCI_BACKLOG_DEFAULT;
	roci_list_init(&listener->unfetched);
	roci_list_init(&listener->waiting);
	roci_list_append(&cm->listeners, &listener->all);
	cm->listener_count++;
	cm->pending.listener_added = true;
	*out = listener;
	return 0;
}

/* The consumer never heard of this request. */
static void give_up(struct roci_exchange *x, uint64_t now)
{
	if (x->kind == ROCI_EXCHANGE_CONN)
		roci_conn_destroy(roci_conn_of(x), now);
	else
		roci_sidr_destroy(roci_sidr_of(x), now);
}

void roci_listener_destroy(struct roci_listener *listener, uint64_t now)
{
	struct roci_cm *cm = listener->cm;

	listener->params.backlog = 0; /* nobody moves up */
	while (!roci_list_empty(&listener->waiting))
		give_up(roci_container_of(listener->waiting.next, struct roci_exchange, queued), now);
	while (!roci_list_empty(&listener->unfetched)) {
		struct roci_exchange *x = roci_container_of(listener->unfetched.next, struct roci_exchange, queued);

		if (roci_list_empty(&x->reporting))
			roci_backlog_fetched(x, now);
		else
			give_up(x, now);
	}
	roci_backlog_stop_pacing(listener);
	roci_list_remove(&listener->all);
	cm->listener_count--;
	free(listener);
}

void roci_listener_set_user(struct roci_listener *listener, void *user)
{
	listener->params.user = user;
}

/* ---- find ---- */

/* How well a listener fits an address: 0 not at all, more is closer. */
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

struct roci_listener *roci_listener_find(struct roci_cm *cm, uint64_t service_id, const uint8_t address[16],
					 uint32_t ifindex)
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

/* The header is the sender's word for what the network has said already (A11.3.2: the addresses of the connection).
 * Without this it could reach whoever listens to another address, and be whoever it likes. */
static bool is_true(const struct roci_cm_ip *ip, const struct roci_cm_source *from)
{
	return !memcmp(ip->src, from->sgid, 16) && !memcmp(ip->dst, from->dgid, 16);
}

struct roci_listener *roci_listener_for_request(struct roci_cm *cm, const struct roci_cm_source *from,
						const struct roci_cm_msg *req, struct roci_cm_ip *ip, bool *has_ip)
{
	*ip = (struct roci_cm_ip){0};
	*has_ip = roci_cm_service_is_ip(req->service_id) &&
		  roci_cm_ip_parse(ip, req->private, roci_cm_private_room(req->attribute));
	if (*has_ip && !is_true(ip, from))
		return NULL;
	return roci_listener_find(cm, req->service_id, from->dgid, from->ifindex);
}
