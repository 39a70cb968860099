/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qp.h"
#include "engine/ud.h"
#include "engine/why.h"

struct mcast_group {
	struct roci_list all;
	uint8_t gid[16];
	unsigned count;
	struct roci_qp *qps[ROCI_MAX_MCAST_ATTACH];
};

static struct mcast_group *find_group(struct roci_engine *e, const uint8_t gid[16])
{
	for (struct roci_list *l = e->mcast_groups.next; l != &e->mcast_groups; l = l->next) {
		struct mcast_group *g = roci_container_of(l, struct mcast_group, all);

		if (!memcmp(g->gid, gid, 16))
			return g;
	}
	return NULL;
}

static struct mcast_group *add_group(struct roci_engine *e, const uint8_t gid[16])
{
	struct mcast_group *g;

	if (e->mcast_group_count >= ROCI_MAX_MCAST_GROUPS)
		return ROCI_REFUSE(NULL, "the QPs of this process are in %u groups already", ROCI_MAX_MCAST_GROUPS);
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	memcpy(g->gid, gid, 16);
	roci_list_append(&e->mcast_groups, &g->all);
	e->mcast_group_count++;
	return g;
}

static void drop_group(struct roci_engine *e, struct mcast_group *g)
{
	roci_list_remove(&g->all);
	e->mcast_group_count--;
	free(g);
}

static bool detach(struct mcast_group *g, const struct roci_qp *qp)
{
	for (unsigned i = 0; i < g->count; i++) {
		if (g->qps[i] != qp)
			continue;
		g->qps[i] = g->qps[--g->count];
		return true;
	}
	return false;
}

int roci_qp_attach_mcast(struct roci_qp *qp, const uint8_t gid[16])
{
	struct mcast_group *g;

	if (qp->type != ROCI_QPT_UD)
		return -EINVAL;
	g = find_group(qp->e, gid);
	if (!g)
		g = add_group(qp->e, gid);
	if (!g)
		return -ENOMEM;
	for (unsigned i = 0; i < g->count; i++)
		if (g->qps[i] == qp)
			return 0;
	if (g->count == ROCI_MAX_MCAST_ATTACH)
		return ROCI_REFUSE(-ENOMEM, "%u QPs of this process are in the group already", ROCI_MAX_MCAST_ATTACH);
	g->qps[g->count++] = qp;
	return 0;
}

int roci_qp_detach_mcast(struct roci_qp *qp, const uint8_t gid[16])
{
	struct mcast_group *g = find_group(qp->e, gid);

	if (!g || !detach(g, qp))
		return -EINVAL;
	if (!g->count)
		drop_group(qp->e, g);
	return 0;
}

void roci_mcast_forget(struct roci_qp *qp)
{
	struct roci_list *l = qp->e->mcast_groups.next, *next;

	for (; l != &qp->e->mcast_groups; l = next) {
		struct mcast_group *g = roci_container_of(l, struct mcast_group, all);

		next = l->next;
		if (detach(g, qp) && !g->count)
			drop_group(qp->e, g);
	}
}

void roci_mcast_free(struct roci_engine *e)
{
	while (!roci_list_empty(&e->mcast_groups))
		drop_group(e, roci_container_of(e->mcast_groups.next, struct mcast_group, all));
}

void roci_mcast_rx(struct roci_engine *e, const struct roci_rx *rx)
{
	struct mcast_group *g = find_group(e, rx->dgid);

	if (!g || (rx->pkt.opcode & ROCI_TRANSPORT_MASK) != ROCI_TRANSPORT_UD) {
		e->stats->rx_no_qp++;
		return;
	}
	for (unsigned i = 0; i < g->count; i++)
		roci_ud_rx(g->qps[i], rx);
}
