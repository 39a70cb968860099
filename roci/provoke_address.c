/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of the port: an address comes and goes. Only in a network namespace that has nothing but
 * loopback, so that no host loses an address. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "provoke.h"

/* Whether loopback is the only interface. */
static bool is_alone(void)
{
	struct if_nameindex *list = if_nameindex();
	bool alone = list && list[0].if_index && !list[1].if_index && !strcmp(list[0].if_name, "lo");

	if (list)
		if_freenameindex(list);
	return alone;
}

/* Reads or sets the flags of loopback. */
static bool flags(unsigned long what, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool done = fd >= 0 && !ioctl(fd, what, request);

	if (fd >= 0)
		close(fd);
	return done;
}

static bool is_up(void)
{
	struct ifreq request = {.ifr_name = "lo"};

	return flags(SIOCGIFFLAGS, &request) && (request.ifr_flags & IFF_UP);
}

static bool set_loopback(bool up)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0)};
	bool done = flags(SIOCSIFFLAGS, &request);

	printf("  ip link set lo %s%s%s\n", up ? "up" : "down", done ? "" : ": ", done ? "" : strerror(errno));
	return done;
}

bool provoke_address(struct provoke *p, const struct explanation *row, bool *known)
{
	bool up;

	*known = row->kind == EXPLAIN_ASYNC && (row->code == IBV_EVENT_PORT_ERR || row->code == IBV_EVENT_PORT_ACTIVE ||
						row->code == IBV_EVENT_GID_CHANGE);
	if (!*known || !p)
		return false;
	if (!is_alone()) {
		printf("This takes every address away, so it needs a network of its own:\n  %s\n", row->see);
		return false;
	}
	puts("All addresses come, or go.");
	up = row->code == IBV_EVENT_PORT_ACTIVE || (row->code == IBV_EVENT_GID_CHANGE && !is_up());
	if (is_up() == up &&
	    !(set_loopback(!up) && provoke_event_comes(p, "  event", up ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE)))
		return false;
	return set_loopback(up) && provoke_event_comes(p, "  event", row->code);
}
