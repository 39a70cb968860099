/* SPDX-License-Identifier: BSD-2-Clause */
/* What to take of an offer. A worker looks what is in the folder, in the order of the entries (folders come before what
 * is in them); then the sender is told, with the digests of what is there already. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mover/receiver.h"

#define OFFERS_UNDER_WAY 8
#define HAVE_DIGESTS     2000        /* in one message */
#define FOLDER_BYTES     (64u << 20) /* of names of folders, which are kept to the end */
#define BUSY_LOOK_MS     100         /* between looks whether another transfer has let go of a file */
#define BUSY_WARN_MS     5000
#define BUSY_WAIT_MS     60000 /* then it is refused: two may wait for each other, or one for itself */

struct judgement {
	struct mover_entry entry;
	enum proto_verdict verdict;
	int err;
	const char *why;
	bool resumed;
	struct mover_file *file;
};

struct judge_job {
	struct worker_job job;
	struct receiver *r;
	struct judge_job *next;
	uint32_t first;
	uint16_t count, told; /* told: entries whose digests have been sent */
	uint64_t next_chunk;  /* of entry `told` */
	uint8_t *payload;     /* where the names are */
	struct judgement entries[];
};

static void free_job(struct judge_job *job)
{
	for (unsigned i = 0; i < job->count; i++)
		if (job->entries[i].file)
			mover_file_abandon(job->entries[i].file);
	free(job->payload);
	free(job);
}

/* In the worker */

/* Another transfer writes this file: one that goes on, or whose end nobody has noticed yet. Waits a bit. */
static void wait_for_other(struct receiver *r, const struct judgement *j, unsigned waited_ms)
{
	char text[PROTO_MAX_TEXT + 1];

	nanosleep(&(struct timespec){0, BUSY_LOOK_MS * 1000000}, NULL);
	if (waited_ms != BUSY_WARN_MS)
		return;
	snprintf(text, sizeof(text), "waiting for another transfer of the same file: %.*s", (int)j->entry.name_len,
		 (const char *)j->entry.name);
	session_warn(&r->s, text);
}

static void judge_file(struct receiver *r, struct judgement *j)
{
	int result;

	for (unsigned waited_ms = 0;; waited_ms += BUSY_LOOK_MS) {
		result = mover_tree_begin(r->tree, &j->entry, r->s.terms.chunk_bytes, r->s.terms.checksum, &r->ending,
					  &j->file);
		if (result != -EBUSY || waited_ms >= BUSY_WAIT_MS || atomic_load(&r->ending))
			break;
		wait_for_other(r, j, waited_ms);
	}
	if (result < 0) {
		j->verdict = PROTO_REFUSED;
		j->err = result;
	} else {
		j->verdict = result == MOVER_HAVE_ALL ? PROTO_UNCHANGED : PROTO_WANT;
		j->resumed = result == MOVER_HAVE_SOME;
	}
}

/* A dry run only looks. */
static void judge_dry(struct receiver *r, struct judgement *j)
{
	int result = j->entry.kind == MOVER_FILE ? mover_tree_look(r->tree, &j->entry, r->s.terms.checksum)
						 : MOVER_HAVE_NONE;

	j->err = result < 0 ? result : 0;
	j->verdict = result < 0 ? PROTO_REFUSED : result == MOVER_HAVE_ALL ? PROTO_UNCHANGED : PROTO_WOULD;
}

static void judge_entry(struct receiver *r, struct judgement *j)
{
	if (r->s.terms.dry_run) {
		judge_dry(r, j);
		return;
	}
	switch (j->entry.kind) {
	case MOVER_FOLDER:
		j->err = mover_tree_folder(r->tree, &j->entry);
		j->verdict = j->err < 0 ? PROTO_REFUSED : PROTO_DONE;
		break;
	case MOVER_SYMLINK:
		j->err = mover_tree_symlink(r->tree, &j->entry);
		j->verdict = j->err < 0 ? PROTO_REFUSED : j->err ? PROTO_UNCHANGED : PROTO_DONE;
		break;
	default: judge_file(r, j);
	}
}

static void judge_stdout(struct receiver *r, struct judgement *j)
{
	j->verdict = PROTO_REFUSED;
	if (j->entry.kind != MOVER_FILE && j->entry.kind != MOVER_STREAM)
		j->why = "only a file can go to standard output";
	else if (r->s.terms.dry_run)
		j->verdict = PROTO_WOULD;
	else if (r->stdout_taken)
		j->why = "only one file can go to standard output";
	else
		j->verdict = PROTO_WANT;
	if (j->verdict == PROTO_WANT)
		r->stdout_taken = true;
}

static void run_judge(struct worker_job *job)
{
	struct judge_job *j = (struct judge_job *)job;

	for (unsigned i = 0; i < j->count && !atomic_load(&j->r->ending); i++)
		if (j->r->tree)
			judge_entry(j->r, &j->entries[i]);
		else
			judge_stdout(j->r, &j->entries[i]);
}

/* An offer comes */

static struct judge_job *new_job(struct receiver *r, const struct cursor_in *payload, uint32_t first, uint16_t count)
{
	size_t len = (size_t)(payload->end - payload->at);
	struct judge_job *job = calloc(1, sizeof(*job) + count * sizeof(job->entries[0]));

	if (job)
		job->payload = malloc(len + 1);
	if (!job || !job->payload) {
		session_fail(&r->s, MOVER_FAILED, "out of memory");
		free(job);
		return NULL;
	}
	memcpy(job->payload, payload->at, len);
	job->job.run = run_judge;
	job->r = r;
	job->first = first;
	job->count = count;
	return job;
}

void judge_offer(struct receiver *r, struct cursor_in *payload)
{
	struct session *s = &r->s;
	struct judge_job *job;
	struct cursor_in in;
	uint32_t first;
	uint16_t count;

	if (r->end_came || proto_get_list(payload, &first, &count, s->terms.max_entries) || first != r->offered ||
	    count > s->terms.max_entries - r->takes_busy || r->judging >= OFFERS_UNDER_WAY ||
	    count > s->terms.entries - r->offered) {
		session_fail_protocol(s, "an offer out of turn");
		return;
	}
	session_step(s, "OFFER", "entries: %u", count);
	job = new_job(r, payload, first, count);
	if (!job)
		return;
	in = cursor_in(job->payload, (size_t)(payload->end - payload->at));
	for (unsigned i = 0; i < count; i++) {
		struct take *take = receiver_take(r, first + i);
		if (proto_get_entry(&in, &job->entries[i].entry) || take->state != TAKE_FREE) {
			session_fail_protocol(s, "an entry that may not be");
			free_job(job);
			return;
		}
		take->state = TAKE_JUDGING;
		take->index = first + i;
		r->takes_busy++;
	}
	r->offered += count;
	r->judging++;
	if (proto_get_nothing(&in))
		session_fail_protocol(s, "more behind an offer");
	job->next = NULL;
	worker_submit(r->judge, &job->job);
}

/* It has been judged */

static bool keep_folder(struct receiver *r, const struct mover_entry *entry)
{
	struct mover_entry copy = *entry;
	uint8_t *name = malloc(entry->name_len);

	if (r->folder_count == r->folder_room) {
		size_t room = r->folder_room ? 2 * r->folder_room : 64;
		struct mover_entry *more = realloc(r->folders, room * sizeof(*more));
		if (more) {
			r->folders = more;
			r->folder_room = room;
		}
	}
	r->folder_bytes += entry->name_len + sizeof(copy);
	if (!name || r->folder_count == r->folder_room || r->folder_bytes > FOLDER_BYTES) {
		session_fail(&r->s, MOVER_FAILED, "too many folders for the memory there is");
		free(name);
		return false;
	}
	memcpy(name, entry->name, entry->name_len);
	copy.name = name;
	r->folders[r->folder_count++] = copy;
	return true;
}

static bool begin_take(struct receiver *r, struct take *take, struct judgement *j)
{
	take->name = malloc(j->entry.name_len);
	if (!take->name) {
		session_fail(&r->s, MOVER_FAILED, "out of memory");
		return false;
	}
	memcpy(take->name, j->entry.name, j->entry.name_len);
	take->entry = j->entry;
	take->entry.name = take->name;
	take->entry.target = NULL;
	take->file = j->file;
	take->state = TAKE_WANTED;
	j->file = NULL;
	return true;
}

static void conclude(struct receiver *r, struct judgement *j)
{
	struct mover_totals *t = &r->s.totals;
	uint64_t size = j->entry.kind == MOVER_FILE ? j->entry.size : 0;
	enum mover_outcome outcome = MOVER_STORED;

	switch (j->verdict) {
	case PROTO_UNCHANGED:
		outcome = MOVER_UNCHANGED;
		t->entries_unchanged++;
		t->bytes_unchanged += size;
		t->bytes_done += size;
		break;
	case PROTO_WOULD: outcome = MOVER_WOULD; break;
	case PROTO_REFUSED: outcome = MOVER_REFUSED; break;
	default: break;
	}
	if (outcome == MOVER_REFUSED) {
		t->entries_failed++;
		r->entry_status = MOVER_LOCAL_IO;
	} else {
		t->entries_done++;
	}
	if (!j->why)
		j->why = j->err < 0 ? strerrordesc_np(-j->err) : NULL;
	session_entry_done(&r->s, j->entry.name, j->entry.name_len, size, outcome, j->why);
}

/* Digests of chunks that are there, message after message; false while there is no room for the next. */
static bool tell_have(struct receiver *r, struct judge_job *job)
{
	struct judgement *j = &job->entries[job->told];

	while ((job->next_chunk = mover_file_next_kept(j->file, job->next_chunk)) != MOVER_NO_CHUNK) {
		const struct mover_digest *kept = mover_file_kept(j->file, job->next_chunk);
		struct cursor_out *out;
		uint8_t *head;
		uint16_t count = 0;

		out = session_begin(&r->s, PROTO_HAVE);
		if (!out)
			return false;
		put_u32(out, job->first + job->told);
		put_u64(out, job->next_chunk);
		head = cursor_take(out, 2);
		for (; kept && count < HAVE_DIGESTS; count++) {
			put_bytes(out, kept->bytes, sizeof(kept->bytes));
			kept = mover_file_kept(j->file, ++job->next_chunk);
		}
		cursor_patch_u16(head, count);
		session_step(&r->s, "HAVE", "%u chunks of entry %u", count, job->first + job->told);
		session_send(&r->s);
	}
	return true;
}

static bool tell_verdict(struct receiver *r, struct judge_job *job)
{
	struct cursor_out *out;

	for (; job->told < job->count; job->told++, job->next_chunk = 0)
		if (job->entries[job->told].file && job->entries[job->told].resumed && !tell_have(r, job))
			return false;
	out = session_begin(&r->s, PROTO_VERDICT);
	if (!out)
		return false;
	put_u32(out, job->first);
	put_u16(out, job->count);
	session_step(&r->s, "VERDICT", "entries: %u", job->count);
	for (unsigned i = 0; i < job->count; i++) {
		struct judgement *j = &job->entries[i];
		struct take *take = receiver_take(r, job->first + i);
		struct proto_result result = {.verdict = j->verdict, .status = MOVER_LOCAL_IO};

		if (j->verdict == PROTO_WANT) {
			begin_take(r, take, j);
		} else {
			conclude(r, j);
			result.text = proto_text(j->why);
			*take = (struct take){0};
			r->takes_busy--;
		}
		if (j->entry.kind == MOVER_FOLDER && j->verdict == PROTO_DONE)
			keep_folder(r, &j->entry);
		if (j->verdict == PROTO_REFUSED && take_is_fatal(j->err))
			session_fail(&r->s, MOVER_LOCAL_IO, "%.*s: %s", (int)j->entry.name_len,
				     (const char *)j->entry.name, strerrordesc_np(-j->err));
		proto_put_result(out, &result, false);
	}
	if (r->s.status == MOVER_OK)
		session_send(&r->s);
	return true;
}

bool judge_pump(struct receiver *r)
{
	struct worker_job *done;
	bool any = false;

	while ((done = worker_reap(r->judge))) {
		struct judge_job *job = (struct judge_job *)done;
		*r->judged_last = job;
		r->judged_last = &job->next;
	}
	while (r->judged && r->s.status == MOVER_OK && tell_verdict(r, r->judged)) {
		struct judge_job *job = r->judged;
		r->judged = job->next;
		if (!r->judged)
			r->judged_last = &r->judged;
		free_job(job);
		r->judging--;
		any = true;
	}
	return any;
}

void judge_destroy(struct receiver *r)
{
	struct worker_job *done;

	/* what is still with the worker has to come back first */
	while (r->judge && r->judging) {
		unsigned here = 0;
		for (struct judge_job *job = r->judged; job; job = job->next)
			here++;
		if (here == r->judging)
			break;
		while ((done = worker_reap(r->judge))) {
			struct judge_job *job = (struct judge_job *)done;
			job->next = NULL;
			*r->judged_last = job;
			r->judged_last = &job->next;
		}
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	worker_destroy(r->judge);
	while (r->judged) {
		struct judge_job *job = r->judged;
		r->judged = job->next;
		free_job(job);
	}
	for (size_t i = 0; i < r->folder_count; i++)
		free((void *)r->folders[i].name);
	free(r->folders);
}
