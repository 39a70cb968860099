/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "mover/receiver.h"
#include "mover/worker.h"

#define OFFERS_UNDER_WAY 8
#define HAVE_DIGESTS     2000 /* in one message */

/* The entries of one OFFER. */
struct batch {
	struct worker_job job;
	struct receiver *r;
	struct batch *next;
	uint32_t first;
	uint16_t count;
	uint16_t have_sent;  /* entries whose digests have been sent */
	uint64_t next_chunk; /* of the entry after these: the next digest to send */
	uint8_t *payload;    /* where the names are */
	struct decision decisions[];
};

int verdicts_init(struct receiver *r)
{
	r->verdicts.last = &r->verdicts.first;
	return worker_create(&r->verdicts.worker);
}

static void free_batch(struct batch *b)
{
	for (unsigned i = 0; i < b->count; i++)
		if (b->decisions[i].file)
			mover_file_abandon(b->decisions[i].file);
	free(b->payload);
	free(b);
}

static void take_decided(struct verdicts *v)
{
	struct worker_job *done;

	while ((done = worker_reap(v->worker))) {
		struct batch *b = (struct batch *)done;

		b->next = NULL;
		*v->last = b;
		v->last = &b->next;
		v->deciding--;
	}
}

static struct batch *remove_first(struct verdicts *v)
{
	struct batch *b = v->first;

	v->first = b->next;
	if (!v->first)
		v->last = &v->first;
	return b;
}

void verdicts_destroy(struct receiver *r)
{
	struct verdicts *v = &r->verdicts;

	while (v->deciding) { /* with the worker: their memory must not go before it has finished */
		poll(&(struct pollfd){.fd = worker_fd(v->worker), .events = POLLIN}, 1, -1);
		take_decided(v);
	}
	worker_destroy(v->worker);
	while (v->first)
		free_batch(remove_first(v));
}

/* An offer */

static void run_batch(struct worker_job *job)
{
	struct batch *b = (struct batch *)job;

	for (unsigned i = 0; i < b->count && !atomic_load(&b->r->ending); i++) {
		/* after a file of several chunks, which may have taken a while, as at the beginning */
		if (b->r->tree && (!i || b->decisions[i - 1].info.size > b->r->s.terms.chunk_bytes))
			mover_tree_begin_batch(b->r->tree);
		decision_make(b->r, &b->decisions[i]);
	}
}

static struct batch *new_batch(struct receiver *r, const struct cursor_in *payload, uint32_t first, uint16_t count)
{
	size_t len = (size_t)(payload->end - payload->at);
	struct batch *b = calloc(1, sizeof(*b) + count * sizeof(b->decisions[0]));

	if (b)
		b->payload = malloc(len + 1);
	if (!b || !b->payload) {
		session_fail_memory(&r->s);
		free(b);
		return NULL;
	}
	memcpy(b->payload, payload->at, len);
	b->job.run = run_batch;
	b->r = r;
	b->first = first;
	b->count = count;
	return b;
}

void verdicts_offer(struct receiver *r, struct cursor_in *payload)
{
	struct verdicts *v = &r->verdicts;
	const struct proto_terms *terms = &r->s.terms;
	struct batch *b;
	struct cursor_in in;
	uint32_t first;
	uint16_t count;
	bool cut;

	if (proto_get_list(payload, &first, &count, PROTO_MAX_ENTRIES)) {
		session_fail_protocol(&r->s, "a malformed offer");
		return;
	}
	/* the first one went before the sender knew how many may be under way: it offers the others again */
	cut = !v->offered && count > terms->max_entries;
	if (cut)
		count = terms->max_entries;
	if (r->end.finishing || first != v->offered || count > terms->max_entries - r->entries.busy ||
	    v->under_way >= OFFERS_UNDER_WAY || count > terms->entries - v->offered) {
		session_fail_protocol(&r->s, "an offer out of turn");
		return;
	}
	session_step(&r->s, "OFFER", "entries: %u", count);
	b = new_batch(r, payload, first, count);
	if (!b)
		return;
	in = cursor_in(b->payload, (size_t)(payload->end - payload->at));
	for (unsigned i = 0; i < count; i++)
		if (proto_get_entry(&in, &b->decisions[i].info) || !entries_offer(r, first + i)) {
			session_fail_protocol(&r->s, "an entry that is not allowed");
			free_batch(b);
			return;
		}
	v->offered += count;
	v->under_way++;
	v->deciding++;
	if (!cut && proto_get_nothing(&in))
		session_fail_protocol(&r->s, "bytes after an offer");
	worker_submit(v->worker, &b->job);
}

/* The answer */

/* Tells which chunks of one file are there, and their digests unless the file is foreign. False if there is no room for
 * the next message yet. */
static bool send_have(struct receiver *r, struct batch *b)
{
	const struct mover_file *file = b->decisions[b->have_sent].file;
	uint32_t number = b->first + b->have_sent;
	bool foreign = mover_file_is_foreign(file);

	while ((b->next_chunk = mover_file_next_kept(file, b->next_chunk)) != MOVER_NO_CHUNK) {
		const struct mover_digest *kept = mover_file_kept(file, b->next_chunk);
		struct cursor_out *out;
		uint8_t *head;
		uint16_t count = 0;

		out = session_begin(&r->s, PROTO_HAVE);
		if (!out)
			return false;
		put_u32(out, number);
		put_u64(out, b->next_chunk);
		put_u8(out, foreign);
		head = cursor_take(out, 2);
		for (; kept && count < HAVE_DIGESTS; count++) {
			if (!foreign)
				put_bytes(out, kept->bytes, sizeof(kept->bytes));
			kept = mover_file_kept(file, ++b->next_chunk);
		}
		cursor_patch_u16(head, count);
		session_step(&r->s, "HAVE", "entry %u, chunks: %u%s", number, count, foreign ? ", no digests" : "");
		session_send(&r->s);
	}
	return true;
}

/* The entry needs no content: it is over. `why`: of one that is refused. */
static void finish_entry(struct receiver *r, struct recv_entry *entry, const struct decision *d, const char *why)
{
	struct mover_totals *t = &r->s.totals;
	uint64_t size = d->info.kind == MOVER_FILE ? d->info.size : 0;
	enum mover_outcome outcome = MOVER_STORED;

	if (d->verdict == PROTO_UNCHANGED) {
		outcome = MOVER_UNCHANGED;
		t->entries_unchanged++;
		t->bytes_unchanged += size;
		t->bytes_done += size;
	} else if (d->verdict == PROTO_WOULD) {
		outcome = MOVER_WOULD;
	} else if (d->verdict == PROTO_REFUSED) {
		outcome = MOVER_REFUSED;
	}
	entries_report(r, &d->info, outcome, MOVER_LOCAL_IO, why);
	entries_free(r, entry);
	if (d->info.kind == MOVER_FOLDER && d->verdict == PROTO_DONE)
		end_add_folder(r, &d->info);
	if (d->verdict == PROTO_REFUSED && entries_is_fatal(d->err))
		entries_fail(r, &d->info, d->err);
}

/* False if there is no room for the next message yet. */
static bool answer(struct receiver *r, struct batch *b)
{
	struct cursor_out *out;

	for (; b->have_sent < b->count; b->have_sent++, b->next_chunk = 0) {
		const struct decision *d = &b->decisions[b->have_sent];

		if (d->file && d->resumed && !send_have(r, b))
			return false;
	}
	out = session_begin(&r->s, PROTO_VERDICT);
	if (!out)
		return false;
	put_u32(out, b->first);
	put_u16(out, b->count);
	session_step(&r->s, "VERDICT", "entries: %u", b->count);
	for (unsigned i = 0; i < b->count; i++) {
		struct decision *d = &b->decisions[i];
		struct recv_entry *entry = entries_at(r, b->first + i);
		struct proto_result result = {.verdict = d->verdict, .status = MOVER_LOCAL_IO};
		char text[ENTRIES_WHY_CHARS];
		const char *why = d->why;

		if (!why && d->err < 0)
			why = entries_say_why(r, &d->info, d->err, text);
		if (d->verdict == PROTO_WANT)
			entries_want(r, entry, d);
		else
			finish_entry(r, entry, d, why);
		result.text = proto_text(why);
		proto_put_result(out, &result, false);
	}
	if (r->s.status == MOVER_OK)
		session_send(&r->s);
	return true;
}

bool verdicts_pump(struct receiver *r)
{
	struct verdicts *v = &r->verdicts;
	bool any = false;

	take_decided(v);
	while (v->first && r->s.status == MOVER_OK && answer(r, v->first)) {
		free_batch(remove_first(v));
		v->under_way--;
		any = true;
	}
	return any;
}
