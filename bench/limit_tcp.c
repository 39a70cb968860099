/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_tcp -p PORT -q REQUEST -a ANSWER [-n COUNT] [ADDRESS]: COUNT times, the client sends REQUEST bytes over TCP and
 * the server, which is the one without ADDRESS, answers with ANSWER bytes. Both sleep in blocking calls. The client
 * prints the median time of an exchange.
 */
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#include "clock.h"
#include "pair.h"

static struct {
	const char *port;
	size_t request, answer;
	int count;
} options = {.port = "20997", .request = 64, .answer = 64, .count = 1000};

static void give(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		need(n > 0, "send");
		bytes += n;
		len -= (size_t)n;
	}
}

/* As much as there is at a time: MSG_WAITALL would sleep with more in the socket than this takes. */
static void take(int fd, char *bytes, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, bytes, len, 0);

		need(n > 0, "recv");
		bytes += n;
		len -= (size_t)n;
	}
}

int main(int argc, char **argv)
{
	double *took, start;
	char *bytes;
	int fd, on = 1;

	for (int opt; (opt = getopt(argc, argv, "p:q:a:n:")) != -1;) {
		switch (opt) {
		case 'p': options.port = optarg; break;
		case 'q': options.request = (size_t)atol(optarg); break;
		case 'a': options.answer = (size_t)atol(optarg); break;
		case 'n': options.count = atoi(optarg); break;
		default: return 2;
		}
	}
	if (!options.request || !options.answer || options.count < 1)
		die("-q, -a and -n: at least 1");
	bytes = calloc(1, options.request + options.answer);
	took = calloc((size_t)options.count, sizeof(*took));
	need(bytes && took, "calloc");
	fd = optind < argc ? tcp_connect(argv[optind], options.port) : tcp_serve(options.port);
	setsockopt(fd, SOL_TCP, TCP_NODELAY, &on, sizeof(on));
	for (int i = 0; i < options.count; i++) {
		start = clock_seconds();
		if (optind < argc)
			give(fd, bytes, options.request);
		take(fd, bytes, optind < argc ? options.answer : options.request);
		if (optind == argc)
			give(fd, bytes, options.answer);
		took[i] = clock_seconds() - start;
	}
	if (optind < argc)
		printf("%.3f us\n", clock_median(took, options.count) * 1e6);
	return 0;
}
