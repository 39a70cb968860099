/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does over TCP what connect_many does over RDMA; bench/connect.py compares them. The same arguments, without -l. Both
 * sides have one thread.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "many.h"

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "tcp_many (%s): %s: %s\n", options.server ? "server" : "client", what, strerror(errno));
	exit(1);
}

static struct addrinfo *resolve(void)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *info;

	MUST(getaddrinfo(options.address, options.port, &hints, &info));
	return info;
}

/* ---- the server ---- */

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

/* Sends a message back. True: the client closed the connection instead. */
static bool echo(int fd)
{
	char message[MESSAGE_LEN];
	ssize_t n = read(fd, message, sizeof(message));

	MUST(n < 0);
	if (n) {
		MUST(write(fd, message, (size_t)n) != n);
		return false;
	}
	close(fd);
	return true;
}

static void serve(const struct addrinfo *info)
{
	int listener = socket(info->ai_family, SOCK_STREAM, 0), epoll = epoll_create1(0), on = 1;
	unsigned closed = 0;

	MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	MUST(bind(listener, info->ai_addr, info->ai_addrlen));
	MUST(listen(listener, (int)options.open));
	watch(epoll, listener);
	while (closed < options.count) {
		struct epoll_event ready[64];
		int n = epoll_wait(epoll, ready, 64, TIMEOUT_MS);

		MUST(n < 1);
		for (int i = 0; i < n; i++) {
			int fd = ready[i].data.fd;

			if (fd == listener) {
				fd = accept(listener, NULL, NULL);
				MUST(fd < 0);
				watch(epoll, fd);
			} else {
				closed += echo(fd);
			}
		}
	}
	close(listener);
	close(epoll);
}

/* ---- the client ---- */

static void batch(const struct addrinfo *info, int *fds)
{
	for (unsigned i = 0; i < options.open; i++) {
		fds[i] = socket(info->ai_family, SOCK_STREAM, 0);
		MUST(fds[i] < 0 || connect(fds[i], info->ai_addr, info->ai_addrlen));
	}
	for (unsigned i = 0; i < options.open; i++)
		MUST(write(fds[i], &i, sizeof(i)) != sizeof(i));
	for (unsigned i = 0; i < options.open; i++) {
		unsigned back;

		MUST(recv(fds[i], &back, sizeof(back), MSG_WAITALL) != sizeof(back));
		if (back != i)
			fail("another message came back");
	}
	for (unsigned i = 0; i < options.open; i++)
		close(fds[i]);
}

int main(int argc, char **argv)
{
	struct addrinfo *info;
	double start, seconds;
	int *fds;

	parse("tcp_many", "b:s:p:n:o:", argc, argv);
	info = resolve();
	fds = calloc(options.open, sizeof(*fds));
	if (!fds)
		fail("calloc");
	start = now_seconds();
	if (options.server)
		serve(info);
	else
		for (unsigned i = 0; i < options.count; i += options.open)
			batch(info, fds);
	seconds = now_seconds() - start;
	printf("%u connections, %u at once, %.0f connections/s\n", options.count, options.open,
	       options.count / seconds);
	freeaddrinfo(info);
	free(fds);
	return 0;
}
