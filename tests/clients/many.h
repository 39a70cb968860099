/* SPDX-License-Identifier: BSD-2-Clause */
/* What connect_many and tcp_many, its twin over TCP, share: their arguments, and how they end. Included by one file
 * each. */
#ifndef ROCI_TESTS_MANY_H
#define ROCI_TESTS_MANY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000 /* for a hang */
#define MESSAGE_LEN 8

static struct {
	const char *address, *port;
	unsigned count, open; /* connections in all, and at once */
	bool server, leak;
} options = {.port = "20999", .count = 5000, .open = 500};

/* Of the program that includes this: ends it, with errno's text. */
_Noreturn static void fail(const char *what);

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

/* `letters` as getopt(3) has them: those that the program takes, of b: s: p: n: o: and l. */
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
