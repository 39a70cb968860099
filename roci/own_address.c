#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "own_address.h"

/* Which address the kernel would send from. Connecting a datagram socket only asks the routing table. */
static bool routed(int family, const char *to, char address[INET6_ADDRSTRLEN])
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	bool ipv6 = family == AF_INET6, found = false;
	struct sockaddr *name = ipv6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in4;
	void *bytes = ipv6 ? (void *)&in6.sin6_addr : (void *)&in4.sin_addr;
	socklen_t len = ipv6 ? sizeof(in6) : sizeof(in4);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	inet_pton(family, to, bytes);
	if (!connect(fd, name, len) && !getsockname(fd, name, &len))
		found = inet_ntop(family, bytes, address, INET6_ADDRSTRLEN);
	close(fd);
	return found;
}

static bool of_interface(const struct ifaddrs *list, int family, char address[INET6_ADDRSTRLEN])
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_flags & IFF_LOOPBACK))
			continue;
		const struct in6_addr *in6 = &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(in6))
			continue;
		const void *bytes =
			family == AF_INET6 ? (const void *)in6 : &((const struct sockaddr_in *)i->ifa_addr)->sin_addr;
		return inet_ntop(family, bytes, address, INET6_ADDRSTRLEN);
	}
	return false;
}

void own_address(char address[INET6_ADDRSTRLEN])
{
	struct ifaddrs *list = NULL;

	if (routed(AF_INET, "192.0.2.1", address) || routed(AF_INET6, "2001:db8::1", address)) /* RFC 5737, 3849 */
		return;
	getifaddrs(&list);
	if (!of_interface(list, AF_INET, address) && !of_interface(list, AF_INET6, address))
		strcpy(address, "127.0.0.1");
	freeifaddrs(list);
}
