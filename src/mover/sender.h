/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's inside: what its parts share. The story is in sender.c. */
#ifndef ROCI_MOVER_SENDER_H
#define ROCI_MOVER_SENDER_H

#include "mover/disk.h"
#include "mover/session.h"
#include "mover/walk.h"

/* What becomes of an offered entry. */
enum slot_state {
	SLOT_FREE,
	SLOT_OFFERED,
	SLOT_WANTED,
};

struct slot {
	enum slot_state state;
	bool sent;    /* its last segment is in a descriptor, */
	uint64_t seq; /* of this number */
	bool settled; /* the receiver has said how it ended */
	bool refused; /* ... badly: no more of it needs to be sent */
	/* Digests of chunks that the receiver has; NULL: none. `present` says which of them. */
	struct mover_digest *have;
	uint8_t *present;
};

/* A file that is being read. */
struct source_file {
	int fd;
	uint32_t entry;
	bool stream;
	bool given_up;   /* told the receiver so */
	bool packed;     /* all its pieces are in windows */
	unsigned pieces; /* in windows, not yet finalised */
	uint64_t size, next_chunk;
	uint64_t data_begin, data_end; /* the stretch of data last asked for */
	struct mover_digest whole;     /* of the chunks so far */
	enum mover_status failed;      /* OK: not */
	const char *why;
};

/* What a window is made of: a chunk, or a run of chunks that are a hole. */
struct piece {
	struct source_file *file;
	bool hole, last, sparse;
	uint64_t chunk, count;
	uint32_t at, len; /* in the window */
	bool reading;     /* `op` is under way */
	int64_t got;      /* bytes read, or -errno */
	struct disk_op op;
};

#define PACK_MAX_PIECES 512

enum pack_state {
	PACK_FREE,
	PACK_FILLING, /* takes more pieces */
	PACK_CLOSED,  /* waits for reads */
	PACK_READY,   /* digests made, descriptor written */
	PACK_POSTED,
};

/* A window at the sender: its content, and the descriptor that tells of it. */
struct pack {
	struct window *window;
	enum pack_state state;
	struct piece *pieces;
	unsigned count, reading;
	uint32_t used;
	uint32_t wire_bytes; /* with the tag, if encrypted */
	uint8_t *segments;   /* encoded */
	size_t segments_len;
	struct proto_descriptor descriptor;
};

struct sender {
	struct session s;
	const struct mover_send_options *options;
	struct mover_walk *walk;
	uint32_t entries;

	/* Offers: [finished, offered), of which up to `judged` the receiver has answered. */
	uint32_t finished, judged, offered;
	unsigned offers_under_way;
	struct slot *slots; /* terms.max_entries */

	/* Source: the next entry to read, the file that is being packed, the windows in their order. */
	uint32_t cursor;
	struct source_file *file;
	struct pack packs[PROTO_MAX_WINDOWS];
	struct pack *filling;
	struct pack *queue[PROTO_MAX_WINDOWS]; /* CLOSED and READY, oldest first; a ring */
	unsigned queue_first, queue_count, posted;
	struct disk *disk;
	bool stdin_ended, stdin_waiting;

	/* Dispatch */
	uint64_t seq, seq_done;
	unsigned next_lane;
	struct proto_grant grants[PROTO_MAX_WINDOWS]; /* a ring */
	unsigned grant_first, grant_count;
	double tokens; /* of --limit, in bytes */
	uint64_t tokens_ns;

	enum mover_status entry_status; /* of the last entry that failed */
	bool end_sent, end_came;
};

static inline struct slot *sender_slot(struct sender *x, uint32_t entry)
{
	return &x->slots[entry % x->s.terms.max_entries];
}

/* Whether the receiver's answer for an entry was taken to the totals and told. */
void sender_settle(struct sender *x, uint32_t entry, enum mover_outcome outcome, enum mover_status status,
		   const char *text);
void sender_sent(struct sender *x, uint32_t entry);

/* sender_connect.c: the control connection. False after session_fail(). */
#define SENDER_CONNECT_TIMEOUT_MS 8000
bool sender_connect(struct sender *x);

/* sender_source.c: from files into windows */
int source_init(struct sender *x);
void source_destroy(struct sender *x);
bool source_pump(struct sender *x);
/* A window's pieces of a file have been finished: frees the file if it was the last use. */
void source_release(struct sender *x, struct source_file *file);
bool source_idle(const struct sender *x); /* nothing is being read or waits in a window */

/* sender_pack.c: what is in a window, once it has been read */
void pack_finish(struct sender *x, struct pack *pack);

/* sender_windows.c: from windows onto the wire */
bool dispatch_pump(struct sender *x);
void dispatch_grant(struct sender *x, struct cursor_in *payload);
void dispatch_fin(struct sender *x, struct cursor_in *payload);
void dispatch_done(struct sender *x, unsigned window);

/* sender_offer.c: entries and the receiver's answers */
bool offer_pump(struct sender *x);
void offer_verdict(struct sender *x, struct cursor_in *payload);
void offer_have(struct sender *x, struct cursor_in *payload);
void offer_ack(struct sender *x, struct cursor_in *payload);

#endif
