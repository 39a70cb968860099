/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/port_names.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "device/abstract_name.h"
#include "device/sys.h"

int roci_port_names_open(struct roci_port_names *all)
{
	*all = (struct roci_port_names){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	return all->epoll_fd < 0 ? -errno : 0;
}

void roci_port_names_close_in_child(struct roci_port_names *all)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->names[i].fd >= 0)
			roci_sys_close(all->names[i].fd);
	close(all->epoll_fd);
}

void roci_port_names_close(struct roci_port_names *all)
{
	roci_port_names_close_in_child(all);
	free(all->names);
}

struct roci_port_name *roci_port_names_find(struct roci_port_names *all, unsigned ps, uint16_t port)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->names[i].ps == ps && all->names[i].port == port)
			return &all->names[i];
	return NULL;
}

/* Returns the socket that has the name, or a negative errno. */
static int take(struct roci_port_names *all, unsigned ps, uint16_t port)
{
	struct roci_abstract_name name = roci_abstract_name_port(ps, port);
	int fd = roci_abstract_name_take(&name), err;
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (fd < 0 || !epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return fd;
	err = -errno;
	roci_sys_close(fd);
	return err;
}

static int make_room(struct roci_port_names *all)
{
	unsigned room = all->room ? 2 * all->room : 4;
	struct roci_port_name *names;

	if (all->count < all->room)
		return 0;
	names = realloc(all->names, room * sizeof(*names));
	if (!names)
		return -ENOMEM;
	all->names = names;
	all->room = room;
	return 0;
}

int roci_port_names_add(struct roci_port_names *all, unsigned ps, uint16_t port, bool shared)
{
	struct roci_port_name *known = roci_port_names_find(all, ps, port);
	int fd, err;

	if (known) {
		known->listeners++;
		return 0;
	}
	err = make_room(all); /* may move the names */
	if (err)
		return err;
	fd = take(all, ps, port);
	if (fd < 0 && (fd != -EADDRINUSE || !shared))
		return fd;
	all->names[all->count++] =
		(struct roci_port_name){.ps = (uint16_t)ps, .port = port, .listeners = 1, .fd = fd < 0 ? -1 : fd};
	all->missing += fd < 0;
	return 0;
}

void roci_port_names_remove(struct roci_port_names *all, unsigned ps, uint16_t port)
{
	struct roci_port_name *name = roci_port_names_find(all, ps, port);

	if (!name || --name->listeners)
		return;
	if (name->fd >= 0)
		roci_sys_close(name->fd);
	else
		all->missing--;
	*name = all->names[--all->count];
}

void roci_port_names_retry(struct roci_port_names *all)
{
	for (unsigned i = 0; i < all->count; i++) {
		struct roci_port_name *name = &all->names[i];
		int fd = name->fd < 0 ? take(all, name->ps, name->port) : -1;

		if (fd < 0)
			continue;
		name->fd = fd;
		all->missing--;
	}
}

int roci_port_names_ready(const struct roci_port_names *all)
{
	struct epoll_event event;

	return all->count && epoll_wait(all->epoll_fd, &event, 1, 0) > 0 ? event.data.fd : -1;
}
