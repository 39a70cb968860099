/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end: listens by rdma_cm and by TCP, and serves many near ends at once, in one thread. */
#ifndef ROCI_TOUR_FAR_H
#define ROCI_TOUR_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tour/failure.h"
#include "tour/hello.h"

#define FAR_CLIENTS 32u /* at once; what they register is bounded by it: see TOUR_MAX_BYTES */

enum far_event_type {
	FAR_CONNECTED,
	FAR_DISCONNECTED,
	FAR_REFUSED, /* a client was sent away; `text` says why */
	FAR_PROBLEM, /* of a client; `text` says which */
};

struct far_event {
	enum far_event_type type;
	unsigned client;                     /* number, from 1 on */
	const char *address;                 /* of the client */
	const char *text;                    /* or NULL */
	const struct hello_request *request; /* or NULL: there was none that could be read */
	enum tour_way way;
	uint64_t messages; /* operations that this program has answered, without controls */
};

struct far_options {
	const char *bind_address; /* NULL: all */
	uint16_t port;            /* 0: any that is free */
	const char *device;       /* of the socket way; NULL: the one that has the address */
	bool embedded;
	void (*report)(void *context, const struct far_event *event);
	/* Other services at the same TCP port. `wants`: whether the first bytes that a client sent are for it. `adopt`
	 * takes the client over: its descriptor, which does not block, and what was read of it. NULL: there is none. */
	bool (*wants)(const void *bytes, size_t len);
	void (*adopt)(void *context, int fd, unsigned client, const char *address, const void *bytes, size_t len);
	void *context;
};

struct far;

/* Listens. 0 or negative, with *f. */
int far_open(struct far **out, const struct far_options *options, struct failure *f);
uint16_t far_port(const struct far *far);
/* Which ways do not work here, in words; "" if all do. */
const char *far_lacks(const struct far *far);
/* Serves until tour_stop() or far_end() is called. */
void far_run(struct far *far);
/* From any thread. */
void far_end(struct far *far);
void far_close(struct far *far);

#endif
