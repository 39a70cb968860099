/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "perf/talk.h"
#include "tour/clock.h"
#include "tour/stop.h"

bool control_stopped(const struct perf_control *c)
{
	struct pollfd fd = {.fd = c->end_fd, .events = POLLIN};

	return (c->heeds_stop && tour_stopped()) || (c->end_fd >= 0 && poll(&fd, 1, 0) > 0);
}

static int gone(const struct perf_control *c, struct failure *f)
{
	return fail(f, -ECONNRESET, "%s has closed the connection", c->address);
}

/* Waits until the socket is ready: 0 or negative. */
static int wait_for(const struct perf_control *c, short events, uint64_t deadline_ns, struct failure *f)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = c->fd, .events = events},
				       {.fd = c->heeds_stop ? tour_stop_fd() : -1, .events = POLLIN},
				       {.fd = c->end_fd, .events = POLLIN}};
		uint64_t now = tour_now_ns();
		if (control_stopped(c))
			return fail(f, -EINTR, "interrupted");
		if (now >= deadline_ns)
			return fail(f, -ETIMEDOUT, "%s did not answer", c->address);
		poll(fds, 3, (int)((deadline_ns - now) / 1000000u + 1));
		if (fds[0].revents)
			return 0;
	}
}

int control_read(const struct perf_control *c, void *bytes, size_t len, int timeout_ms, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + (uint64_t)timeout_ms * 1000000u;
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(c->fd, (uint8_t *)bytes + got, len - got, 0);
		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		if (!n || (errno != EAGAIN && errno != EINTR))
			return gone(c, f);
		int err = wait_for(c, POLLIN, deadline_ns, f);
		if (err)
			return err;
	}
	return 0;
}

int control_write(const struct perf_control *c, const void *bytes, size_t len, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + CONTROL_TIMEOUT_MS * UINT64_C(1000000);
	size_t put = 0;

	while (put < len) {
		ssize_t n = send(c->fd, (const uint8_t *)bytes + put, len - put, MSG_NOSIGNAL);
		if (n > 0) {
			put += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return gone(c, f);
		int err = wait_for(c, POLLOUT, deadline_ns, f);
		if (err)
			return err;
	}
	return 0;
}

int control_has(const struct perf_control *c, size_t len, struct failure *f)
{
	uint8_t bytes[TALK_REPORT_BYTES];
	ssize_t n = recv(c->fd, bytes, len, MSG_PEEK | MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		return gone(c, f);
	return n == (ssize_t)len;
}

void control_wait(const struct perf_control *c, int more, int64_t timeout_ns)
{
	struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
			       {.fd = c->heeds_stop ? tour_stop_fd() : -1, .events = POLLIN},
			       {.fd = c->end_fd, .events = POLLIN},
			       {.fd = more, .events = POLLIN}};
	struct timespec left = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};

	ppoll(fds, 4, &left, NULL);
}
