/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanges of which one end is behind a NAT. The active end sends with the cookie of the peer's last CHALLENGE; the
 * passive end answers to where the last message with a good cookie came from.
 */
#include <string.h>

#include "cm/conn_state.h"

static struct roci_exchange *natted_at(const struct roci_list *l)
{
	return roci_container_of(l, struct roci_exchange, natted);
}

/* The tables refer to the peer's address by pointer, and find by its value. */
static void move_to(struct roci_exchange *x, const uint8_t gid[16], const struct roci_nat_terms *nat)
{
	struct roci_conn *conn = x->conn;
	bool by_id = conn && conn->remote_id_node.in, by_qpn = conn && conn->remote_qpn_node.in;

	x->nat = *nat;
	if (!memcmp(x->remote_gid, gid, 16))
		return;
	if (by_id)
		roci_peer_remove(&x->cm->remote_ids, &conn->remote_id_node);
	if (by_qpn)
		roci_peer_remove(&x->cm->remote_qpns, &conn->remote_qpn_node);
	memcpy(x->remote_gid, gid, 16);
	memcpy(x->path->dgid, gid, 16);
	if (by_id)
		roci_peer_insert(&x->cm->remote_ids, &conn->remote_id_node, x->remote_gid, conn->remote_id_node.number);
	if (by_qpn)
		roci_conn_insert_qpn(conn);
}

bool roci_exchange_is_from(struct roci_exchange *x, const struct roci_cm_source *from)
{
	bool same = !memcmp(from->sgid, x->remote_gid, 16);

	if (!x->nat.port || !from->nat)
		return same;
	if (from->nat->token != x->nat.token)
		return false;
	if (x->conn)
		move_to(x, from->sgid, from->nat);
	return true;
}

void roci_cm_challenged(struct roci_cm *cm, uint32_t id, uint64_t token, uint64_t cookie, const uint8_t sgid[16])
{
	struct roci_exchange *x = roci_idmap_find(&cm->ids, id);

	if (!x || x->nat.port || x->nat.token != token || memcmp(x->remote_gid, sgid, 16)) {
		cm->stats.rx_unexpected++;
		return;
	}
	if (x->nat.cookie == cookie)
		return;
	x->nat.cookie = cookie;
	if (roci_list_empty(&x->natted))
		roci_list_append(&cm->natted, &x->natted);
	if (x->sent)
		roci_exchange_resend(x);
}

bool roci_cm_find_nat(const struct roci_cm *cm, const uint8_t gid[16], uint32_t qpn, struct roci_nat_terms *out)
{
	bool found = false;

	for (const struct roci_list *l = cm->natted.next; l != &cm->natted; l = l->next) {
		const struct roci_exchange *x = natted_at(l);

		if (!x->conn || x->conn->state == ROCI_CONN_CLOSED || x->conn->state == ROCI_CONN_TIMEWAIT ||
		    x->conn->info.remote_qpn != qpn || memcmp(x->remote_gid, gid, 16))
			continue;
		*out = x->nat;
		found = true; /* the newest counts, if two hosts behind one NAT have the same QPN */
	}
	return found;
}

void roci_cm_moved(struct roci_cm *cm, const uint8_t gid[16], const struct roci_nat_terms *nat)
{
	for (struct roci_list *l = cm->natted.next; l != &cm->natted; l = l->next) {
		struct roci_exchange *x = natted_at(l);

		if (x->conn && x->nat.port && x->nat.token == nat->token)
			move_to(x, gid, nat);
	}
}

void roci_cm_rehome(struct roci_cm *cm, const uint8_t old[16], const uint8_t gid[16])
{
	for (struct roci_list *l = cm->natted.next; l != &cm->natted; l = l->next) {
		struct roci_exchange *x = natted_at(l);

		if (!x->nat.cookie || memcmp(x->local_gid, old, 16))
			continue;
		memcpy(x->local_gid, gid, 16);
		memcpy(x->path->sgid, gid, 16);
		x->ifindex = x->path->ifindex = 0;
	}
}
