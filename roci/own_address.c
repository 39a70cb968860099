/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "device.h"
#include "own_address.h"

/* An address without a port. */
union name {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static union name make_name(int family, const char *address)
{
	union name name = {.any.sa_family = (sa_family_t)family};
	inet_pton(family, address, family == AF_INET ? (void *)&name.in4.sin_addr : (void *)&name.in6.sin6_addr);
	return name;
}

/* Whether the device (any, if there is no name) has this address: what rdma_cm says when it binds to it. */
static bool leads_to(const struct device_choice *device, union name name)
{
	struct rdma_cm_id *id;
	bool leads;

	if (device->embedded)
		return true;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	leads = !rdma_bind_addr(id, &name.any) && id->verbs &&
		(!device->name || !strcmp(id->verbs->device->name, device->name));
	rdma_destroy_id(id);
	return leads;
}

static bool take(const struct device_choice *device, union name name, char address[INET6_ADDRSTRLEN])
{
	bool ipv6 = name.any.sa_family == AF_INET6;

	if (ipv6)
		name.in6.sin6_port = 0;
	else
		name.in4.sin_port = 0;
	return leads_to(device, name) &&
	       inet_ntop(name.any.sa_family, ipv6 ? (void *)&name.in6.sin6_addr : (void *)&name.in4.sin_addr, address,
			 INET6_ADDRSTRLEN);
}

/* What the kernel would send from. Connecting a datagram socket only asks the routing table. */
static bool routed(const struct device_choice *device, union name to, char address[INET6_ADDRSTRLEN])
{
	union name from = {0};
	socklen_t len = to.any.sa_family == AF_INET ? sizeof(to.in4) : sizeof(to.in6);
	int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	to.in4.sin_port = htons(9); /* where that of IPv6 is, too */
	found = !connect(fd, &to.any, len) && !getsockname(fd, &from.any, &len);
	close(fd);
	return found && take(device, from, address);
}

static bool has_name(const struct ifaddrs *i, int family, union name *name)
{
	if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP))
		return false;
	*name = (union name){0};
	memcpy(name, i->ifa_addr, family == AF_INET ? sizeof(name->in4) : sizeof(name->in6));
	return true;
}

static bool of_interfaces(const struct device_choice *device, const struct ifaddrs *list, int family,
			  char address[INET6_ADDRSTRLEN])
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		union name name;
		if (!has_name(i, family, &name) || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&name.in6.sin6_addr))
			continue; /* good only with the name of the other machine's interface */
		if (take(device, name, address))
			return true;
	}
	return false;
}

void own_address(const struct device_choice *device, char address[INET6_ADDRSTRLEN])
{
	struct ifaddrs *list = NULL;

	if (routed(device, make_name(AF_INET, "192.0.2.1"), address) ||  /* RFC 5737 */
	    routed(device, make_name(AF_INET6, "2001:db8::1"), address)) /* RFC 3849 */
		return;
	getifaddrs(&list);
	if (!of_interfaces(device, list, AF_INET, address) && !of_interfaces(device, list, AF_INET6, address))
		strcpy(address, "127.0.0.1");
	freeifaddrs(list);
}

bool own_address_leads_to(const struct device_choice *device)
{
	struct ifaddrs *list = NULL;
	bool leads = false;

	getifaddrs(&list);
	for (const struct ifaddrs *i = list; i && !leads; i = i->ifa_next) {
		union name name;
		leads = (has_name(i, AF_INET, &name) || has_name(i, AF_INET6, &name)) && leads_to(device, name);
	}
	freeifaddrs(list);
	return leads;
}
