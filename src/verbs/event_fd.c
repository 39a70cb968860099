/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/event_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "device/sys.h"

int vb_event_fd_create(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

/* The caller holds a lock, so the thread must not be cancelled in these two functions. */
void vb_event_fd_signal(int fd)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	/* It would block only at a count of 2^64 - 1. */
	while (eventfd_write(fd, 1) && errno == EINTR)
		;
	pthread_setcancelstate(before, NULL);
}

/* It is readable, unless a process on the other side of a fork() has cleared it: then there is nothing to wait for. */
void vb_event_fd_clear(int fd)
{
	int before;
	eventfd_t count;
	struct iovec iov = {.iov_base = &count, .iov_len = sizeof(count)};
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	ssize_t n;
	while ((n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT)) < 0 && errno == EINTR)
		;
	if (n < 0 && errno != EAGAIN) /* a kernel that cannot, or a sandbox */
		eventfd_read(fd, &count);
	pthread_setcancelstate(before, NULL);
}

int vb_event_fd_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -1;
	if (flags & O_NONBLOCK) {
		errno = EAGAIN;
		return -1;
	}
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	if (roci_sys_wait(&pfd, 1, -1) < 0)
		return errno == EINTR && !vb_event_fd_interrupted() ? 0 : -1;
	if (pfd.revents & POLLNVAL) { /* the program closed it, or another thread closed the device */
		errno = EBADF;
		return -1;
	}
	return 0;
}

/* A handler with SA_RESETHAND has run once where its flags are left. */
static bool ends_waits(const struct sigaction *action)
{
	bool handler = action->sa_handler != SIG_IGN && action->sa_handler != SIG_DFL;

	return (handler || (action->sa_flags & (int)SA_RESETHAND)) && !(action->sa_flags & SA_RESTART);
}

/* These come of what a thread itself does, and not while it waits. Crash reporters and sanitizers handle them. */
static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
	       signal == SIGSYS;
}

bool vb_event_fd_interrupted(void)
{
	struct sigaction action;
	sigset_t blocked;
	bool ends = false;
	int err = errno;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int signal = 1; signal < NSIG && !ends; signal++)
		ends = !is_fault(signal) && !sigismember(&blocked, signal) && !sigaction(signal, NULL, &action) &&
		       ends_waits(&action);
	errno = err;
	return ends;
}
