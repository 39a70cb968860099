/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h> /* IWYU pragma: keep (IFF_UP) */
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "device.h"
#include "own_address.h"

union ip_address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static union ip_address parse_address(int family, const char *text)
{
	union ip_address ip = {.any.sa_family = (sa_family_t)family};
	inet_pton(family, text, family == AF_INET ? (void *)&ip.in4.sin_addr : (void *)&ip.in6.sin6_addr);
	return ip;
}

/* Whether the address belongs to the device, or to any device if `device` has no name. rdma_bind_addr() knows. */
static bool belongs_to(const struct device_choice *device, union ip_address ip)
{
	struct rdma_cm_id *id;
	bool belongs;

	if (device->embedded)
		return true;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	belongs = !rdma_bind_addr(id, &ip.any) && id->verbs &&
		  (!device->name || !strcmp(id->verbs->device->name, device->name));
	rdma_destroy_id(id);
	return belongs;
}

/* Which addresses are looked for. To a link-local one the peer has to add the name of its own interface. */
enum scope { WIDE, LINK_LOCAL };

/* Prints the address if it is of that scope and belongs to the device. */
static bool take_address(const struct device_choice *device, enum scope scope, union ip_address ip,
			 char text[INET6_ADDRSTRLEN])
{
	bool ipv6 = ip.any.sa_family == AF_INET6;
	const void *bytes = ipv6 ? (void *)&ip.in6.sin6_addr : (void *)&ip.in4.sin_addr;

	if ((ipv6 && IN6_IS_ADDR_LINKLOCAL(&ip.in6.sin6_addr)) != (scope == LINK_LOCAL))
		return false;
	if (ipv6)
		ip.in6.sin6_port = 0;
	else
		ip.in4.sin_port = 0;
	return belongs_to(device, ip) && inet_ntop(ip.any.sa_family, bytes, text, INET6_ADDRSTRLEN);
}

/* Takes the address from which the kernel would send to `to`. connect() of a datagram socket sends nothing: it only
 * asks the routing table. */
static bool take_route(const struct device_choice *device, enum scope scope, union ip_address to,
		       char text[INET6_ADDRSTRLEN])
{
	union ip_address from = {0};
	socklen_t len = to.any.sa_family == AF_INET ? sizeof(to.in4) : sizeof(to.in6);
	int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	to.in4.sin_port = htons(9); /* sin6_port is at the same place */
	found = !connect(fd, &to.any, len) && !getsockname(fd, &from.any, &len);
	close(fd);
	return found && take_address(device, scope, from, text);
}

/* Reads the address of an interface that is up. */
static bool interface_address(const struct ifaddrs *i, int family, union ip_address *ip)
{
	if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP))
		return false;
	*ip = (union ip_address){0};
	memcpy(ip, i->ifa_addr, family == AF_INET ? sizeof(ip->in4) : sizeof(ip->in6));
	return true;
}

static bool take_interface(const struct device_choice *device, enum scope scope, const struct ifaddrs *list, int family,
			   char text[INET6_ADDRSTRLEN])
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		union ip_address ip;
		if (!interface_address(i, family, &ip) || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (take_address(device, scope, ip, text))
			return true;
	}
	return false;
}

static bool take_any(const struct device_choice *device, enum scope scope, const struct ifaddrs *list,
		     char text[INET6_ADDRSTRLEN])
{
	return take_route(device, scope, parse_address(AF_INET, "192.0.2.1"), text) ||    /* RFC 5737 */
	       take_route(device, scope, parse_address(AF_INET6, "2001:db8::1"), text) || /* RFC 3849 */
	       take_interface(device, scope, list, AF_INET, text) ||
	       take_interface(device, scope, list, AF_INET6, text);
}

void own_address(const struct device_choice *device, char address[INET6_ADDRSTRLEN])
{
	struct ifaddrs *list = NULL;

	getifaddrs(&list);
	if (!take_any(device, WIDE, list, address) && !take_any(device, LINK_LOCAL, list, address))
		strcpy(address, "127.0.0.1");
	freeifaddrs(list);
}

bool own_address_of_device(const struct device_choice *device)
{
	struct ifaddrs *list = NULL;
	bool found = false;

	getifaddrs(&list);
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		union ip_address ip;
		found = (interface_address(i, AF_INET, &ip) || interface_address(i, AF_INET6, &ip)) &&
			belongs_to(device, ip);
	}
	freeifaddrs(list);
	return found;
}
