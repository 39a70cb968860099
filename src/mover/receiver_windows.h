/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's windows: granted, filled by the peer, used, and granted again. A window's key is revoked before
 * anybody reads what came in. */
#ifndef ROCI_MOVER_RECEIVER_WINDOWS_H
#define ROCI_MOVER_RECEIVER_WINDOWS_H

#include "mover/proto.h"

struct receiver;
struct window;

enum recv_window_state {
	RECV_WINDOW_FREE,
	RECV_WINDOW_GRANTED, /* the sender may fill it; READ: it is being read */
	RECV_WINDOW_ARRIVED, /* filled; its descriptor has not been acted upon */
	RECV_WINDOW_USED,    /* its content is on the way to files */
};

struct recv_window {
	struct window *window;
	enum recv_window_state state;
	bool claimed;     /* a descriptor names it */
	uint16_t lane;    /* SEND: where it is posted; WRITE: where DONE came */
	uint32_t len;     /* SEND: what came */
	uint64_t seq;     /* WRITE: from DONE */
	bool asking;      /* READ: more READs are to be posted */
	unsigned reads;   /* READ: under way */
	unsigned writing; /* writes to files under way */
};

struct windows {
	struct recv_window list[PROTO_MAX_WINDOWS];
	uint64_t granted; /* so far */
};

void windows_init(struct receiver *r);
/* Frees windows whose content is written, and grants free ones (WRITE, SEND). */
bool windows_pump(struct receiver *r);

/* A free window; SEND: of a data connection that has been accepted. NULL: none. */
struct recv_window *windows_free(struct receiver *r);
/* A descriptor names this window. False if the window may not be named now. */
bool windows_claim(struct receiver *r, uint16_t window);
/* SEND: something was received into the window. */
void windows_received(struct receiver *r, unsigned window, unsigned lane, uint32_t len);
/* WRITE: DONE has come. */
void windows_done(struct receiver *r, unsigned lane, uint64_t seq, uint16_t window);

#endif
