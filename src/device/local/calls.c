/* SPDX-License-Identifier: BSD-2-Clause */
/* What src/verbs calls for the local path. A forked child's inherited device does nothing. */
#include <stdlib.h>
#include <string.h>

#include "device/device_state.h"
#include "device/local/direct.h"
#include "engine/why.h"

/* Only who asked for the local path hears why a QP does not have it: else it is no news. */
static bool asked_for(void)
{
	const char *path = getenv("ROCI_PATH");

	return path && strcmp(path, "local") == 0;
}

/* The table may be older than an address of the peer's, and has not room for all. */
static bool is_of_host(const struct roci_device *dev, const uint8_t gid[16])
{
	struct roci_gid_entry *all;
	bool found = roci_gids_find(&dev->gids, gid, 0) >= 0;
	int count;

	if (found)
		return true;
	all = calloc(ROCI_MAX_ADDRESSES, sizeof(*all));
	count = all ? roci_gid_table(all, ROCI_MAX_ADDRESSES) : 0;
	for (int i = 0; i < count && !found; i++)
		found = memcmp(all[i].gid, gid, sizeof(all[i].gid)) == 0;
	free(all);
	return found;
}

int roci_device_find_local(struct roci_device *dev, struct roci_av *av, uint32_t dest_qpn)
{
	const char *why;
	int local = 0;

	if (dev->dead)
		return 0;
	if (roci_local_has(&dev->local, dest_qpn, &why)) {
		why = "its address is not of this host";
		if (is_of_host(dev, av->dgid))
			local = roci_local_find(&dev->local, dest_qpn, &why);
	}
	if (local < 0)
		return local;
	av->local = (uint16_t)local;
	dev->stats->local_qps += local > 0;
	if (!local && asked_for())
		ROCI_WHY_TELL("a QP whose peer is QP 0x%x takes the wire: %s", dest_qpn, why);
	return 0;
}

void roci_device_publish_qp(struct roci_device *dev, struct roci_qp *qp, uint32_t pd)
{
	struct roci_qp_attr attr;
	struct roci_qp_cap cap;

	roci_qp_query(qp, &attr, &cap);
	if (!dev->dead && attr.av.local)
		roci_local_add_qp(&dev->local, qp, pd, attr.dest_qpn);
}

void roci_device_publish_mr(struct roci_device *dev, const struct roci_mr_attr *attr)
{
	if (!dev->dead)
		roci_local_add_region(&dev->local, attr);
}

void roci_device_revoke_mr(struct roci_device *dev, const struct roci_mr_attr *attr)
{
	if (!dev->dead)
		roci_local_remove_region(&dev->local, attr);
}

/* Where the copy is the whole work, the peer does not wait for this side's clock. */
static bool send_promptly(struct roci_device *dev, struct roci_qp *qp, const struct roci_send_wr *wr)
{
	if (wr->opcode != ROCI_WR_SEND && wr->opcode != ROCI_WR_SEND_WITH_IMM)
		return false;
	if (!dev->posted_at)
		dev->posted_at = roci_now();
	return roci_local_prompt(&dev->local, dev->posted_at, qp, wr, &dev->transmit.batch);
}

int roci_device_post_send(struct roci_device *dev, struct roci_qp *qp, const struct roci_send_wr *wr)
{
	/* What the program made first, its peer gets first: messages of rdma_cm that wait go before a request. */
	if (dev->local.own && !dev->dead && !roci_cm_host_holds(dev) && !roci_qp_check_send(qp, wr) &&
	    (roci_local_direct(&dev->local, qp, wr) || send_promptly(dev, qp, wr)))
		return 0;
	return roci_qp_post_send(qp, wr);
}
