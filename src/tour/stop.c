/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/stop.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static atomic_bool stopped;
static int fd = -1;

int tour_stop_init(void)
{
	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd < 0 ? -errno : 0;
}

void tour_stop(void)
{
	int err = errno;
	uint64_t one = 1;

	atomic_store(&stopped, true);
	if (write(fd, &one, sizeof(one)) < 0) /* it is readable already */
		errno = err;
}

bool tour_stopped(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed);
}

int tour_stop_fd(void)
{
	return fd;
}
