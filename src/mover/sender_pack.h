/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs: windows at the sender, each with what is in it and the descriptor that says so. A pack is filled
 * (sender_source.c), closed, finished here once its reads are done, and sent (sender_dispatch.c), in this order. */
#ifndef ROCI_MOVER_SENDER_PACK_H
#define ROCI_MOVER_SENDER_PACK_H

#include "mover/disk.h"
#include "mover/proto.h"

#define PACK_MAX_PIECES 512

struct sender;
struct source_file;
struct window;

/* A chunk in a pack, or a run of chunks that are a hole. */
struct piece {
	struct source_file *file;
	bool hole, last, sparse;
	uint64_t chunk, count;
	uint32_t at, len; /* in the window */
	int64_t got;      /* bytes read, or -errno */
	struct disk_op op;
};

enum pack_state {
	PACK_FREE,
	PACK_FILLING, /* takes more pieces */
	PACK_CLOSED,  /* waits for reads */
	PACK_READY,   /* has its digests and its descriptor */
	PACK_POSTED,
};

struct pack {
	struct window *window;
	enum pack_state state;
	struct piece *pieces;
	unsigned count, reading; /* pieces, and those whose `op` is under way */
	uint32_t used;           /* bytes of the window */
	uint32_t wire_bytes;     /* as sent: with the tag */
	uint8_t *segments;       /* encoded */
	size_t segments_len;
	struct proto_descriptor descriptor;
};

struct packs {
	struct pack list[PROTO_MAX_WINDOWS];   /* one for each window */
	struct pack *queue[PROTO_MAX_WINDOWS]; /* CLOSED and READY, oldest first; a ring */
	unsigned first, queued, posted;
	uint64_t next_seq; /* number of the next descriptor */
};

/* 0 or -ENOMEM. */
int pack_init(struct sender *x);
/* After the reads have ended. */
void pack_destroy(struct sender *x);

/* An empty pack to fill, or NULL if all are in use, or after session_fail(). */
struct pack *pack_take(struct sender *x);
/* Nothing more goes into this pack: it joins the queue. */
void pack_close(struct sender *x, struct pack *pack);
/* Makes digests and descriptor of the first queued pack that has none, if its reads are done. Windows are finished in
 * their order, so the chain over a file's chunks simply continues. One at a time, so that it goes out before the next
 * is made. Returns whether there was one. */
bool pack_pump(struct sender *x);
/* The first of the queue, or NULL if it is not ready. */
struct pack *pack_first_ready(const struct sender *x);
void pack_remove_first(struct sender *x);
/* The receiver has the content: revokes the window's key and frees the pack. */
void pack_release(struct sender *x, struct pack *pack);

#endif
