/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor behind completion channels and async events. Its counter only says "something waits": the events
 * themselves lie in a list under a lock, and ringing, hushing and changing the list happen under that lock, so that a
 * read never blocks. Every event rings, because a program may wait edge-triggered.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/objects.h"

int vb_bell_create(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

/* A thread must not be cancelled in here, where the caller holds a lock. */
void vb_bell_ring(int fd)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	/* The counter would have to reach 2^64 to block. */
	while (eventfd_write(fd, 1) && errno == EINTR)
		;
	pthread_setcancelstate(before, NULL);
}

void vb_bell_hush(int fd)
{
	int before;
	eventfd_t count;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	while (eventfd_read(fd, &count) && errno == EINTR)
		;
	pthread_setcancelstate(before, NULL);
}

int vb_bell_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -1;
	if (flags & O_NONBLOCK) {
		errno = EAGAIN;
		return -1;
	}
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	if (poll(&pfd, 1, -1) < 0)
		return -1;
	if (pfd.revents & POLLNVAL) { /* the program closed it, or another thread the device */
		errno = EBADF;
		return -1;
	}
	return 0;
}
