/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

/* Parses ":PORT" or an empty text. */
static int take_port(const char *text, uint16_t *port, const char **why)
{
	char *end;
	if (!*text)
		return 0;
	long number = text[0] == ':' && text[1] >= '0' && text[1] <= '9' ? strtol(text + 1, &end, 10) : 0;
	if (number > 0 && number < 65536 && !*end) {
		*port = (uint16_t)number;
		return 0;
	}
	*why = "the port must be a number from 1 to 65535";
	return -EINVAL;
}

/* fe80::1 is on every interface: without "%eth0" no route is meant, and the kernel only says "Invalid argument". */
bool target_lacks_interface(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, host, &address) == 1 && IN6_IS_ADDR_LINKLOCAL(&address);
}

bool target_is_loopback(const char *host)
{
	return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

const char *target_of_peer(const char *host, char *text, size_t size)
{
	snprintf(text, size, "%.*s", (int)(strchr(host, ':') ? strcspn(host, "%") : strlen(host)), host);
	if (!target_lacks_interface(text))
		return NULL;
	snprintf(text + strlen(text), size - strlen(text), "%%INTERFACE");
	return "INTERFACE is the network interface of that machine that leads here, such as eth0";
}

const char *target_interface_wrong(const char *host)
{
	const char *name = strchr(host, '%');

	if (target_lacks_interface(host))
		return "a link-local address needs the interface that leads there, as in fe80::1%eth0";
	if (strchr(host, ':') && name && !name[1])
		return "an interface must follow the %, as in fe80::1%eth0; `ip -brief addr` lists them";
	if (strchr(host, ':') && name && !if_nametoindex(name + 1) && name[1 + strspn(name + 1, "0123456789")])
		return "this machine has no interface of that name; `ip -brief addr` lists them";
	return NULL;
}

int target_parse(const char *text, struct target *target, const char **why)
{
	const char *host = text, *colon = strchr(text, ':'), *end;

	*target = (struct target){0};
	*why = NULL;
	if (*text == '@') {
		target->ticket_file = text + 1;
		*why = text[1] ? NULL : "a file name must follow the @";
		return text[1] ? 0 : -EINVAL;
	}
	if (strchr(text, '/')) {
		*why = "this is a path, but the last argument must be the receiver's host";
		return -EINVAL;
	}
	if (*text == '[') {
		host = text + 1;
		end = strchr(host, ']');
		if (!end) {
			*why = "the closing bracket is missing";
			return -EINVAL;
		}
		if (take_port(end + 1, &target->port, why))
			return -EINVAL;
	} else if (colon && !strchr(colon + 1, ':')) {
		end = colon;
		if (take_port(colon, &target->port, why))
			return -EINVAL;
	} else { /* no colon, or an IPv6 address */
		end = host + strlen(host);
	}
	if (end == host || (size_t)(end - host) >= sizeof(target->host)) {
		*why = end == host ? "the host is missing" : "the host name is too long";
		return -EINVAL;
	}
	memcpy(target->host, host, (size_t)(end - host));
	*why = target_interface_wrong(target->host);
	return *why ? -EINVAL : 0;
}
