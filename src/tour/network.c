/* SPDX-License-Identifier: BSD-2-Clause */
/* The network of an IP address, as this host has it. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tour/device.h"
#include "wire/mtu.h"

static bool has_gid(const struct ifaddrs *a, const union ibv_gid *gid)
{
	union ibv_gid own;

	if (!a->ifa_addr || !a->ifa_netmask ||
	    (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return false;
	device_gid_of(a->ifa_addr, &own);
	return !memcmp(&own, gid, sizeof(own));
}

static uint8_t prefix_of(const struct sockaddr *mask)
{
	bool ipv4 = mask->sa_family == AF_INET;
	const uint8_t *bytes = ipv4 ? (const uint8_t *)&((const struct sockaddr_in *)mask)->sin_addr
				    : (const uint8_t *)&((const struct sockaddr_in6 *)mask)->sin6_addr;
	unsigned bits = 0;

	for (unsigned i = 0; i < (ipv4 ? 4 : 16); i++)
		bits += (unsigned)__builtin_popcount(bytes[i]);
	return (uint8_t)bits;
}

static uint8_t mtu_of(const char *interface)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known;

	strncat(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	known = fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request);
	if (fd >= 0)
		close(fd);
	return known ? roci_mtu_code_of_interface((uint32_t)request.ifr_mtu) : 0;
}

struct tour_network device_network(const union ibv_gid *gid)
{
	struct tour_network network = {0};
	struct ifaddrs *list, *a;

	if (getifaddrs(&list))
		return network;
	for (a = list; a && !has_gid(a, gid);)
		a = a->ifa_next;
	if (a)
		network = (struct tour_network){prefix_of(a->ifa_netmask), mtu_of(a->ifa_name)};
	freeifaddrs(list);
	return network;
}
