/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mover/receiver.h"
#include "mover/scarce.h"
#include "mover/worker.h"

#define RESULTS_PER_ACK 200 /* all of them fit, with their texts */
#define NAME_SHOWN      120 /* bytes of a name: what follows it gets into a message to the sender, too */
#define ACK_WINDOWS     4   /* while there is other work, an ACK waits until so many windows are done */

struct commit_job {
	struct worker_job job;
	struct receiver *r;
	size_t count;
	struct recv_entry **entries;
	struct mover_file **files;
	int *results;
};

bool entries_is_fatal(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EIO || err == -EROFS || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE;
}

int entries_init(struct receiver *r)
{
	struct entries *e = &r->entries;
	uint16_t max = r->s.terms.max_entries;

	e->list = calloc(max, sizeof(*e->list));
	e->results = calloc(max, sizeof(*e->results));
	e->ready = calloc(max, sizeof(*e->ready));
	return e->list && e->results && e->ready ? 0 : -ENOMEM;
}

struct recv_entry *entries_at(struct receiver *r, uint32_t number)
{
	return &r->entries.list[number % r->s.terms.max_entries];
}

bool entries_offer(struct receiver *r, uint32_t number)
{
	struct recv_entry *entry = entries_at(r, number);

	if (entry->state != RECV_ENTRY_FREE)
		return false;
	entry->state = RECV_ENTRY_OFFERED;
	entry->number = number;
	r->entries.busy++;
	return true;
}

bool entries_want(struct receiver *r, struct recv_entry *entry, struct decision *d)
{
	entry->name = malloc(d->info.name_len);
	if (!entry->name) {
		session_fail_memory(&r->s);
		return false;
	}
	memcpy(entry->name, d->info.name, d->info.name_len);
	entry->info = d->info;
	entry->info.name = entry->name;
	entry->info.target = NULL;
	if (entry->info.kind == MOVER_STREAM && !r->s.report.stream)
		r->s.report.stream = MOVER_STDIN;
	entry->file = d->file;
	entry->state = RECV_ENTRY_WANTED;
	d->file = NULL;
	return true;
}

void entries_free(struct receiver *r, struct recv_entry *entry)
{
	free(entry->name);
	*entry = (struct recv_entry){0};
	r->entries.busy--;
}

void entries_report(struct receiver *r, const struct mover_entry *info, enum mover_outcome outcome,
		    enum mover_status status, const char *why)
{
	bool content = info->kind == MOVER_FILE || info->kind == MOVER_STREAM;

	if (outcome == MOVER_REFUSED) {
		r->s.totals.entries_failed++;
		r->entries.status = status;
	} else {
		r->s.totals.entries_done++;
	}
	session_entry_done(&r->s, info->name, info->name_len, content ? info->size : 0, outcome, why);
}

static void queue_result(struct receiver *r, struct recv_entry *entry)
{
	struct entries *e = &r->entries;

	e->results[(e->result_first + e->result_count++) % r->s.terms.max_entries] = entry;
	e->refusals += entry->state == RECV_ENTRY_REFUSED;
}

static void finish_stored(struct receiver *r, struct recv_entry *entry)
{
	entries_report(r, &entry->info, MOVER_STORED, MOVER_OK, NULL);
	queue_result(r, entry);
}

static void drop_file(struct recv_entry *entry)
{
	if (entry->file)
		mover_file_abandon(entry->file);
	entry->file = NULL;
}

void entries_refuse(struct receiver *r, struct recv_entry *entry, enum mover_status status, const char *why)
{
	if (entry->state == RECV_ENTRY_REFUSED)
		return;
	entry->state = RECV_ENTRY_REFUSED;
	entry->status = status;
	snprintf(entry->why, sizeof(entry->why), "%s", why);
	entries_report(r, &entry->info, MOVER_REFUSED, status, entry->why);
	queue_result(r, entry);
}

void entries_refuse_errno(struct receiver *r, struct recv_entry *entry, int err)
{
	if (!entries_is_fatal(err)) {
		char why[ENTRIES_WHY_CHARS];

		entries_refuse(r, entry, MOVER_LOCAL_IO, entries_say_why(r, &entry->info, err, why));
		return;
	}
	entry->broken = true;
	entries_fail(r, &entry->info, err);
}

/* What stands in the way, and what to do about it. NULL: the error says it. */
static const char *obstacle(const struct receiver *r, const struct mover_entry *info, int err)
{
	switch (-err) {
	case EEXIST:
		return r->reg.listener->options->keep
			       ? "something else has its name, and `roci recv --keep` replaces nothing"
			       : "a FIFO, socket or device has its name; move that away and send again";
	case EISDIR: return "a folder has its name; move that away and send again";
	case ENOTDIR:
	case ELOOP:
		return "something else is where a folder has to be (no symbolic link is followed); move that away "
		       "and send again";
	case ENOENT: return "its folder is not there (refused, or removed meanwhile); send again";
	case ENOTUNIQ:
		return "a name that differs from it only in case is there, and the file system takes one of them; give "
		       "it another name";
	case EBUSY: return "another transfer writes this file; send again when that has ended";
	case ESTALE: return "its folder, its temporary file or what has its name was changed meanwhile; send again";
	case EACCES: return "the user of `roci recv` may not write to its folder";
	case ENAMETOOLONG: return "the file system there takes no name of this length; give it a shorter one";
	case EFBIG: return "it is larger than the file system, or `ulimit -f` of `roci recv`, allows a file to be";
	case EPERM: return info->kind == MOVER_SYMLINK ? "the file system there takes no symbolic links" : NULL;
	default: return NULL;
	}
}

const char *entries_say_why(const struct receiver *r, const struct mover_entry *info, int err,
			    char why[ENTRIES_WHY_CHARS])
{
	const char *text = obstacle(r, info, err);

	snprintf(why, ENTRIES_WHY_CHARS, "it cannot be stored: %s", text ? text : strerrordesc_np(-err));
	return why;
}

void entries_fail(struct receiver *r, const struct mover_entry *info, int err)
{
	int cut = info->name_len > NAME_SHOWN ? info->name_len - NAME_SHOWN : 0;

	while (cut && cut < info->name_len && (info->name[cut] & 0xc0) == 0x80) /* in the midst of a character */
		cut++;
	session_fail(&r->s, MOVER_LOCAL_IO, "storing %s%.*s: %s", cut ? "..." : "", info->name_len - cut,
		     (const char *)info->name + cut, strerrordesc_np(-err));
}

void entries_given_up(struct receiver *r, struct recv_entry *entry, const char *why)
{
	if (entry->state != RECV_ENTRY_WANTED)
		return;
	entry->state = RECV_ENTRY_REFUSED;
	entry->settled = true;
	snprintf(entry->why, sizeof(entry->why), "the sender gave it up: %s", why);
	entries_report(r, &entry->info, MOVER_REFUSED, MOVER_REMOTE_IO, entry->why);
}

/* Whether the temporary file of an entry stays, for the report of the end. Files of one chunk leave none. */
static void note_part(struct receiver *r, const struct recv_entry *entry)
{
	struct session_report *report = &r->s.report;
	char path[MOVER_PATH_MAX + MOVER_COMPONENT_MAX + 2];

	if (!r->tree || r->s.terms.dry_run || !entry->name || entry->info.kind != MOVER_FILE ||
	    entry->info.size <= r->s.terms.chunk_bytes || !mover_file_part(r->tree, &entry->info, path))
		return;
	if (!report->part_files++ && asprintf(&report->part_file, "%s/%s", r->reg.listener->options->dir, path) < 0)
		report->part_file = NULL;
}

static void note_lingering(struct receiver *r, struct recv_entry *entry)
{
	bool lingers = entry->state == RECV_ENTRY_REFUSED && entry->last && entry->writing;

	r->entries.lingering += lingers;
	r->entries.lingering -= entry->lingers;
	entry->lingers = lingers;
}

void entries_advance(struct receiver *r, struct recv_entry *entry)
{
	note_lingering(r, entry);
	if (entry->writing || !entry->last || entry->broken)
		return;
	if (entry->state == RECV_ENTRY_REFUSED) {
		if (entry->file) {
			drop_file(entry);
			note_part(r, entry);
		}
		if (entry->settled)
			entries_free(r, entry);
	} else if (entry->state == RECV_ENTRY_WANTED) {
		entry->state = RECV_ENTRY_STORED;
		if (entry->file)
			r->entries.ready[r->entries.ready_count++] = entry;
		else
			finish_stored(r, entry);
	} else if (entry->state == RECV_ENTRY_STORED && entry->settled) {
		entries_free(r, entry);
	}
}

/* Committing */

static void run_commit(struct worker_job *job)
{
	struct commit_job *c = (struct commit_job *)job;
	mover_file_commit(c->r->tree, c->files, c->count, c->results);
}

static void free_commit(struct commit_job *c)
{
	free(c->entries);
	free(c->files);
	free(c->results);
	free(c);
}

static bool start_commit(struct receiver *r)
{
	struct commit_job *c;
	size_t n = r->entries.ready_count;

	if (!n || r->entries.committing)
		return false;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->entries = malloc(n * sizeof(*c->entries));
		c->files = malloc(n * sizeof(*c->files));
		c->results = malloc(n * sizeof(*c->results));
	}
	if (!c || !c->entries || !c->files || !c->results) {
		session_fail_memory(&r->s);
		return false;
	}
	c->job.run = run_commit;
	c->r = r;
	c->count = n;
	for (size_t i = 0; i < n; i++) {
		c->entries[i] = r->entries.ready[i];
		c->files[i] = r->entries.ready[i]->file;
		r->entries.ready[i]->file = NULL; /* the commit frees it */
	}
	r->entries.ready_count = 0;
	r->entries.committing = c;
	worker_submit(r->commit_worker, &c->job);
	return true;
}

/* Once: all files of the file system are alike. */
static void warn_of_mode(struct receiver *r, const struct mover_entry *info)
{
	char text[PROTO_MAX_TEXT + 1];

	if (!r->entries.mode_warned) {
		snprintf(
			text, sizeof(text),
			"the file system does not take the modes of all files; of mode %03o, stored with another: %.*s",
			(unsigned)info->mode & 0777, (int)info->name_len, (const char *)info->name);
		session_warn(&r->s, text);
	}
	r->entries.mode_warned = true;
}

static bool reap_commit(struct receiver *r)
{
	struct commit_job *c = (struct commit_job *)worker_reap(r->commit_worker);

	if (!c)
		return false;
	r->entries.committing = NULL;
	for (size_t i = 0; i < c->count; i++) {
		struct recv_entry *entry = c->entries[i];
		if (c->results[i] < 0) {
			entries_refuse_errno(r, entry, c->results[i]);
			continue;
		}
		if (c->results[i] == MOVER_MODE_NOT_SET)
			warn_of_mode(r, &entry->info);
		finish_stored(r, entry);
	}
	free_commit(c);
	return true;
}

/* Reporting to the sender */

/* Which windows an ACK with so many results says are done. A sender that has given up an entry forgets it with the ACK
 * of its last segment, so a refusal comes no later than that. */
static uint64_t windows_to_ack(const struct receiver *r, unsigned results)
{
	return r->entries.refusals && results < r->entries.result_count ? r->entries.acked : r->descriptors.done;
}

static bool send_ack(struct receiver *r)
{
	struct session *s = &r->s;
	unsigned count = r->entries.result_count < RESULTS_PER_ACK ? r->entries.result_count : RESULTS_PER_ACK;
	uint64_t windows = windows_to_ack(r, count);
	struct cursor_out *out;

	if (r->end.sent)
		return false;
	out = session_begin(s, PROTO_ACK);
	if (!out)
		return false;
	session_step(s, "ACK", "windows: %llu, results of entries: %u", (unsigned long long)windows, count);
	put_u64(out, windows);
	put_u64(out, s->totals.bytes_done);
	put_u16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		struct recv_entry *entry = r->entries.results[r->entries.result_first];
		struct proto_result result = {.entry = entry->number, .verdict = PROTO_DONE};
		if (entry->state == RECV_ENTRY_REFUSED) {
			result.verdict = PROTO_REFUSED;
			result.status = entry->status;
			result.text = proto_text(entry->why);
			r->entries.refusals--;
		}
		proto_put_result(out, &result, true);
		r->entries.result_first = (r->entries.result_first + 1) % s->terms.max_entries;
		r->entries.result_count--;
		entry->settled = true;
		entries_advance(r, entry);
	}
	r->entries.acked = windows;
	session_send(s);
	return true;
}

bool entries_pump(struct receiver *r)
{
	return reap_commit(r) | start_commit(r);
}

/* Few credits: whether there is more to wait for. */
static bool ack_waits(const struct receiver *r, uint64_t windows)
{
	return !control_is_roomy(&r->s.control) && r->entries.result_count != r->entries.busy &&
	       !scarce_enough(windows, r->s.pool.count, SCARCE_ACKS);
}

bool entries_ack(struct receiver *r, bool busy)
{
	uint64_t windows = r->descriptors.done - r->entries.acked;

	if ((!r->entries.result_count && !windows) || r->entries.lingering)
		return false;
	if (r->entries.result_count < RESULTS_PER_ACK / 4 && ((busy && windows < ACK_WINDOWS) || ack_waits(r, windows)))
		return false;
	return send_ack(r);
}

bool entries_idle(const struct receiver *r)
{
	return !r->entries.busy && !r->entries.result_count;
}

void entries_destroy(struct receiver *r)
{
	struct entries *e = &r->entries;

	if (e->committing)
		free_commit(e->committing);
	for (uint32_t i = 0; e->list && i < r->s.terms.max_entries; i++) {
		drop_file(&e->list[i]);
		note_part(r, &e->list[i]);
		free(e->list[i].name);
	}
	free(e->list);
	free(e->results);
	free(e->ready);
}
