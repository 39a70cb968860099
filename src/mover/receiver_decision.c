/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mover/receiver.h"

#define BUSY_RETRY_MS 100 /* how often to try again while another transfer has the file */
#define BUSY_WARN_MS  5000
#define BUSY_WAIT_MS  60000 /* then the file is refused: two transfers may wait for each other, or one for itself */

/* Another transfer writes this file. It may be running, or its end has not been noticed yet. */
static void wait_for_other(struct receiver *r, const struct decision *d, unsigned waited_ms)
{
	char text[PROTO_MAX_TEXT + 1];

	nanosleep(&(struct timespec){0, BUSY_RETRY_MS * 1000000}, NULL);
	if (waited_ms != BUSY_WARN_MS)
		return;
	snprintf(text, sizeof(text), "waiting for another transfer of the same file: %.*s", (int)d->info.name_len,
		 (const char *)d->info.name);
	session_warn(&r->s, text);
}

/* A hash of the sender's ticket; 0 without a ticket. */
static uint64_t ticket_hash(const struct receiver *r)
{
	struct mover_digest digest = mover_digest_of(r->reg.identity, strlen(r->reg.identity));
	uint64_t hash;

	memcpy(&hash, digest.bytes, sizeof(hash));
	return mover_secure_is_open(r->s.control.secure) ? 0 : hash;
}

static void decide_file(struct receiver *r, struct decision *d)
{
	const struct mover_begin begin = {.chunk_bytes = r->s.terms.chunk_bytes,
					  .ticket = ticket_hash(r),
					  .compare = r->s.terms.checksum,
					  .any_ticket = r->reg.listener->options->compare,
					  .maker = r->reg.id};
	int result;

	for (unsigned waited_ms = 0;; waited_ms += BUSY_RETRY_MS) {
		result = mover_file_begin(r->tree, &d->info, &begin, &r->ending, &d->file);
		if (result != -EBUSY || waited_ms >= BUSY_WAIT_MS || atomic_load(&r->ending))
			break;
		wait_for_other(r, d, waited_ms);
	}
	if (result < 0) {
		d->verdict = PROTO_REFUSED;
		d->err = result;
	} else {
		d->verdict = result == MOVER_HAVE_ALL ? PROTO_UNCHANGED : PROTO_WANT;
		d->resumed = result == MOVER_HAVE_SOME;
	}
}

/* A dry run changes nothing. */
static void decide_dry_run(struct receiver *r, struct decision *d)
{
	int result =
		d->info.kind == MOVER_FILE ? mover_file_probe(r->tree, &d->info, r->s.terms.checksum) : MOVER_HAVE_NONE;

	d->err = result < 0 ? result : 0;
	d->verdict = result < 0 ? PROTO_REFUSED : result == MOVER_HAVE_ALL ? PROTO_UNCHANGED : PROTO_WOULD;
}

static void decide_entry(struct receiver *r, struct decision *d)
{
	if (d->info.kind == MOVER_SYMLINK && !r->reg.listener->options->links && mover_symlink_leads_out(&d->info)) {
		d->verdict = PROTO_REFUSED;
		d->why = "the symbolic link points out of the folder; `roci recv --links` stores such links";
		return;
	}
	if (r->s.terms.dry_run) {
		decide_dry_run(r, d);
		return;
	}
	switch (d->info.kind) {
	case MOVER_FOLDER:
		d->err = mover_tree_folder(r->tree, &d->info, r->reg.id);
		d->verdict = d->err < 0 ? PROTO_REFUSED : PROTO_DONE;
		break;
	case MOVER_SYMLINK:
		d->err = mover_tree_symlink(r->tree, &d->info);
		d->verdict = d->err < 0 ? PROTO_REFUSED : d->err ? PROTO_UNCHANGED : PROTO_DONE;
		break;
	default: decide_file(r, d);
	}
}

static void decide_stdout(struct receiver *r, struct decision *d)
{
	d->verdict = PROTO_REFUSED;
	if (d->info.kind != MOVER_FILE && d->info.kind != MOVER_STREAM)
		d->why = "only a file can go to standard output";
	else if (r->s.terms.dry_run)
		d->verdict = PROTO_WOULD;
	else if (r->verdicts.stdout_taken)
		d->why = "only one file can go to standard output";
	else
		d->verdict = PROTO_WANT;
	if (d->verdict == PROTO_WANT)
		r->verdicts.stdout_taken = true;
}

void decision_make(struct receiver *r, struct decision *d)
{
	if (r->tree)
		decide_entry(r, d);
	else
		decide_stdout(r, d);
}
