/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/abstract_name.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "device/sys.h"

/* An abstract name begins with a zero byte, and has no other at its end. */
static __attribute__((format(printf, 1, 2))) struct roci_abstract_name make(const char *format, ...)
{
	struct roci_abstract_name name = {.addr = {.sun_family = AF_UNIX}};
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(name.addr.sun_path + 1, sizeof(name.addr.sun_path) - 1, format, args);
	va_end(args);
	name.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	return name;
}

struct roci_abstract_name roci_abstract_name_door(unsigned slot)
{
	return make("roci/door/%u", slot);
}

struct roci_abstract_name roci_abstract_name_port(unsigned ps, uint16_t port)
{
	return make("roci/port/%x/%u", ps, port);
}

static int open_socket(void)
{
	int fd = roci_sys_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int roci_abstract_name_take(const struct roci_abstract_name *name)
{
	int fd = open_socket(), on = 1, err;

	if (fd < 0)
		return fd;
	/* What comes before SO_PASSCRED has no user, which the kernel shows as the overflow uid. */
	if (!roci_sys_setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
	    !roci_sys_bind(fd, (const struct sockaddr *)&name->addr, name->len))
		return fd;
	err = -errno;
	roci_sys_close(fd);
	return err;
}

bool roci_abstract_name_taken(int *asker, const struct roci_abstract_name *name)
{
	if (*asker < 0)
		*asker = open_socket();
	if (*asker < 0 || roci_sys_connect(*asker, (const struct sockaddr *)&name->addr, name->len))
		return false;
	roci_abstract_name_close(asker); /* it would stay connected */
	return true;
}

void roci_abstract_name_close(int *asker)
{
	if (*asker >= 0)
		roci_sys_close(*asker);
	*asker = -1;
}
