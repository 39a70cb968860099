/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's entries, from the offer to the result: refused, or stored by a worker in groups; and the ACKs that
 * report results to the sender. */
#ifndef ROCI_MOVER_RECEIVER_ENTRIES_H
#define ROCI_MOVER_RECEIVER_ENTRIES_H

#include "mover/entry.h"
#include "mover/mover.h"

struct commit_job;
struct decision;
struct mover_file;
struct receiver;

#define ENTRIES_WHY_CHARS 160

enum recv_entry_state {
	RECV_ENTRY_FREE,
	RECV_ENTRY_OFFERED, /* no verdict yet */
	RECV_ENTRY_WANTED,
	RECV_ENTRY_REFUSED, /* the rest of its content is dropped */
	RECV_ENTRY_STORED,  /* complete and verified; on its way to the disk, or there */
};

struct recv_entry {
	enum recv_entry_state state;
	struct mover_entry info; /* its name is `name` */
	uint8_t *name;
	uint32_t number;
	struct mover_file *file; /* NULL: goes to standard output */
	bool holes;
	bool last;    /* its last segment has come */
	bool settled; /* the sender knows the result */
	bool broken;  /* a write failed in a way that ended the session: it gets no name, and its chunks are kept */
	uint64_t next_chunk;
	unsigned writing;          /* writes under way */
	bool lingers;              /* refused, and its last segment has come, but writes are under way */
	struct mover_digest whole; /* of the chunks so far */
	enum mover_status status;  /* why refused */
	char why[ENTRIES_WHY_CHARS];
};

struct entries {
	struct recv_entry *list;     /* terms.max_entries; entry n is in place n % max_entries */
	uint32_t busy;               /* not FREE */
	uint32_t lingering;          /* entries that linger */
	struct recv_entry **results; /* a ring of those whose result the next ACKs report */
	unsigned result_first, result_count;
	uint32_t refusals;         /* of these */
	struct recv_entry **ready; /* to be committed */
	unsigned ready_count;
	struct commit_job *committing;
	bool mode_warned;         /* the file system has not taken a file's mode, and a warning says so */
	uint64_t acked;           /* descriptors that an ACK has reported as done */
	enum mover_status status; /* of the last entry that failed */
};

/* 0 or -ENOMEM. */
int entries_init(struct receiver *r);
/* After the workers have ended. What is unfinished stays on the disk for a resumed transfer. */
void entries_destroy(struct receiver *r);

/* The place of an entry, whatever is in it. */
struct recv_entry *entries_at(struct receiver *r, uint32_t number);
/* False if its place is not free. */
bool entries_offer(struct receiver *r, uint32_t number);
/* The verdict is WANT: takes file and name from the decision. False after session_fail(). */
bool entries_want(struct receiver *r, struct recv_entry *entry, struct decision *d);
/* Frees the place. */
void entries_free(struct receiver *r, struct recv_entry *entry);

/* An entry failed here; the next ACK says so. With `err`: as entries_refuse(), unless entries_is_fatal(). */
void entries_refuse(struct receiver *r, struct recv_entry *entry, enum mover_status status, const char *why);
void entries_refuse_errno(struct receiver *r, struct recv_entry *entry, int err);
/* The text for an entry that failed here with -errno. Returns `why`. */
const char *entries_say_why(const struct receiver *r, const struct mover_entry *info, int err,
			    char why[ENTRIES_WHY_CHARS]);
/* The session cannot go on: an entry could not be stored, -errno says why. */
void entries_fail(struct receiver *r, const struct mover_entry *info, int err);
/* The sender gave it up, and needs no result. */
void entries_given_up(struct receiver *r, struct recv_entry *entry, const char *why);
/* To be called after the last segment and after each write: continues with an entry that is complete, or over. */
void entries_advance(struct receiver *r, struct recv_entry *entry);
/* Counts and reports an outcome. `why` may be NULL. */
void entries_report(struct receiver *r, const struct mover_entry *info, enum mover_outcome outcome,
		    enum mover_status status, const char *why);

/* Starts and finishes commits. */
bool entries_pump(struct receiver *r);
/* Sends an ACK if there is enough to report, and no entry lingers: with the ACK of its last segment the sender may
 * offer another one for the place of a refused entry. `busy`: there was other work in this round, so it may wait for
 * more. */
bool entries_ack(struct receiver *r, bool busy);
/* Nothing is open, and the sender knows all results. */
bool entries_idle(const struct receiver *r);

/* Errors that end the session because they are not one file's, such as a full disk. */
bool entries_is_fatal(int err);

#endif
