/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "device/address_list.h"
#include "device/sys.h"
#include "wire/gid.h"
#include "wire/mtu.h"

enum rank {
	RANK_PRIMARY_V4,
	RANK_V4,
	RANK_GLOBAL_V6,
	RANK_LINK_LOCAL_V6,
	RANK_LOOPBACK_V4,
	RANK_LOOPBACK_V6,
};

#define MAX_CANDIDATES 1024

struct candidate {
	struct roci_gid_entry entry;
	enum rank rank;
	bool poor; /* no carrier, or deprecated: last of its rank */
	int order; /* as found */
};

/* The source address of the default route: what connect() picks for an address of TEST-NET-3. Nothing is sent. */
static bool primary_ipv4(uint8_t gid[16])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xcb007101)};
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd = roci_sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	found = !roci_sys_connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
		!roci_sys_getsockname(fd, (struct sockaddr *)&from, &len);
	roci_sys_close(fd);
	if (found)
		roci_gid_from_ipv4(gid, &from.sin_addr);
	return found;
}

/* IFA_F_* of an IPv6 address; 0 where unknown. getifaddrs() has no such flags. `list` is /proc/net/if_inet6. */
static unsigned ipv6_flags(FILE *list, const struct in6_addr *addr, unsigned ifindex)
{
	char line[128], hex[33];
	unsigned index, prefix, scope, flags;

	if (!list)
		return 0;
	rewind(list);
	while (fgets(line, sizeof(line), list)) {
		struct in6_addr here;

		if (sscanf(line, "%32[0-9a-f] %x %x %x %x", hex, &index, &prefix, &scope, &flags) != 5 ||
		    index != ifindex || strlen(hex) != 32)
			continue;
		for (int i = 0; i < 16; i++) {
			char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};

			here.s6_addr[i] = (uint8_t)strtoul(byte, NULL, 16);
		}
		if (!memcmp(&here, addr, sizeof(here)))
			return flags;
	}
	return 0;
}

static uint32_t interface_mtu(int fd, const char *name)
{
	struct ifreq req = {0};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFMTU, &req) || req.ifr_mtu <= 0 ? 1500 : (uint32_t)req.ifr_mtu;
}

static bool rank_ipv4(struct candidate *c, struct in_addr addr, const uint8_t *primary)
{
	uint32_t host = ntohl(addr.s_addr);

	if (!host || IN_MULTICAST(host))
		return false;
	roci_gid_from_ipv4(c->entry.gid, &addr);
	if (host >> 24 == 127)
		c->rank = RANK_LOOPBACK_V4;
	else
		c->rank = primary && !memcmp(primary, c->entry.gid, 16) ? RANK_PRIMARY_V4 : RANK_V4;
	return true;
}

static bool rank_ipv6(struct candidate *c, const struct in6_addr *addr, FILE *list)
{
	unsigned flags = ipv6_flags(list, addr, c->entry.ifindex);

	if (IN6_IS_ADDR_UNSPECIFIED(addr) || IN6_IS_ADDR_MULTICAST(addr) || IN6_IS_ADDR_V4MAPPED(addr) ||
	    (flags & IFA_F_DADFAILED))
		return false;
	if ((flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC))
		c->entry.state = ROCI_GID_TENTATIVE;
	c->poor |= !!(flags & (IFA_F_DEPRECATED | IFA_F_SECONDARY /* temporary */));
	memcpy(c->entry.gid, addr, 16);
	if (IN6_IS_ADDR_LOOPBACK(addr))
		c->rank = RANK_LOOPBACK_V6;
	else
		c->rank = IN6_IS_ADDR_LINKLOCAL(addr) ? RANK_LINK_LOCAL_V6 : RANK_GLOBAL_V6;
	return true;
}

static void copy_mac(uint8_t mac[6], int fd, const char *name)
{
	struct ifreq req = {0};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (!ioctl(fd, SIOCGIFHWADDR, &req) && req.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		memcpy(mac, req.ifr_hwaddr.sa_data, 6);
}

static int by_usefulness(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->poor != y->poor)
		return x->poor ? 1 : -1;
	return x->order - y->order;
}

static int collect(struct candidate *found, const struct ifaddrs *all, FILE *list, int fd)
{
	uint8_t primary[16];
	bool have_primary = primary_ipv4(primary);
	int n = 0;

	for (const struct ifaddrs *i = all; i && n < MAX_CANDIDATES; i = i->ifa_next) {
		struct candidate c = {
			.entry.state = ROCI_GID_READY,
			.order = n,
			.poor = !(i->ifa_flags & IFF_RUNNING),
		};
		bool fit = false;

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
			continue;
		c.entry.ifindex = if_nametoindex(i->ifa_name);
		if (i->ifa_addr->sa_family == AF_INET)
			fit = rank_ipv4(&c, ((struct sockaddr_in *)i->ifa_addr)->sin_addr,
					have_primary ? primary : NULL);
		else if (i->ifa_addr->sa_family == AF_INET6)
			fit = rank_ipv6(&c, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, list);
		if (!fit || !c.entry.ifindex)
			continue;
		snprintf(c.entry.ifname, sizeof(c.entry.ifname), "%s", i->ifa_name);
		/* An alias label ("eth0:1") names no interface of its own. */
		if_indextoname(c.entry.ifindex, c.entry.ifname);
		c.entry.if_mtu = interface_mtu(fd, c.entry.ifname);
		c.entry.path_mtu = roci_mtu_bytes(roci_mtu_code_of_interface(c.entry.if_mtu));
		copy_mac(c.entry.mac, fd, c.entry.ifname);
		found[n++] = c;
	}
	return n;
}

/* An address that two interfaces have is one GID, unless it is link-local. */
static bool is_repeat(const struct roci_gid_entry *entries, int count, const struct roci_gid_entry *entry)
{
	for (int i = 0; i < count; i++)
		if (!memcmp(entries[i].gid, entry->gid, 16) &&
		    (entries[i].ifindex == entry->ifindex || entry->gid[0] != 0xfe))
			return true;
	return false;
}

int roci_gid_table(struct roci_gid_entry *entries, int max)
{
	struct candidate *found = calloc(MAX_CANDIDATES, sizeof(*found));
	int n, taken = 0, err = -ENOMEM;
	struct ifaddrs *all;
	bool by_netlink;
	FILE *list;
	int fd;

	if (!found)
		return -ENOMEM;
	by_netlink = !getifaddrs(&all);
	if (!by_netlink) {
		err = roci_address_list(&all);
		if (err)
			goto free_found;
	}
	fd = roci_sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = roci_sys_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err = -errno;
		goto free_all;
	}
	list = fopen("/proc/net/if_inet6", "re");
	n = collect(found, all, list, fd);
	qsort(found, (size_t)n, sizeof(*found), by_usefulness);
	for (int i = 0; i < n && taken < max; i++)
		if (!is_repeat(entries, taken, &found[i].entry))
			entries[taken++] = found[i].entry;
	err = taken;
	if (list)
		fclose(list);
	roci_sys_close(fd);
free_all:
	if (by_netlink)
		freeifaddrs(all);
	else
		free(all);
free_found:
	free(found);
	return err;
}

void roci_gid_text(const uint8_t gid[16], char text[ROCI_GID_TEXT])
{
	bool ipv4 = roci_gid_is_ipv4(gid);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + ROCI_GID_IPV4_AT : gid, text, ROCI_GID_TEXT);
}

void roci_gid_guid(const struct roci_gid_entry *entries, int count, uint8_t guid[8])
{
	static const uint8_t none[6], fallback[6] = {0x02, 'r', 'o', 'c', 'i', 0};
	const uint8_t *mac = fallback;

	for (int i = 0; i < count; i++) {
		if (memcmp(entries[i].mac, none, sizeof(none))) {
			mac = entries[i].mac;
			break;
		}
	}
	memcpy(guid, (const uint8_t[8]){mac[0] ^ 0x02, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}, 8);
}
