/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls on the device's own sockets, straight to the kernel. A program may preload a library that puts itself in
 * front of libc's socket functions (librspreload.so makes RDMA connections of them): the device's sockets are not the
 * program's. Each is as its namesake of libc, but no cancellation point; roci_sys_wait() is one.
 */
#ifndef ROCI_DEVICE_SYS_H
#define ROCI_DEVICE_SYS_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline int roci_sys_socket(int family, int type, int protocol)
{
	return (int)syscall(SYS_socket, family, type, protocol);
}

static inline int roci_sys_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static inline int roci_sys_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return (int)syscall(SYS_bind, fd, addr, len);
}

static inline int roci_sys_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return (int)syscall(SYS_connect, fd, addr, len);
}

static inline int roci_sys_shutdown(int fd, int how)
{
	return (int)syscall(SYS_shutdown, fd, how);
}

static inline int roci_sys_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return (int)syscall(SYS_getsockname, fd, addr, len);
}

static inline int roci_sys_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	return (int)syscall(SYS_setsockopt, fd, level, option, value, len);
}

static inline int roci_sys_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
}

static inline ssize_t roci_sys_recv(int fd, void *buf, size_t len, int flags)
{
	return syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

static inline ssize_t roci_sys_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
					socklen_t *from_len)
{
	return syscall(SYS_recvfrom, fd, buf, len, flags, from, from_len);
}

static inline ssize_t roci_sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static inline ssize_t roci_sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return syscall(SYS_recvmsg, fd, msg, flags);
}

static inline int roci_sys_sendmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
	return (int)syscall(SYS_sendmmsg, fd, msgs, count, flags);
}

/* Without a time limit. */
static inline int roci_sys_recvmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
	return (int)syscall(SYS_recvmmsg, fd, msgs, count, flags, NULL);
}

/* Not every machine has SYS_poll. */
static inline int roci_sys_poll(struct pollfd *fds, unsigned count, int timeout_ms)
{
	struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

	return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &limit, NULL, _NSIG / 8);
}

/* roci_sys_poll() for programs that wait, and may be cancelled: they hold no lock of ours. */
static inline int roci_sys_wait(struct pollfd *fds, unsigned count, int timeout_ms)
{
	int before, n;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	n = roci_sys_poll(fds, count, timeout_ms);
	pthread_setcanceltype(before, NULL);
	return n;
}

#endif
