/* SPDX-License-Identifier: BSD-2-Clause */
/* How entries end: committed in groups by a worker, or refused; and telling the sender. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mover/receiver.h"

#define RESULTS_PER_ACK 200 /* all of them fit, with their texts */
#define ACK_WINDOWS     4   /* so many may be done before an ACK goes out amid other work */

struct commit_job {
	struct worker_job job;
	struct receiver *r;
	size_t count;
	struct take **takes;
	struct mover_file **files;
	int *results;
};

bool take_is_fatal(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EIO || err == -EROFS || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE;
}

static void free_take(struct receiver *r, struct take *take)
{
	free(take->name);
	*take = (struct take){0};
	r->takes_busy--;
}

static void queue_result(struct receiver *r, struct take *take)
{
	r->results[(r->result_first + r->result_count++) % r->s.terms.max_entries] = take;
}

static void tell(struct receiver *r, const struct take *take, enum mover_outcome outcome)
{
	struct mover_totals *t = &r->s.totals;

	if (outcome == MOVER_REFUSED) {
		t->entries_failed++;
		r->entry_status = take->status;
	} else {
		t->entries_done++;
	}
	session_entry_done(&r->s, take->entry.name, take->entry.name_len, take->entry.size, outcome,
			   outcome == MOVER_REFUSED ? take->why : NULL);
}

static void drop_file(struct take *take)
{
	if (take->file)
		mover_file_abandon(take->file);
	take->file = NULL;
}

void take_refuse(struct receiver *r, struct take *take, enum mover_status status, const char *why)
{
	if (take->state == TAKE_REFUSED)
		return;
	take->state = TAKE_REFUSED;
	take->status = status;
	snprintf(take->why, sizeof(take->why), "%s", why);
	tell(r, take, MOVER_REFUSED);
	queue_result(r, take);
}

void take_refuse_errno(struct receiver *r, struct take *take, int err)
{
	if (take_is_fatal(err))
		session_fail(&r->s, MOVER_LOCAL_IO, "writing %.*s: %s", (int)take->entry.name_len,
			     (const char *)take->entry.name, strerrordesc_np(-err));
	else
		take_refuse(r, take, MOVER_LOCAL_IO, strerrordesc_np(-err));
}

void take_advance(struct receiver *r, struct take *take)
{
	if (take->writing || !take->last)
		return;
	if (take->state == TAKE_REFUSED) {
		drop_file(take);
		if (take->settled)
			free_take(r, take);
	} else if (take->state == TAKE_WANTED) {
		take->state = TAKE_STORED;
		if (take->file) {
			r->ready[r->ready_count++] = take;
		} else {
			tell(r, take, MOVER_STORED);
			queue_result(r, take);
		}
	} else if (take->state == TAKE_STORED && take->settled) {
		free_take(r, take);
	}
}

/* Committing */

static void run_commit(struct worker_job *job)
{
	struct commit_job *c = (struct commit_job *)job;
	mover_tree_commit(c->r->tree, c->files, c->count, c->results);
}

static void free_commit(struct commit_job *c)
{
	free(c->takes);
	free(c->files);
	free(c->results);
	free(c);
}

static bool start_commit(struct receiver *r)
{
	struct commit_job *c;
	size_t n = r->ready_count;

	if (!n || r->committing)
		return false;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->takes = malloc(n * sizeof(*c->takes));
		c->files = malloc(n * sizeof(*c->files));
		c->results = malloc(n * sizeof(*c->results));
	}
	if (!c || !c->takes || !c->files || !c->results) {
		session_fail(&r->s, MOVER_FAILED, "out of memory");
		return false;
	}
	c->job.run = run_commit;
	c->r = r;
	c->count = n;
	for (size_t i = 0; i < n; i++) {
		c->takes[i] = r->ready[i];
		c->files[i] = r->ready[i]->file;
		r->ready[i]->file = NULL; /* the commit frees it */
	}
	r->ready_count = 0;
	r->committing = c;
	worker_submit(r->commit, &c->job);
	return true;
}

static bool reap_commit(struct receiver *r)
{
	struct commit_job *c = (struct commit_job *)worker_reap(r->commit);

	if (!c)
		return false;
	r->committing = NULL;
	for (size_t i = 0; i < c->count; i++) {
		struct take *take = c->takes[i];
		if (c->results[i]) {
			take_refuse_errno(r, take, c->results[i]);
			continue;
		}
		tell(r, take, MOVER_STORED);
		queue_result(r, take);
	}
	free_commit(c);
	return true;
}

/* Telling */

static bool send_ack(struct receiver *r)
{
	struct session *s = &r->s;
	unsigned count = r->result_count < RESULTS_PER_ACK ? r->result_count : RESULTS_PER_ACK;
	struct cursor_out *out;

	if (r->end_sent)
		return false;
	out = session_begin(s, PROTO_ACK);
	if (!out)
		return false;
	session_step(s, "ACK", "windows: %llu, entries stored: %u", (unsigned long long)r->seq_done, count);
	put_u64(out, r->seq_done);
	put_u64(out, s->totals.bytes_done);
	put_u16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		struct take *take = r->results[r->result_first];
		struct proto_result result = {.entry = take->index, .verdict = PROTO_DONE};
		if (take->state == TAKE_REFUSED) {
			result.verdict = PROTO_REFUSED;
			result.status = take->status;
			result.text = proto_text(take->why);
		}
		proto_put_result(out, &result, true);
		r->result_first = (r->result_first + 1) % s->terms.max_entries;
		r->result_count--;
		take->settled = true;
		take_advance(r, take);
	}
	r->seq_acked = r->seq_done;
	session_send(s);
	return true;
}

bool take_pump(struct receiver *r)
{
	return reap_commit(r) | start_commit(r);
}

bool take_ack(struct receiver *r, bool busy)
{
	if (!r->result_count && r->seq_acked == r->seq_done)
		return false;
	if (busy && r->result_count < RESULTS_PER_ACK / 4 && r->seq_done - r->seq_acked < ACK_WINDOWS)
		return false;
	return send_ack(r);
}

/* After the workers have ended: whatever is unfinished stays for a resumed transfer. */
void take_destroy(struct receiver *r)
{
	worker_destroy(r->commit);
	if (r->committing)
		free_commit(r->committing);
	for (uint32_t i = 0; r->takes && i < r->s.terms.max_entries; i++) {
		drop_file(&r->takes[i]);
		free(r->takes[i].name);
	}
	free(r->takes);
	free(r->results);
	free(r->ready);
}
