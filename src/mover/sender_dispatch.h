/* SPDX-License-Identifier: BSD-2-Clause */
/* From packs onto the wire, in each of the three modes. */
#ifndef ROCI_MOVER_SENDER_DISPATCH_H
#define ROCI_MOVER_SENDER_DISPATCH_H

#include "mover/proto.h"
#include "mover/rate_limit.h"

struct sender;

/* Descriptors whose content is on its way, encoded; with their grants in mode READ. They go in one message as soon as
 * it may be sent. Content does not wait for that. */
struct batch {
	enum proto_type type;
	uint16_t count;
	size_t len;
	uint8_t bytes[PROTO_PAYLOAD_BYTES];
};

struct dispatch {
	uint64_t acked; /* descriptors that the receiver has acted upon */
	unsigned next_lane;
	struct proto_grant grants[PROTO_MAX_WINDOWS]; /* a ring; WRITE, SEND */
	unsigned grant_first, grant_count;
	struct rate_limit limit;
	struct batch *batch;
};

/* 0 or -ENOMEM. */
int dispatch_init(struct sender *x);
void dispatch_destroy(struct sender *x);
bool dispatch_pump(struct sender *x);
/* GRANT has come (WRITE, SEND). */
void dispatch_grant(struct sender *x, struct cursor_in *payload);
/* FIN has come (READ): the receiver has read a window. */
void dispatch_fin(struct sender *x, struct cursor_in *payload);
/* The operation on a window has been acknowledged (WRITE, SEND). */
void dispatch_done(struct sender *x, unsigned window);

#endif
