/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and failures of connect_many, and of tcp_many, which does the same over TCP. Included once per program. */
#ifndef ROCI_TESTS_MANY_H
#define ROCI_TESTS_MANY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS  60000
#define MESSAGE_LEN 8

static struct {
	const char *address, *port;
	unsigned count, open; /* connections: in total, and at once */
	bool server, leak;
} options = {.port = "20999", .count = 5000, .open = 500};

/* Defined by the program: prints errno's text and ends the program. */
_Noreturn static void fail(const char *what);

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

/* `letters`: the options of the program for getopt(3), of b: s: p: n: o: and l. */
static void parse(const char *program, const char *letters, int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, letters)) != -1;) {
		switch (opt) {
		case 'b': options.server = true; /* fall through */
		case 's': options.address = optarg; break;
		case 'p': options.port = optarg; break;
		case 'n': options.count = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'o': options.open = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'l': options.leak = true; break;
		default: exit(2);
		}
	}
	if (!options.address || !options.open || options.count % options.open) {
		fprintf(stderr, "%s: -b or -s ADDRESS, and a COUNT that is a multiple of OPEN\n", program);
		exit(2);
	}
}

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
