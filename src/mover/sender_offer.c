/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's offers, and what the receiver says of them. */
#include <stdlib.h>

#include "mover/sender.h"

#define OFFERS_UNDER_WAY 4
#define OFFER_ENTRIES    256 /* in one message: small enough that the first verdicts come soon */

static void forget_have(struct slot *slot)
{
	free(slot->have);
	free(slot->present);
	slot->have = NULL;
	slot->present = NULL;
}

/* Slots are used again in the order of the entries, and only when the receiver has seen the last of the old one. */
static void advance(struct sender *x)
{
	while (x->finished < x->judged) {
		struct slot *slot = sender_slot(x, x->finished);
		if (!slot->sent || !slot->settled || (slot->state == SLOT_WANTED && x->seq_done <= slot->seq))
			break;
		forget_have(slot);
		*slot = (struct slot){0};
		x->finished++;
	}
}

void sender_sent(struct sender *x, uint32_t entry)
{
	struct slot *slot = sender_slot(x, entry);
	slot->sent = true;
	slot->seq = x->seq;
	forget_have(slot);
}

void sender_settle(struct sender *x, uint32_t entry, enum mover_outcome outcome, enum mover_status status,
		   const char *text)
{
	struct slot *slot = sender_slot(x, entry);
	const struct mover_entry *e = mover_walk_entry(x->walk, entry);
	struct mover_totals *t = &x->s.totals;

	slot->settled = true;
	slot->refused = outcome == MOVER_REFUSED;
	if (outcome == MOVER_REFUSED) {
		t->entries_failed++;
		x->entry_status = status;
	} else {
		t->entries_done++;
	}
	if (outcome == MOVER_UNCHANGED) {
		t->entries_unchanged++;
		if (e->kind == MOVER_FILE) {
			t->bytes_unchanged += e->size;
			t->bytes_done += e->size;
		}
	}
	session_entry_done(&x->s, e->name, e->name_len, e->kind == MOVER_FILE ? e->size : 0, outcome, text);
}

/* Names differ in length: whether this one still fits is known when it has been written. */
static uint16_t put_entries(struct sender *x, struct cursor_out *out)
{
	uint32_t max = x->s.terms.max_entries - (x->offered - x->finished);
	uint16_t count = 0;

	while (count < max && count < OFFER_ENTRIES && x->offered + count < x->entries) {
		struct cursor_out before = *out;
		proto_put_entry(out, mover_walk_entry(x->walk, x->offered + count));
		if (out->full) {
			*out = before;
			break;
		}
		count++;
	}
	return count;
}

bool offer_pump(struct sender *x)
{
	bool any = false;

	while (x->offered < x->entries && x->offers_under_way < OFFERS_UNDER_WAY &&
	       x->offered - x->finished < x->s.terms.max_entries) {
		struct cursor_out *out;
		uint8_t *head;
		uint16_t count;

		/* not for a few each time when the pipeline is full */
		if (x->offered > x->judged && x->offered - x->finished > x->s.terms.max_entries * 3 / 4)
			break;
		out = session_begin(&x->s, PROTO_OFFER);
		if (!out)
			break;
		put_u32(out, x->offered);
		head = cursor_take(out, 2);
		count = put_entries(x, out);
		cursor_patch_u16(head, count);
		session_step(&x->s, "OFFER", "entries: %u", count);
		for (uint32_t i = 0; i < count; i++)
			sender_slot(x, x->offered + i)->state = SLOT_OFFERED;
		x->offered += count;
		x->offers_under_way++;
		session_send(&x->s);
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

static void judge(struct sender *x, uint32_t entry, const struct proto_result *result)
{
	char text[PROTO_MAX_TEXT + 1];
	struct slot *slot = sender_slot(x, entry);

	if (result->verdict == PROTO_WANT) {
		slot->state = SLOT_WANTED;
		return;
	}
	slot->sent = true; /* nothing of it will be */
	proto_text_copy(text, sizeof(text), &result->text);
	sender_settle(x, entry,
		      result->verdict == PROTO_DONE        ? MOVER_STORED
		      : result->verdict == PROTO_UNCHANGED ? MOVER_UNCHANGED
		      : result->verdict == PROTO_WOULD     ? MOVER_WOULD
							   : MOVER_REFUSED,
		      session_mirror_status(result->status), result->verdict == PROTO_REFUSED ? text : NULL);
}

void offer_verdict(struct sender *x, struct cursor_in *payload)
{
	uint32_t first;
	uint16_t count;

	if (proto_get_list(payload, &first, &count, PROTO_MAX_ENTRIES) || first != x->judged ||
	    count > x->offered - x->judged || !x->offers_under_way) {
		session_fail_protocol(&x->s, "verdicts for what was not offered");
		return;
	}
	session_step(&x->s, "VERDICT", "entries: %u", count);
	for (uint32_t i = 0; i < count; i++) {
		struct proto_result result;
		if (proto_get_result(payload, &result, false) ||
		    !verdict_fits(x, mover_walk_entry(x->walk, first + i), result.verdict)) {
			session_fail_protocol(&x->s, "a verdict that makes no sense");
			return;
		}
		judge(x, first + i, &result);
	}
	x->judged += count;
	x->offers_under_way--;
	advance(x);
	if (proto_get_nothing(payload))
		session_fail_protocol(&x->s, "more behind the verdicts");
}

void offer_have(struct sender *x, struct cursor_in *payload)
{
	uint32_t entry = get_u32(payload);
	uint64_t first = get_u64(payload), chunks;
	uint16_t count = get_u16(payload);
	const uint8_t *digests = get_bytes(payload, (size_t)count * sizeof(struct mover_digest));
	const struct mover_entry *e;
	struct slot *slot;

	if (!digests || proto_get_nothing(payload) || entry < x->judged || entry >= x->offered) {
		session_fail_protocol(&x->s, "digests of what was not offered");
		return;
	}
	e = mover_walk_entry(x->walk, entry);
	chunks = (e->size + x->s.terms.chunk_bytes - 1) / x->s.terms.chunk_bytes;
	if (e->kind != MOVER_FILE || first > chunks || count > chunks - first) {
		session_fail_protocol(&x->s, "digests of chunks that are not there");
		return;
	}
	slot = sender_slot(x, entry);
	session_step(&x->s, "HAVE", "%u chunks of entry %u", count, entry);
	if (!slot->have) {
		slot->have = malloc(chunks * sizeof(*slot->have));
		slot->present = calloc(1, chunks);
	}
	if (!slot->have || !slot->present) {
		session_fail(&x->s, MOVER_FAILED, "out of memory");
		return;
	}
	memcpy(slot->have + first, digests, (size_t)count * sizeof(*slot->have));
	memset(slot->present + first, 1, count);
}

static void settle_result(struct sender *x, const struct proto_result *result)
{
	char text[PROTO_MAX_TEXT + 1];
	struct slot *slot;
	bool stored = result->verdict == PROTO_DONE;

	if (result->entry < x->finished || result->entry >= x->judged) {
		session_fail_protocol(&x->s, "a result of what it did not take");
		return;
	}
	slot = sender_slot(x, result->entry);
	if (slot->state != SLOT_WANTED || slot->settled || (stored && !slot->sent)) {
		session_fail_protocol(&x->s, "a result out of turn");
		return;
	}
	proto_text_copy(text, sizeof(text), &result->text);
	sender_settle(x, result->entry, stored ? MOVER_STORED : MOVER_REFUSED, session_mirror_status(result->status),
		      stored ? NULL : text);
}

void offer_ack(struct sender *x, struct cursor_in *payload)
{
	uint64_t seq_done = get_u64(payload), bytes = get_u64(payload);
	uint16_t count = get_u16(payload);

	if (payload->bad || seq_done < x->seq_done || seq_done > x->seq) {
		session_fail_protocol(&x->s, "an ACK of what was not sent");
		return;
	}
	x->seq_done = seq_done;
	x->s.totals.bytes_done = bytes;
	session_step(&x->s, "ACK", "windows: %llu, entries stored: %u", (unsigned long long)seq_done, count);
	for (unsigned i = 0; i < count && x->s.status == MOVER_OK; i++) {
		struct proto_result result;
		if (proto_get_result(payload, &result, true)) {
			session_fail_protocol(&x->s, "a malformed ACK");
			return;
		}
		settle_result(x, &result);
	}
	if (x->s.status == MOVER_OK && proto_get_nothing(payload))
		session_fail_protocol(&x->s, "more behind an ACK");
	advance(x);
}
