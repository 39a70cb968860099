/*
 * What connect_many does, over TCP: the measure that bench/connect.py puts beside it. The same arguments, but no -l;
 * both sides are one thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000 /* for a hang */
#define MESSAGE_LEN 8

static struct {
	const char *address, *port;
	unsigned count, open; /* connections in all, and at once */
	bool server;
} options = {.port = "20999", .count = 5000, .open = 500};

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "tcp_many (%s): %s: %s\n", options.server ? "server" : "client", what, strerror(errno));
	exit(1);
}

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

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

/* Sends back what came. True: the end of the connection came instead. */
static bool echo(int fd)
{
	char message[MESSAGE_LEN];
	ssize_t n = read(fd, message, sizeof message);

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

	MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	MUST(bind(listener, info->ai_addr, info->ai_addrlen));
	MUST(listen(listener, (int)options.open));
	watch(epoll, listener);
	while (closed < options.count) {
		struct epoll_event ready[64];
		int n = epoll_wait(epoll, ready, 64, PATIENCE_MS);

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
		MUST(write(fds[i], &i, sizeof i) != sizeof i);
	for (unsigned i = 0; i < options.open; i++) {
		unsigned back;

		MUST(recv(fds[i], &back, sizeof back, MSG_WAITALL) != sizeof back);
		if (back != i)
			fail("another message came back");
	}
	for (unsigned i = 0; i < options.open; i++)
		close(fds[i]);
}

static void parse(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "b:s:p:n:o:")) != -1;) {
		switch (opt) {
		case 'b': options.server = true; /* fall through */
		case 's': options.address = optarg; break;
		case 'p': options.port = optarg; break;
		case 'n': options.count = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'o': options.open = (unsigned)strtoul(optarg, NULL, 0); break;
		default: exit(2);
		}
	}
	if (!options.address || !options.open || options.count % options.open) {
		fprintf(stderr, "tcp_many: -b or -s ADDRESS, and a COUNT that is a multiple of OPEN\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct addrinfo *info;
	struct timespec t0, t1;
	double seconds;
	int *fds;

	parse(argc, argv);
	info = resolve();
	fds = calloc(options.open, sizeof *fds);
	if (!fds)
		fail("calloc");
	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (options.server)
		serve(info);
	else
		for (unsigned i = 0; i < options.count; i += options.open)
			batch(info, fds);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	seconds = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
	printf("%u connections, %u at once, %.0f connections/s\n", options.count, options.open,
	       options.count / seconds);
	freeaddrinfo(info);
	free(fds);
	return 0;
}
