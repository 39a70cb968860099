/* SPDX-License-Identifier: BSD-2-Clause */
/* What to do with one offered entry: compares it with what is in the folder. Runs in a worker, because it waits for the
 * disk. */
#ifndef ROCI_MOVER_RECEIVER_DECISION_H
#define ROCI_MOVER_RECEIVER_DECISION_H

#include "mover/proto.h"
#include "mover/tree.h"

struct receiver;

struct decision {
	struct mover_entry info;
	enum proto_verdict verdict;
	int err;                 /* REFUSED: -errno, */
	const char *why;         /* or a text */
	bool resumed;            /* WANT: some chunks are there already */
	struct mover_file *file; /* WANT, unless it goes to standard output */
};

/* Fills in the rest; `info` is given. Folders and symbolic links are made here, and files are begun. Decisions are made
 * one after the other, in the order of the entries: folders come before what is in them. */
void decision_make(struct receiver *r, struct decision *d);

#endif
