/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/address_list.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "device/sys.h"

#define MAX_IPV4 256
#define MAX_IPV6 256

struct item {
	struct ifaddrs ifa; /* first */
	char name[IFNAMSIZ];
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr;
};

struct list {
	struct item items[MAX_IPV4 + MAX_IPV6]; /* first */
	unsigned count;
	struct ifreq reqs[MAX_IPV4]; /* for get_ipv4() */
};

/* The caller fills in the address. */
static struct item *append(struct list *list, int fd, const char *name)
{
	struct item *item = &list->items[list->count];
	struct ifreq req = {0};

	snprintf(item->name, sizeof(item->name), "%.*s", IFNAMSIZ - 1, name);
	memcpy(req.ifr_name, item->name, sizeof(item->name));
	item->ifa.ifa_name = item->name;
	item->ifa.ifa_flags = ioctl(fd, SIOCGIFFLAGS, &req) ? 0 : (unsigned short)req.ifr_flags;
	item->ifa.ifa_addr = &item->addr.any;
	if (list->count)
		list->items[list->count - 1].ifa.ifa_next = &item->ifa;
	list->count++;
	return item;
}

static int get_ipv4(struct list *list, int fd)
{
	struct ifconf conf = {.ifc_len = sizeof(list->reqs), .ifc_req = list->reqs};

	if (ioctl(fd, SIOCGIFCONF, &conf))
		return -errno;
	for (unsigned i = 0; i < (unsigned)conf.ifc_len / sizeof(*list->reqs); i++)
		memcpy(&append(list, fd, list->reqs[i].ifr_name)->addr.v4, &list->reqs[i].ifr_addr,
		       sizeof(struct sockaddr_in));
	return 0;
}

/* A host without IPv6 has no such file. */
static void get_ipv6(struct list *list, int fd)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	char line[128], hex[33], name[IFNAMSIZ];

	while (file && list->count < MAX_IPV4 + MAX_IPV6 && fgets(line, sizeof(line), file)) {
		struct sockaddr_in6 *v6;

		if (sscanf(line, "%32[0-9a-f] %*x %*x %*x %*x %15s", hex, name) != 2 || strlen(hex) != 32)
			continue;
		v6 = &append(list, fd, name)->addr.v6;
		v6->sin6_family = AF_INET6;
		for (int i = 0; i < 16; i++)
			sscanf(hex + 2 * i, "%2hhx", &v6->sin6_addr.s6_addr[i]);
	}
	if (file)
		fclose(file);
}

int roci_address_list(struct ifaddrs **out)
{
	struct list *list = calloc(1, sizeof(*list));
	int fd = roci_sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (!list || fd < 0) {
		err = list ? -errno : -ENOMEM;
		goto free_list;
	}
	err = get_ipv4(list, fd);
	if (err)
		goto free_list;
	get_ipv6(list, fd);
	*out = list->count ? &list->items[0].ifa : NULL;
	roci_sys_close(fd);
	if (!list->count)
		free(list);
	return 0;

free_list:
	if (fd >= 0)
		roci_sys_close(fd);
	free(list);
	return err;
}
