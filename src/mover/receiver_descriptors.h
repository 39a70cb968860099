/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors at the receiver: they say what is in a window. They are acted upon strictly in their order, each when its
 * window has arrived. */
#ifndef ROCI_MOVER_RECEIVER_DESCRIPTORS_H
#define ROCI_MOVER_RECEIVER_DESCRIPTORS_H

#include "mover/proto.h"

struct receiver;

struct descriptor {
	struct proto_descriptor d;
	uint16_t window;          /* ours; PROTO_NO_WINDOW: none, or none yet (READ) */
	struct proto_grant grant; /* READ: of the sender's window */
	bool reading;             /* READ: begun */
	bool announced;           /* READ: the sender knows that its window has been read */
	uint32_t asked;           /* READ: bytes for which READs have been posted */
	uint8_t *segments;
	size_t len, room;
};

struct descriptors {
	struct descriptor *ring; /* as many as the sender may send: s.control.takes */
	uint64_t received, done; /* numbers: of the next to come, and of the next to act upon */
};

/* For the terms that have been agreed on. 0 or -ENOMEM. */
int descriptors_init(struct receiver *r);
void descriptors_destroy(struct receiver *r);
struct descriptor *descriptors_at(const struct receiver *r, uint64_t seq);
/* FIN has come (any mode), or GRANT with descriptors (READ). */
void descriptors_fin(struct receiver *r, struct cursor_in *payload);
void descriptors_grant(struct receiver *r, struct cursor_in *payload);
/* Acts upon those whose turn it is. */
bool descriptors_pump(struct receiver *r);
/* All that came have been acted upon. */
bool descriptors_idle(const struct receiver *r);

#endif
