/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a transfer: folders get their modes and times, names are synced, and the sender hears that all of it is on
 * the disk. */
#ifndef ROCI_MOVER_RECEIVER_END_H
#define ROCI_MOVER_RECEIVER_END_H

#include "mover/proto.h"

struct finish_job;
struct receiver;

struct end {
	bool finishing, finished, sent, bye_came;
	struct mover_entry *folders; /* whose modes and times are set at the end */
	size_t folder_count, folder_room, folder_bytes;
	struct finish_job *job;
	unsigned sync_failures;        /* of the tree, before the session */
	char text[PROTO_MAX_TEXT + 1]; /* what went wrong at the end */
};

void end_init(struct receiver *r);
/* After the workers have ended. */
void end_destroy(struct receiver *r);
/* Keeps a folder, with its name. False after session_fail(). */
bool end_add_folder(struct receiver *r, const struct mover_entry *folder);
/* When all entries are over: begins the end, and sends END. Nobody asks for it, which would cost a round trip. */
bool end_pump(struct receiver *r);
/* BYE has come. */
void end_bye(struct receiver *r);
/* The sender knows how the transfer ended: it said so, or its device has acknowledged END. */
bool end_is_known(const struct receiver *r);

#endif
