/* SPDX-License-Identifier: BSD-2-Clause */
/* The Ethernet address of a GID, for programs that build frames themselves. The device does not need it: the kernel
 * resolves addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "engine/why.h"
#include "verbs/context.h"
#include "wire/gid.h"

#define NO_VLAN 0xffff

typedef uint8_t ethernet_address[ETHERNET_LL_SIZE];

static bool from_own(const struct ibv_context *context, const uint8_t gid[16], ethernet_address mac)
{
	struct roci_device *dev = vb_context(context)->dev;
	struct roci_gid_entry entry;
	int index = roci_device_find_gid(dev, gid, 0);
	if (index < 0 || !roci_device_gid(dev, (unsigned)index, &entry))
		return false;
	memcpy(mac, entry.mac, ETHERNET_LL_SIZE);
	return true;
}

/* From a link-local address that contains the hardware address (RFC 4291, appendix A). */
static bool from_eui64(const uint8_t gid[16], ethernet_address mac)
{
	if (gid[0] != 0xfe || (gid[1] & 0xc0) != 0x80 || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	const uint8_t six[] = {gid[8] ^ 0x02, gid[9], gid[10], gid[13], gid[14], gid[15]};
	memcpy(mac, six, sizeof(six));
	return true;
}

static bool from_arp(const uint8_t gid[16], ethernet_address mac)
{
	if (!roci_gid_is_ipv4(gid))
		return false;
	char wanted[INET_ADDRSTRLEN], ip[64], hw[64], line[256];
	unsigned type, flags;
	bool found = false;
	inet_ntop(AF_INET, gid + ROCI_GID_IPV4_AT, wanted, sizeof(wanted));
	FILE *f = fopen("/proc/net/arp", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, "%63s 0x%x 0x%x %63s", ip, &type, &flags, hw) == 4 && !strcmp(ip, wanted) &&
			(flags & 2) && /* complete */
			sscanf(hw, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
			       &mac[5]) == 6;
	}
	if (f)
		fclose(f);
	return found;
}

/* Returns 0 or a positive errno. EHOSTUNREACH: the kernel does not know the neighbour (yet). */
VERB_DEFINE(4, ibv_resolve_eth_l2_from_gid, struct ibv_context *, context, struct ibv_ah_attr *, attr, ethernet_address,
	    eth_mac, uint16_t *, vid)
{
	if (!vb_is_context(context) || !attr || !eth_mac)
		return EINVAL;
	if (!attr->is_global || attr->port_num != VB_PORT)
		return ROCI_REFUSE(EINVAL, "is_global %u, port_num %u: 1 and %d are allowed", attr->is_global,
				   attr->port_num, VB_PORT);
	const uint8_t *gid = attr->grh.dgid.raw;
	if (!roci_gid_multicast_mac(gid, eth_mac) && !from_own(context, gid, eth_mac) && !from_arp(gid, eth_mac) &&
	    !from_eui64(gid, eth_mac))
		return ROCI_REFUSE(EHOSTUNREACH, "the kernel knows no neighbour of that GID (ip neigh)");
	if (vid)
		*vid = NO_VLAN;
	return 0;
}
