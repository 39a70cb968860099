/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mover/receiver.h"
#include "mover/worker.h"

#define FOLDER_BYTES (64u << 20) /* of names of folders, which are kept until the end */

struct finish_job {
	struct worker_job job;
	struct receiver *r;
	int synced;    /* 0 or -errno */
	int results[]; /* of the folders */
};

void end_init(struct receiver *r)
{
	r->end.sync_failures = r->tree ? mover_tree_sync_failures(r->tree) : 0;
}

void end_destroy(struct receiver *r)
{
	for (size_t i = 0; i < r->end.folder_count; i++)
		free((void *)r->end.folders[i].name);
	free(r->end.folders);
	free(r->end.job);
}

bool end_add_folder(struct receiver *r, const struct mover_entry *folder)
{
	struct end *e = &r->end;
	struct mover_entry copy = *folder;
	uint8_t *name = malloc(folder->name_len);

	if (e->folder_count == e->folder_room) {
		size_t room = e->folder_room ? 2 * e->folder_room : 64;
		struct mover_entry *more = realloc(e->folders, room * sizeof(*more));

		if (more) {
			e->folders = more;
			e->folder_room = room;
		}
	}
	e->folder_bytes += folder->name_len + sizeof(copy);
	if (!name || e->folder_count == e->folder_room || e->folder_bytes > FOLDER_BYTES) {
		session_fail(&r->s, MOVER_FAILED,
			     "more folders than can be remembered until the end (%u MiB of names): send parts of the "
			     "tree one after the other",
			     FOLDER_BYTES >> 20);
		free(name);
		return false;
	}
	memcpy(name, folder->name, folder->name_len);
	copy.name = name;
	e->folders[e->folder_count++] = copy;
	return true;
}

/* Finishing */

static void run_finish(struct worker_job *job)
{
	struct finish_job *finish = (struct finish_job *)job;
	struct receiver *r = finish->r;

	mover_tree_finish(r->tree, r->end.folders, r->end.folder_count, finish->results);
	finish->synced = mover_tree_sync(r->tree, r->end.sync_failures);
}

/* Also without folders: the names of files have to be synced. */
static void start_finish(struct receiver *r)
{
	struct finish_job *job;

	r->end.finishing = true;
	if (!r->tree) {
		r->end.finished = true;
		return;
	}
	job = calloc(1, sizeof(*job) + r->end.folder_count * sizeof(job->results[0]));
	if (!job) {
		session_fail_memory(&r->s);
		return;
	}
	job->job.run = run_finish;
	job->r = r;
	r->end.job = job;
	worker_submit(r->commit_worker, &job->job);
}

/* A folder that existed may belong to another user, who alone can set its mode, and FAT takes few modes. The content
 * has arrived. */
static void warn_of_folders(struct receiver *r, const struct mover_entry *first, size_t count)
{
	char text[PROTO_MAX_TEXT + 1], more[40] = "";

	if (count > 1)
		snprintf(more, sizeof(more), " of %zu folders", count);
	snprintf(text, sizeof(text), "mode or time%s could not be set (%s): %.*s", more, strerrordesc_np(EPERM),
		 (int)first->name_len, (const char *)first->name);
	session_warn(&r->s, text);
}

static void folders_failed(struct receiver *r, const int *results)
{
	const struct mover_entry *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < r->end.folder_count; i++) {
		const struct mover_entry *folder = &r->end.folders[i];

		if (results[i] == -EPERM) {
			first = first ? first : folder;
			count++;
		} else if (results[i] && !*r->end.text) {
			snprintf(r->end.text, sizeof(r->end.text), "mode and time could not be set (%s): %.*s",
				 strerrordesc_np(-results[i]), (int)folder->name_len, (const char *)folder->name);
		}
	}
	if (first)
		warn_of_folders(r, first, count);
}

static void take_finished(struct receiver *r)
{
	const struct finish_job *job = r->end.job;

	r->end.finished = true;
	if (job->synced)
		snprintf(r->end.text, sizeof(r->end.text), "the names of what arrived could not be synced: %s",
			 strerrordesc_np(-job->synced));
	folders_failed(r, job->results);
}

static bool send_end(struct receiver *r)
{
	struct proto_end end = {.status = MOVER_OK};
	struct cursor_out *out = session_begin(&r->s, PROTO_END);

	if (!out)
		return false;
	if (*r->end.text) {
		end.status = MOVER_LOCAL_IO;
		end.text = proto_text(r->end.text);
	} else if (r->s.totals.entries_failed) {
		end.status = MOVER_PARTLY;
	}
	if (end.status != MOVER_LOCAL_IO && !r->reg.listener->options->once)
		end.text = proto_text(PROTO_STAYS);
	end.entries = r->s.totals.entries_done;
	end.failed = r->s.totals.entries_failed;
	session_step(&r->s, "END", "entries stored: %llu", (unsigned long long)end.entries);
	proto_put_end(out, &end);
	session_send(&r->s);
	r->end.sent = true;
	return true;
}

/* Every entry has been offered, and the sender has been told the result of each. */
static bool is_over(const struct receiver *r)
{
	return r->lanes_up && r->verdicts.offered == r->s.terms.entries && entries_idle(r) && descriptors_idle(r) &&
	       r->entries.acked == r->descriptors.done;
}

bool end_pump(struct receiver *r)
{
	if (r->end.sent || !is_over(r))
		return false;
	if (!r->end.finishing) {
		start_finish(r);
		return true;
	}
	if (r->end.finished)
		return send_end(r);
	if (!worker_reap(r->commit_worker))
		return false;
	take_finished(r);
	return true;
}

void end_bye(struct receiver *r)
{
	if (!r->end.sent) {
		session_fail_protocol(&r->s, "an unexpected BYE");
		return;
	}
	session_step(&r->s, "BYE", "the sender has the END");
	r->end.bye_came = true;
}

bool end_is_known(const struct receiver *r)
{
	return r->end.sent && (r->end.bye_came || session_all_received(&r->s));
}
