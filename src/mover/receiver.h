/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's inside: what the parts of one session share. The story is in receiver.c; who lets sessions in is
 * listener.c. */
#ifndef ROCI_MOVER_RECEIVER_H
#define ROCI_MOVER_RECEIVER_H

#include <stdatomic.h>

#include "mover/disk.h"
#include "mover/session.h"
#include "mover/tree.h"

struct listener;

enum take_state {
	TAKE_FREE,
	TAKE_JUDGING, /* offered; a worker looks what is there */
	TAKE_WANTED,
	TAKE_REFUSED, /* what still comes of it is dropped */
	TAKE_STORED,  /* all there and in order; on its way to the disk, or on it */
};

/* An entry whose content is being taken in. */
struct take {
	enum take_state state;
	struct mover_entry entry; /* name in `name` */
	uint8_t *name;
	uint32_t index;
	struct mover_file *file; /* NULL: goes to standard output */
	bool holes;
	bool last;    /* its last segment has been seen */
	bool settled; /* its result has been told, or needs no telling */
	uint64_t next_chunk;
	unsigned writing; /* writes under way */
	struct mover_digest whole;
	enum mover_status status; /* why refused */
	char why[160];
};

enum hold_state {
	HOLD_FREE,
	HOLD_GRANTED, /* the sender may fill it (READ: the READ is under way) */
	HOLD_ARRIVED, /* filled, its descriptor not yet acted upon */
	HOLD_USED,    /* content is on its way to files */
};

/* A window at the receiver. */
struct hold {
	enum hold_state state;
	bool claimed;   /* a descriptor names it */
	uint16_t lane;  /* SEND: where it is posted; WRITE: whence DONE came */
	uint32_t len;   /* SEND: what came */
	uint64_t seq;   /* WRITE: as DONE said */
	bool asking;    /* READ: there are more to be posted */
	unsigned reads; /* READ: under way */
	unsigned writing;
};

/* A descriptor that has come and waits for its turn, or for its window. */
struct fin {
	struct proto_descriptor d;
	struct proto_grant grant; /* READ */
	bool reading, told;       /* READ: begun; the sender knows that it is over */
	uint32_t asked;           /* READ: bytes that READs have been posted for */
	uint16_t window;          /* ours */
	uint8_t *segments;
	size_t len, room;
};

/* One write of content. */
struct store_op {
	struct disk_op op;
	struct take *take;
	struct hold *hold;
	uint64_t chunk;
	struct mover_digest digest;
	struct store_op *next;  /* while free */
	struct store_op *older; /* made before, whatever it does now */
};

struct judge_job;
struct commit_job;
struct seal_job;

struct receiver {
	struct session s;
	struct listener *listener;
	struct receiver *next; /* in the listener's list */
	pthread_t thread;
	bool trusted, over; /* listener's lock */
	atomic_bool superseded;
	atomic_bool ending; /* for the workers: what they do is of no use any more */
	int wake_fd;
	uint64_t id;
	uint8_t token[SECURE_TOKEN_BYTES];
	bool takes_lanes;                           /* listener's lock: token holds */
	unsigned descriptors;                       /* listener's lock: set aside */
	struct rdma_cm_id *arrivals[MOVER_MAX_QPS]; /* listener's lock: data connections that want in, by index */
	char identity[17];

	struct mover_tree *tree; /* NULL: standard output */
	bool stdout_taken;
	bool terms_came;
	uint32_t offered;               /* entries so far */
	enum mover_status entry_status; /* of the last entry that failed */

	struct take *takes; /* terms.max_entries */
	uint32_t takes_busy;
	struct take **results; /* a ring of those whose result is to be told */
	unsigned result_first, result_count;
	struct take **ready; /* to be committed */
	unsigned ready_count;

	struct worker *judge, *commit;
	struct judge_job *judged, **judged_last; /* verdicts to be told */
	unsigned judging;
	struct commit_job *committing;
	struct mover_entry *folders; /* to be sealed */
	size_t folder_count, folder_room, folder_bytes;

	struct hold holds[PROTO_MAX_WINDOWS];
	struct fin fins[PROTO_FINS];
	uint64_t seq, seq_done, seq_acked; /* descriptors: come, acted upon, told */
	unsigned reads;                    /* READ: under way, of all windows */
	struct disk *disk, *out;
	struct store_op *free_ops, *all_ops;
	bool end_came, sealing, sealed, end_sent;
	struct seal_job *seal;
	unsigned sync_failures;             /* of the tree, before the session */
	char seal_text[PROTO_MAX_TEXT + 1]; /* what went wrong with it */
};

static inline struct take *receiver_take(struct receiver *r, uint32_t entry)
{
	return &r->takes[entry % r->s.terms.max_entries];
}

/* receiver.c: the session's thread. Takes ownership of everything but the listener's list. */
extern const struct session_role receiver_role;
void *receiver_thread(void *receiver);
void receiver_destroy(struct receiver *r);

/* receiver_offer.c: what to take */
void judge_offer(struct receiver *r, struct cursor_in *payload);
bool judge_pump(struct receiver *r);
void judge_destroy(struct receiver *r);

/* receiver_windows.c: windows and their descriptors */
bool windows_pump(struct receiver *r);
void windows_fin(struct receiver *r, struct cursor_in *payload);   /* WRITE, SEND */
void windows_grant(struct receiver *r, struct cursor_in *payload); /* READ */
void windows_arrived(struct receiver *r, unsigned window, unsigned lane, uint32_t len);
void windows_done(struct receiver *r, unsigned lane, uint64_t seq, uint16_t window);
bool windows_idle(const struct receiver *r);

/* receiver_store.c: content into files */
int store_init(struct receiver *r);
void store_destroy(struct receiver *r);
void store_segment(struct receiver *r, const struct proto_segment *segment, uint8_t *bytes, struct hold *hold);
bool store_pump(struct receiver *r);

/* receiver_take.c: how entries end */
void take_refuse(struct receiver *r, struct take *take, enum mover_status status, const char *why);
void take_refuse_errno(struct receiver *r, struct take *take, int err);
/* Looks whether an entry is complete, or over, and goes on with it. */
void take_advance(struct receiver *r, struct take *take);
bool take_pump(struct receiver *r);
/* The last of a round. `busy`: there was other work, so it may wait for more to tell. */
bool take_ack(struct receiver *r, bool busy);
void take_destroy(struct receiver *r);
/* Errors that are not one file's: a full disk. */
bool take_is_fatal(int err);

/* listener.c */
/* One who has proved a ticket: may he come in? False after session_fail(). */
bool listener_claim(struct receiver *r);
void listener_over(struct receiver *r);
mover_secure_lookup_fn listener_lookup;
/* Sets descriptors aside for that many entries under way; returns for how many there are. */
uint16_t listener_reserve(struct receiver *r, uint16_t entries);
void listener_publish(struct receiver *r); /* data connections may come */
struct rdma_cm_id *listener_arrival(struct receiver *r, unsigned index);

#endif
