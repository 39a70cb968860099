/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mover/sender.h"

#define OFFERS_UNDER_WAY 4
/* What x->history keeps of an entry: the outcome that was reported last, plus 1; and whether the receiver wanted it. */
#define HISTORY_WANTED 0x80
#define OFFER_ENTRIES  256 /* in one message: small enough that the first verdicts come soon */

struct send_entry *offer_entry(struct sender *x, uint32_t number)
{
	return &x->offer.entries[number % x->offer.places];
}

static void free_have(struct send_entry *e)
{
	free(e->have);
	free(e->present);
	e->have = NULL;
	e->present = NULL;
}

int offer_init(struct sender *x)
{
	x->offer.places = x->s.terms.max_entries;
	x->offer.entries = calloc(x->offer.places, sizeof(*x->offer.entries));
	return x->offer.entries ? 0 : -ENOMEM;
}

void offer_destroy(struct sender *x)
{
	for (uint32_t number = x->offer.finished; number < x->offer.offered; number++)
		free_have(offer_entry(x, number));
	free(x->offer.entries);
}

/* An entry's place may be used again when the receiver has acted upon its last segment. Places become free in the order
 * of the entries. */
static void finish_entries(struct sender *x)
{
	while (x->offer.finished < x->offer.answered) {
		struct send_entry *e = offer_entry(x, x->offer.finished);

		if (!e->sent || !e->settled || (e->wanted && x->dispatch.acked <= e->seq))
			break;
		free_have(e);
		*e = (struct send_entry){0};
		x->offer.finished++;
	}
}

void offer_sent(struct sender *x, uint32_t number)
{
	struct send_entry *e = offer_entry(x, number);

	e->sent = true;
	e->seq = x->packs.next_seq;
	free_have(e);
}

/* A file that is there already may be one that an earlier session of this transfer has sent. */
static bool sent_before(uint8_t history)
{
	return (history & HISTORY_WANTED) || history == MOVER_STORED + 1;
}

/* The outcome of an entry is known: counts and reports it. */
static void settle(struct sender *x, uint32_t number, enum mover_outcome outcome, enum mover_status status,
		   const char *text)
{
	const struct mover_entry *info = mover_walk_entry(x->walk, number);
	uint64_t size = info->kind == MOVER_FILE ? info->size : 0;
	struct send_entry *e = offer_entry(x, number);
	struct mover_totals *t = &x->s.totals;
	uint8_t *history = &x->history[number], reported = *history & ~HISTORY_WANTED;

	e->settled = true;
	e->refused = outcome == MOVER_REFUSED;
	if (outcome == MOVER_REFUSED) {
		t->entries_failed++;
		x->offer.status = status;
	} else {
		t->entries_done++;
	}
	if (outcome == MOVER_UNCHANGED) {
		t->bytes_done += size;
		if (sent_before(*history)) {
			outcome = MOVER_STORED;
		} else {
			t->entries_unchanged++;
			t->bytes_unchanged += size;
		}
	}
	*history = (uint8_t)((*history & HISTORY_WANTED) | (outcome + 1));
	if (reported == outcome + 1)
		return;
	session_entry_done(&x->s, info->name, info->name_len, size, outcome, text);
}

void offer_give_up(struct sender *x, uint32_t number, enum mover_status status, const char *why)
{
	struct send_entry *e = offer_entry(x, number);

	if (e->settled)
		return;
	e->given_up = true;
	settle(x, number, MOVER_REFUSED, status, why);
}

/* Writes as many entries as fit into the message, and returns how many. */
static uint16_t put_entries(struct sender *x, struct cursor_out *out)
{
	uint32_t max = x->s.terms.max_entries - (x->offer.offered - x->offer.finished);
	uint16_t count = 0;

	while (count < max && count < OFFER_ENTRIES && x->offer.offered + count < x->entry_count) {
		struct cursor_out before = *out;
		proto_put_entry(out, mover_walk_entry(x->walk, x->offer.offered + count));
		if (out->full) {
			*out = before;
			break;
		}
		count++;
	}
	return count;
}

/* False: no message can be sent now. */
static bool offer_some(struct sender *x)
{
	struct cursor_out *out = session_begin(&x->s, PROTO_OFFER);
	uint8_t *head;
	uint16_t count;

	if (!out)
		return false;
	put_u32(out, x->offer.offered);
	head = cursor_take(out, 2);
	count = put_entries(x, out);
	cursor_patch_u16(head, count);
	session_step(&x->s, "OFFER", "entries: %u", count);
	x->offer.offered += count;
	x->offer.under_way++;
	session_send(&x->s);
	return true;
}

void offer_first(struct sender *x)
{
	if (x->entry_count)
		offer_some(x);
}

void offer_limit(struct sender *x)
{
	if (x->offer.offered > x->s.terms.max_entries)
		x->offer.offered = x->s.terms.max_entries;
}

bool offer_pump(struct sender *x)
{
	bool any = false;

	while (x->offer.offered < x->entry_count && x->offer.under_way < OFFERS_UNDER_WAY &&
	       x->offer.offered - x->offer.finished < x->s.terms.max_entries) {
		/* when the pipeline is nearly full, wait until there is room for more than a few entries */
		if (x->offer.offered > x->offer.answered &&
		    x->offer.offered - x->offer.finished > x->s.terms.max_entries * 3 / 4)
			break;
		if (!offer_some(x))
			break;
		any = true;
	}
	return any;
}

static bool verdict_fits(const struct sender *x, const struct mover_entry *e, enum proto_verdict verdict)
{
	bool content = e->kind == MOVER_FILE || e->kind == MOVER_STREAM;
	switch (verdict) {
	case PROTO_WANT: return content && !x->s.terms.dry_run;
	case PROTO_DONE: return !content && !x->s.terms.dry_run;
	case PROTO_WOULD: return x->s.terms.dry_run;
	default: return true;
	}
}

static enum mover_outcome outcome_of(enum proto_verdict verdict)
{
	switch (verdict) {
	case PROTO_DONE: return MOVER_STORED;
	case PROTO_UNCHANGED: return MOVER_UNCHANGED;
	case PROTO_WOULD: return MOVER_WOULD;
	default: return MOVER_REFUSED;
	}
}

/* The other side is named, because its folder has the same names as ours. */
static void settle_refused(struct sender *x, uint32_t number, const struct proto_result *result)
{
	char why[PROTO_MAX_TEXT + 1], text[sizeof(why) + 32];

	proto_text_copy(why, sizeof(why), &result->text);
	snprintf(text, sizeof(text), "the receiver refused it: %s", why);
	settle(x, number, MOVER_REFUSED, session_mirror_status(result->status), text);
}

static void take_verdict(struct sender *x, uint32_t number, const struct proto_result *result)
{
	struct send_entry *e = offer_entry(x, number);
	enum mover_outcome outcome = outcome_of(result->verdict);

	if (result->verdict == PROTO_WANT) {
		e->wanted = true;
		x->history[number] |= HISTORY_WANTED;
		return;
	}
	e->sent = true; /* nothing of it will be */
	if (outcome == MOVER_REFUSED)
		settle_refused(x, number, result);
	else
		settle(x, number, outcome, MOVER_OK, NULL);
}

void offer_verdict(struct sender *x, struct cursor_in *payload)
{
	uint32_t first;
	uint16_t count;

	if (proto_get_list(payload, &first, &count, PROTO_MAX_ENTRIES) || first != x->offer.answered ||
	    count > x->offer.offered - x->offer.answered || !x->offer.under_way) {
		session_fail_protocol(&x->s, "verdicts on entries that were not offered");
		return;
	}
	session_step(&x->s, "VERDICT", "entries: %u", count);
	for (uint32_t i = 0; i < count; i++) {
		struct proto_result result;
		if (proto_get_result(payload, &result, false) ||
		    !verdict_fits(x, mover_walk_entry(x->walk, first + i), result.verdict)) {
			session_fail_protocol(&x->s, "an impossible verdict");
			return;
		}
		take_verdict(x, first + i, &result);
	}
	x->offer.answered += count;
	x->offer.under_way--;
	finish_entries(x);
	if (proto_get_nothing(payload))
		session_fail_protocol(&x->s, "bytes after the verdicts");
}

void offer_have(struct sender *x, struct cursor_in *payload)
{
	uint32_t number = get_u32(payload);
	uint64_t first = get_u64(payload), chunks;
	uint8_t untold = get_u8(payload);
	uint16_t count = get_u16(payload);
	const uint8_t *digests = get_bytes(payload, untold ? 0 : (size_t)count * sizeof(struct mover_digest));
	const struct mover_entry *info;
	struct send_entry *e;

	if (!digests || untold > 1 || proto_get_nothing(payload) || number < x->offer.answered ||
	    number >= x->offer.offered) {
		session_fail_protocol(&x->s, "digests for an entry that was not offered");
		return;
	}
	info = mover_walk_entry(x->walk, number);
	chunks = (info->size + x->s.terms.chunk_bytes - 1) / x->s.terms.chunk_bytes;
	if (info->kind != MOVER_FILE || first > chunks || count > chunks - first) {
		session_fail_protocol(&x->s, "digests of chunks that the file does not have");
		return;
	}
	e = offer_entry(x, number);
	session_step(&x->s, "HAVE", "entry %u, chunks: %u%s", number, count, untold ? ", no digests" : "");
	if (!e->have) {
		e->have = malloc(chunks * sizeof(*e->have));
		e->present = calloc(1, chunks);
	}
	if (!e->have || !e->present) {
		session_fail_memory(&x->s);
		return;
	}
	if (!untold)
		memcpy(e->have + first, digests, (size_t)count * sizeof(*e->have));
	memset(e->present + first, untold ? CHUNK_UNTOLD : CHUNK_TOLD, count);
}

static void settle_result(struct sender *x, const struct proto_result *result)
{
	struct send_entry *e;
	bool stored = result->verdict == PROTO_DONE;

	if (result->entry < x->offer.finished || result->entry >= x->offer.answered) {
		session_fail_protocol(&x->s, "a result for an entry that was not offered");
		return;
	}
	e = offer_entry(x, result->entry);
	if (e->given_up && !stored) {
		e->given_up = false;
		return;
	}
	if (!e->wanted || e->settled || (stored && !e->sent)) {
		session_fail_protocol(&x->s, "a result out of turn");
		return;
	}
	if (stored)
		settle(x, result->entry, MOVER_STORED, MOVER_OK, NULL);
	else
		settle_refused(x, result->entry, result);
}

void offer_ack(struct sender *x, struct cursor_in *payload)
{
	uint64_t seq_done = get_u64(payload), bytes = get_u64(payload);
	uint16_t count = get_u16(payload);

	if (payload->bad || seq_done < x->dispatch.acked || seq_done > x->packs.next_seq) {
		session_fail_protocol(&x->s, "an ACK for a window that was not sent");
		return;
	}
	x->dispatch.acked = seq_done;
	x->s.totals.bytes_done = bytes;
	session_step(&x->s, "ACK", "windows: %llu, results of entries: %u", (unsigned long long)seq_done, count);
	for (unsigned i = 0; i < count && x->s.status == MOVER_OK; i++) {
		struct proto_result result;
		if (proto_get_result(payload, &result, true)) {
			session_fail_protocol(&x->s, "a malformed ACK");
			return;
		}
		settle_result(x, &result);
	}
	if (x->s.status == MOVER_OK && proto_get_nothing(payload))
		session_fail_protocol(&x->s, "bytes after an ACK");
	finish_entries(x);
}
