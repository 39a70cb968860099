/* SPDX-License-Identifier: BSD-2-Clause */
/* What every lesson needs and none is about: errors that end the program, arguments, and waiting for completions. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Prints the message to standard error and ends the program with status 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What an errno value means, for people. */
const char *reason(int error);

/* For calls that return 0 when they succeed. librdmacm and the C library return -1 and set errno; most of libibverbs
 * returns the errno value itself. Both are handled. `what` names the call. */
void check(int result, const char *what);

/* For calls that return a pointer, NULL with errno when they fail. Returns the pointer. */
void *made(void *pointer, const char *what);

struct arguments {
	const char *program;
	const char *host;   /* NULL: this side waits for the other */
	const char *port;   /* -p; default 22222 */
	const char *device; /* -d; NULL: the first one */
	int gid_index;      /* -g; -1: find one */
	bool dies;          /* -k: this side kills itself when it is connected */
	const char *file;   /* of the lessons that move one; the CASE of lesson 9 */
};

/* Reads the command line. `options` names the option letters that the lesson has, e.g. "pk"; "f" stands for an argument
 * FILE in front of HOST, "c" for an optional argument CASE, and "1" for a lesson in one process, without HOST. Wrong
 * arguments end the program with status 2 and a line that says how it is used. */
struct arguments arguments_read(const char *options, int argc, char **argv);

/* The TCP or rdma_cm addresses of host and port, or without host those to listen on, for IPv4 and IPv6. For
 * freeaddrinfo(). */
struct addrinfo *resolve(const struct arguments *arguments);

/* With -k: ends this process as `kill -9` does. The other side has to notice. */
void die_if_asked(const struct arguments *arguments);

/* Ends the program if the completion is not a success. `what` names the request. */
void check_completion(const struct ibv_wc *wc, const char *what);

/* Waits for the next completion of the CQ, which has no completion channel, and checks it. Asks again and again: quick,
 * but a whole processor is busy with it. Lessons 1 and 2 sleep instead. */
struct ibv_wc wait_completion(struct ibv_cq *cq, const char *what);

#endif
