/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of a received datagram: from its completion, and from the 40 bytes before its payload. */
#include <errno.h>
#include <netinet/in.h>

#include "engine/why.h"
#include "verbs/pd.h"
#include "wire/gid.h"
#include "wire/ip.h"

/* 4, 6 or 0. An IPv4 header is in the last 20 bytes; the bytes before it are undefined: IBTA annex A17.4.5.2. */
static int ip_version(const uint8_t bytes[40])
{
	bool six = bytes[0] >> 4 == 6 && bytes[6] == ROCI_IP_PROTO_UDP;
	bool four = bytes[20] == 0x45 && bytes[29] == ROCI_IP_PROTO_UDP;
	if (six && four)
		return roci_ipv4_checksum_is_right(bytes + 20) ? 4 : 6;
	return six ? 6 : four ? 4 : 0;
}

/* The index of GID `gid`; for a multicast GID, of the first one of its family. -1: none. */
static int find_sgid(const struct ibv_context *context, const uint8_t gid[16])
{
	struct roci_device *dev = vb_context(context)->dev;
	if (!roci_gid_is_multicast(gid))
		return roci_device_find_gid(dev, gid, 0);
	struct roci_gids gids;
	roci_device_gids(dev, &gids);
	bool ipv4 = roci_gid_is_ipv4(gid);
	for (int i = 0; i < gids.count; i++) {
		if (gids.entries[i].state == ROCI_GID_READY && roci_gid_is_ipv4(gids.entries[i].gid) == ipv4)
			return i;
	}
	return -1;
}

static int fill_grh(const struct ibv_context *context, const struct ibv_grh *grh, struct ibv_global_route *route)
{
	uint8_t bytes[40], ours[16];
	memcpy(bytes, grh, sizeof(bytes));
	int version = ip_version(bytes);
	if (version == 4) {
		const uint8_t *ip = bytes + 20;
		roci_gid_from_ipv4(route->dgid.raw, ip + 12);
		roci_gid_from_ipv4(ours, ip + 16);
		route->traffic_class = ip[1];
	} else if (version == 6) {
		uint32_t first;
		memcpy(&first, bytes, sizeof(first));
		first = ntohl(first);
		memcpy(route->dgid.raw, bytes + 8, 16);
		memcpy(ours, bytes + 24, 16);
		route->traffic_class = (first >> 20) & 0xff;
		route->flow_label = first & IB_GRH_FLOWLABEL_MASK;
	} else {
		return ROCI_REFUSE(EPROTONOSUPPORT, "the GRH has neither an IPv4 nor an IPv6 header");
	}
	int index = find_sgid(context, ours);
	if (index < 0)
		return ENODATA;
	route->sgid_index = (uint8_t)index;
	route->hop_limit = 0xff;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	int err = 0;
	if (!vb_is_context(context) || !wc || !attr)
		err = EINVAL;
	else if (port_num != VB_PORT)
		err = ROCI_REFUSE(EINVAL, "port_num %u: roci0 has port %d only", port_num, VB_PORT);
	if (!err) {
		*attr = (struct ibv_ah_attr){
			.dlid = wc->slid,
			.sl = wc->sl,
			.src_path_bits = wc->dlid_path_bits,
			.port_num = port_num,
		};
		if (wc->wc_flags & IBV_WC_GRH) {
			attr->is_global = 1;
			err = grh ? fill_grh(context, grh, &attr->grh) : EINVAL;
		}
	}
	if (!err)
		return 0;
	roci_verbs_refused("ibv_init_ah_from_wc", err);
	return -1;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;
	if (!vb_is_pd(pd))
		return vb_null(EINVAL);
	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
