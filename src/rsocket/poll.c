/* SPDX-License-Identifier: BSD-2-Clause */
/* rpoll() and rselect(): rsockets and ordinary descriptors together. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "device/sys.h"
#include "rsocket/datagram.h"

/* Another thread that reads the same rsocket may take the event for which this one sleeps. */
#define LONGEST_SLEEP_MS 100

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The events of those asked, and errors. Lock held. */
static short stream_events(struct rs *rs, short asked)
{
	short events = 0;
	switch (rs->state) {
	case RS_INIT:
	case RS_BOUND: return ((POLLOUT | POLLWRNORM) & asked) | POLLHUP; /* as an unconnected TCP socket */
	case RS_LISTENING: {
		struct pollfd pfd = {.fd = rs->fd, .events = POLLIN};
		return roci_sys_poll(&pfd, 1, 0) > 0 ? (POLLIN | POLLRDNORM) & asked : 0;
	}
	case RS_CONNECTING: return 0;
	case RS_CONNECTED:
		if (rs_stream_can_send(rs))
			events |= POLLOUT | POLLWRNORM;
		if (rs_stream_has_data(rs) || !rs->readable)
			events |= POLLIN | POLLRDNORM;
		return events & asked;
	case RS_DISCONNECTED: /* POLLHUP only after the last byte was read, because programs stop there */
		events = (POLLIN | POLLRDNORM | POLLOUT) & asked;
		return rs_stream_has_data(rs) ? events & ~POLLOUT : events | POLLHUP;
	case RS_ERROR: return ((POLLIN | POLLRDNORM | POLLOUT) & asked) | POLLERR | POLLHUP;
	}
	return 0;
}

static short check(struct rs *rs, short asked, bool arm)
{
	if (rs->datagram)
		return rs_datagram_events(rs, asked, arm);
	pthread_mutex_lock(&rs->lock);
	if (arm) {
		rs_wait_take_cq_events(rs);
		rs_wait_arm(rs);
	}
	rs_stream_progress(rs);
	short events = stream_events(rs, asked);
	pthread_mutex_unlock(&rs->lock);
	return events;
}

/* Checks all, ordinary descriptors too. Returns how many have events. */
static int check_all(struct pollfd *fds, nfds_t count, bool arm)
{
	int ready = 0;
	for (nfds_t i = 0; i < count; i++) {
		struct rs *rs = fds[i].fd < 0 ? NULL : rs_table_find(fds[i].fd);
		fds[i].revents = 0;
		if (rs)
			fds[i].revents = check(rs, fds[i].events, arm);
		else if (fds[i].fd >= 0)
			roci_sys_poll(&fds[i], 1, 0);
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* The descriptors to sleep on for `fds`: at most two for each. */
static nfds_t wake_list(const struct pollfd *fds, nfds_t count, struct pollfd *wake)
{
	nfds_t n = 0;
	for (nfds_t i = 0; i < count; i++) {
		struct rs *rs = fds[i].fd < 0 ? NULL : rs_table_find(fds[i].fd);
		wake[n++] = (struct pollfd){.fd = fds[i].fd, .events = rs ? POLLIN : fds[i].events};
		int cq_fd = !rs                       ? -1
			    : rs->datagram            ? rs_datagram_cq_fd(rs)
			    : rs->id->recv_cq_channel ? rs->id->recv_cq_channel->fd
						      : -1;
		if (cq_fd >= 0)
			wake[n++] = (struct pollfd){.fd = cq_fd, .events = POLLIN};
	}
	return n;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	int ready = check_all(fds, nfds, false);
	if (ready || !timeout)
		return ready;
	struct pollfd *wake = calloc(2 * nfds + 1, sizeof(*wake));
	if (!wake)
		return rs_result(-ENOMEM);
	int64_t end = timeout < 0 ? INT64_MAX : now_ms() + timeout;
	int err = 0;
	for (;;) {
		ready = check_all(fds, nfds, true);
		int64_t left = end == INT64_MAX ? LONGEST_SLEEP_MS : end - now_ms();
		if (ready || left <= 0)
			break;
		nfds_t count = wake_list(fds, nfds, wake);
		if (roci_sys_wait(wake, (unsigned)count, (int)(left < LONGEST_SLEEP_MS ? left : LONGEST_SLEEP_MS)) <
		    0) {
			err = -errno;
			break;
		}
	}
	free(wake);
	return err ? rs_result(err) : ready;
}

/* ---- select ---- */

static int to_pollfds(int nfds, const fd_set *readfds, const fd_set *writefds, const fd_set *exceptfds,
		      struct pollfd *fds)
{
	int count = 0;
	for (int fd = 0; fd < nfds; fd++) {
		short events = 0;
		if (readfds && FD_ISSET(fd, readfds))
			events |= POLLIN;
		if (writefds && FD_ISSET(fd, writefds))
			events |= POLLOUT;
		if (exceptfds && FD_ISSET(fd, exceptfds))
			events |= POLLPRI;
		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

static int from_pollfds(const struct pollfd *fds, int count, fd_set *readfds, fd_set *writefds, fd_set *exceptfds)
{
	int ready = 0;
	if (readfds)
		FD_ZERO(readfds);
	if (writefds)
		FD_ZERO(writefds);
	if (exceptfds)
		FD_ZERO(exceptfds);
	for (int i = 0; i < count; i++) {
		const struct pollfd *p = &fds[i];
		if ((p->events & POLLIN) && (p->revents & (POLLIN | POLLHUP | POLLERR))) {
			FD_SET(p->fd, readfds);
			ready++;
		}
		if ((p->events & POLLOUT) && (p->revents & (POLLOUT | POLLERR))) {
			FD_SET(p->fd, writefds);
			ready++;
		}
		if ((p->events & POLLPRI) && (p->revents & POLLPRI)) {
			FD_SET(p->fd, exceptfds);
			ready++;
		}
	}
	return ready;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	if (nfds < 0 || nfds > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return rs_result(-EINVAL);
	struct pollfd *fds = calloc((size_t)nfds + 1, sizeof(*fds));
	if (!fds)
		return rs_result(-ENOMEM);
	int count = to_pollfds(nfds, readfds, writefds, exceptfds, fds);
	long ms = -1;
	if (timeout) {
		ms = timeout->tv_sec > INT_MAX / 1000 - 1 ? INT_MAX
							  : timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000;
	}
	int ready = rpoll(fds, (nfds_t)count, (int)ms);
	if (ready >= 0)
		ready = from_pollfds(fds, count, readfds, writefds, exceptfds);
	free(fds);
	return ready;
}
