/* SPDX-License-Identifier: BSD-2-Clause */
/* The port and its tables: GIDs and the one P_Key. */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/why.h"
#include "verbs/context.h"
#include "wire/mtu.h"

#define SPEED_AGE_NS UINT64_C(1000000000)

/* The size of struct ibv_port_attr in symbol version 1.1: up to and including `flags`. */
#define COMPAT_PORT_ATTR_SIZE offsetof(struct ibv_port_attr, port_cap_flags2)

/* In Mbit/s; 0: the kernel does not tell. It takes a lock of the whole kernel for it. */
static long read_speed(const char *ifname)
{
	char path[64];
	long mbps = 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", ifname);
	FILE *f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%ld", &mbps) != 1)
			mbps = 0;
		fclose(f);
	}
	return mbps;
}

/* The same, as it was within the last second: each route of rdma_cm asks for it. */
static long recent_speed(const char *ifname)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct {
		char ifname[IFNAMSIZ];
		uint64_t read_at;
		long mbps;
	} last;
	uint64_t now = roci_now();
	if (pthread_mutex_trylock(&lock)) /* also in a child that was forked meanwhile */
		return read_speed(ifname);
	if (!last.read_at || now - last.read_at > SPEED_AGE_NS || strncmp(last.ifname, ifname, sizeof(last.ifname))) {
		last.mbps = read_speed(ifname);
		last.read_at = now;
		snprintf(last.ifname, sizeof(last.ifname), "%s", ifname);
	}
	long mbps = last.mbps;
	pthread_mutex_unlock(&lock);
	return mbps;
}

/* Interfaces without a speed (loopback) count as 10 Gbit/s. */
void vb_port_speed(const char *ifname, uint8_t *width, uint8_t *speed)
{
	static const struct {
		long mbps;
		uint8_t width,
			speed; /* width 1: 1x, 2: 4x; speed 1: 2.5, 2: 5, 4: 10, 32: 25, 64: 50, 128: 100 Gbit/s */
	} codes[] = {{2500, 1, 1},   {5000, 1, 2},    {10000, 1, 4},   {25000, 1, 32},    {40000, 2, 4},
		     {50000, 1, 64}, {100000, 2, 32}, {200000, 2, 64}, {LONG_MAX, 2, 128}};
	long mbps = recent_speed(ifname);
	if (mbps <= 0)
		mbps = 10000;
	size_t i = 0;
	while (codes[i].mbps < mbps)
		i++;
	*width = codes[i].width;
	*speed = codes[i].speed;
}

/* Whether it is a context of ours, and has this port. */
static bool has_port(const struct ibv_context *context, unsigned port_num)
{
	if (!vb_is_context(context))
		return false;
	if (port_num != VB_PORT)
		ROCI_WHY("port_num %u: roci0 has port %d only", port_num, VB_PORT);
	return port_num == VB_PORT;
}

static bool has_index(const char *what, long index, int entries)
{
	if (index < 0 || index >= entries)
		ROCI_WHY("index %ld: the table of %s has %d entries, from 0 on", index, what, entries);
	return index >= 0 && index < entries;
}

/* For functions that return -1, with errno. */
static int refuse(const char *call)
{
	roci_verbs_refused(call, EINVAL);
	return -1;
}

VERB_DEFINE(4, vb_query_port, struct ibv_context *, context, uint8_t, port_num, struct ibv_port_attr *, attr, size_t,
	    attr_size)
{
	if (!attr || !has_port(context, port_num))
		return EINVAL;
	struct roci_device *dev = vb_context(context)->dev;
	struct roci_gids gids;
	roci_device_gids(dev, &gids);
	const struct roci_gid_entry *first = roci_gids_first(&gids);
	struct ibv_port_attr full = {
		.state = first ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = roci_mtu_code(first ? first->path_mtu : 1024),
		.gid_tbl_len = ROCI_MAX_GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = ROCI_MAX_MESSAGE_BYTES,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 1,
		.active_speed = 4,
		.phys_state = first ? 5 /* link up */ : 3 /* disabled */,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	if (first)
		vb_port_speed(first->ifname, &full.active_width, &full.active_speed);

	const struct roci_engine_stats *stats = roci_engine_stats(roci_device_lock(dev));
	full.bad_pkey_cntr = (uint32_t)stats->rx_bad_pkey;
	full.qkey_viol_cntr = (uint32_t)stats->rx_bad_qkey;
	roci_device_unlock(dev);

	size_t known = attr_size < sizeof(full) ? attr_size : sizeof(full);
	memset(attr, 0, attr_size);
	memcpy(attr, &full, known);
	return 0;
}

ALSO_1_0(ibv_query_port);
VERB_DEFINE(3, ibv_query_port, struct ibv_context *, context, uint8_t, port_num, struct _compat_ibv_port_attr *, attr)
{
	return vb_query_port(context, port_num, (struct ibv_port_attr *)attr, COMPAT_PORT_ATTR_SIZE);
}

/* ---- GIDs ---- */

/* Places without an address of the host are empty, as in the kernel's table: the GID is zero, its type IB/RoCE v1, and
 * queries for the whole entry find no data. */
static bool gid_at(const struct ibv_context *context, unsigned index, struct roci_gid_entry *entry)
{
	return roci_device_gid(vb_context(context)->dev, index, entry);
}

ALSO_1_0(ibv_query_gid);
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (!gid || !has_port(context, port_num) || !has_index("GIDs", index, ROCI_MAX_GIDS))
		return refuse("ibv_query_gid");
	struct roci_gid_entry entry;
	if (gid_at(context, (unsigned)index, &entry))
		memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	else
		memset(gid->raw, 0, sizeof(gid->raw));
	return 0;
}

static void fill_entry(struct ibv_gid_entry *out, const struct roci_gid_entry *entry, uint32_t index, size_t size)
{
	struct ibv_gid_entry full = {
		.gid_index = index,
		.port_num = VB_PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = entry->ifindex,
	};
	memcpy(full.gid.raw, entry->gid, sizeof(full.gid.raw));
	memset(out, 0, size);
	memcpy(out, &full, size < sizeof(full) ? size : sizeof(full));
}

VERB_DEFINE(6, _ibv_query_gid_ex, struct ibv_context *, context, uint32_t, port_num, uint32_t, gid_index,
	    struct ibv_gid_entry *, entry, uint32_t, flags, size_t, entry_size)
{
	if (!entry || !has_port(context, port_num) || !has_index("GIDs", gid_index, ROCI_MAX_GIDS))
		return EINVAL;
	if (flags)
		return ROCI_REFUSE(EOPNOTSUPP, "flags 0x%x: 0 is allowed", flags);
	struct roci_gid_entry found;
	if (!gid_at(context, gid_index, &found))
		return ENODATA;
	fill_entry(entry, &found, gid_index, entry_size);
	return 0;
}

VERB_DEFINE_COUNT(5, ssize_t, _ibv_query_gid_table, struct ibv_context *, context, struct ibv_gid_entry *, entries,
		  size_t, max_entries, uint32_t, flags, size_t, entry_size)
{
	if (!vb_is_context(context) || (max_entries && !entries))
		return -EINVAL;
	if (flags)
		return ROCI_REFUSE(-EOPNOTSUPP, "flags 0x%x: 0 is allowed", flags);
	struct roci_gids gids;
	roci_device_gids(vb_context(context)->dev, &gids);
	size_t n = 0;
	for (int i = 0; i < gids.count; i++) {
		if (!roci_gid_is_present(&gids.entries[i]))
			continue;
		if (n == max_entries)
			return ROCI_REFUSE(-EINVAL, "max_entries %zu: there are more GIDs", max_entries);
		fill_entry((struct ibv_gid_entry *)((char *)entries + n * entry_size), &gids.entries[i], (uint32_t)i,
			   entry_size);
		n++;
	}
	return (ssize_t)n;
}

/* Private, but ibv_devinfo and pyverbs call it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index, enum vb_sysfs_gid_type *type)
{
	if (!type || !has_port(context, port_num) || !has_index("GIDs", (long)index, ROCI_MAX_GIDS))
		return refuse("ibv_query_gid_type");
	struct roci_gid_entry entry;
	*type = gid_at(context, index, &entry) ? VB_SYSFS_GID_ROCE_V2 : VB_SYSFS_GID_IB_ROCE_V1;
	return 0;
}

/* ---- the P_Key ---- */

ALSO_1_0(ibv_query_pkey);
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (!pkey || !has_port(context, port_num) || !has_index("P_Keys", index, 1))
		return refuse("ibv_query_pkey");
	*pkey = htons(VB_DEFAULT_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (!has_port(context, port_num))
		return refuse("ibv_get_pkey_index");
	if (pkey != htons(VB_DEFAULT_PKEY)) {
		ROCI_WHY("pkey 0x%04x: the table has 0x%04x only", ntohs(pkey), VB_DEFAULT_PKEY);
		return refuse("ibv_get_pkey_index");
	}
	return 0;
}
