/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile receiver: waits for a `roci send --open`, and sends one wrong answer. The test checks the exit status of
 * the sender. This program ends with 0 when the sender has disconnected, 2 if the test itself failed.
 *
 *     hostile_receiver ADDRESS CASE       prints "port N" when it listens
 *     hostile_receiver --list             cases, the sender's exit status, and its mode
 */
#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"
#include "mover/chunk_cipher.h"

static struct hostile hostile, *const h = &hostile;
static unsigned variant;

/* What an honest receiver does */

static void take_terms(void)
{
	struct cursor_in in;

	MUST(hostile_expect(h, PROTO_TERMS));
	in = cursor_in(h->payload, h->payload_len);
	MUST(proto_get_terms(&in, &h->terms) == 0);
	h->terms.session = 1;
}

static void terms_come(void)
{
	hostile_hear(h);
	hostile_finish(h);
	take_terms();
}

static void answer_terms(void)
{
	proto_put_terms(hostile_begin(h, PROTO_TERMS), &h->terms);
	hostile_send(h);
}

/* Up to the offer of one file of more than one chunk. The sender offers it before it has a data connection. */
static void offered(void)
{
	terms_come();
	answer_terms();
	MUST(hostile_expect(h, PROTO_OFFER));
	hostile_accept_lane(h);
}

static void verdict(uint32_t first, uint16_t count, enum proto_verdict v)
{
	struct cursor_out *out = hostile_begin(h, PROTO_VERDICT);

	put_u32(out, first);
	put_u16(out, count);
	for (unsigned i = 0; i < count && i < 3; i++)
		proto_put_result(out, &(struct proto_result){.verdict = v, .status = MOVER_LOCAL_IO}, false);
	hostile_send(h);
}

static void grant(struct proto_grant g, uint16_t count)
{
	struct cursor_out *out = hostile_begin(h, PROTO_GRANT);

	put_u16(out, count);
	for (unsigned i = 0; i < count; i++)
		proto_put_grant(out, &g);
	hostile_send(h);
}

static struct proto_grant honest_grant(void)
{
	return (struct proto_grant){.len = h->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES,
				    .addr = (uintptr_t)h->memory,
				    .rkey = h->mr->rkey};
}

static void ack(uint64_t seq, uint16_t count, const struct proto_result *result)
{
	struct cursor_out *out = hostile_begin(h, PROTO_ACK);

	put_u64(out, seq);
	put_u64(out, 0);
	put_u16(out, count);
	for (unsigned i = 0; i < count; i++)
		proto_put_result(out, result, true);
	hostile_send(h);
}

/* Nothing is wrong here but the end. It answers nothing before it has all that the sender can send until then, so each
 * answer is a round trip: one for the connection, and one for HELLO, TERMS, the OFFER and the data connection together.
 * After two, there is content. */
static void in_lockstep(void)
{
	hostile_hear(h);
	take_terms();
	MUST(hostile_expect(h, PROTO_OFFER));
	hostile_accept_lane(h);
	hostile_finish(h);
	answer_terms();
	grant(honest_grant(), 1);
	verdict(0, 1, PROTO_WANT);
	MUST(hostile_expect(h, PROTO_FIN));
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_LOCAL_IO});
	hostile_send(h);
}

/* The sender gives up the only entry, whose file is shorter than it seems. */
static void given_up(unsigned refusals)
{
	offered();
	verdict(0, 1, PROTO_WANT);
	MUST(hostile_expect(h, PROTO_FIN));
	while (refusals--)
		ack(0, 1, &(struct proto_result){.verdict = PROTO_REFUSED, .status = MOVER_LOCAL_IO});
	ack(1, 0, NULL);
	proto_put_end(hostile_begin(h, PROTO_END), &(struct proto_end){.status = MOVER_PARTLY, .failed = 1});
	hostile_send(h);
}

/* ... and this side has refused it before it knew that. */
static void refused_and_given_up(void)
{
	given_up(variant);
}

static void ping(void)
{
	hostile_begin(h, PROTO_PING);
	hostile_send(h);
}

/* Takes the descriptors of a message, of which `next` is the first. Returns how many there are. */
static unsigned take_descriptors(uint64_t next)
{
	struct cursor_in in = cursor_in(h->payload, h->payload_len), segments;
	struct proto_descriptor d;
	unsigned count = 0;

	while (h->type == PROTO_FIN && in.at != in.end) {
		MUST(proto_get_descriptor(&in, &d) == 0 && proto_get_segments(&in, &d, &segments) == 0);
		MUST(d.seq == next + count++);
	}
	return count;
}

/* Grants more windows than the sender has credits, and returns none. The content comes all the same, and the
 * descriptors that had to wait come together. A peer of an older version 5 has not said how many it takes: it gets them
 * one by one. */
static void together(void)
{
	enum { WINDOWS = 24 };
	unsigned count = 0;
	bool older = variant;

	terms_come();
	h->terms.chunk_bytes = PROTO_MIN_CHUNK;
	if (older)
		h->control.takes = 0;
	answer_terms();
	MUST(hostile_expect(h, PROTO_OFFER));
	hostile_accept_lane(h);
	verdict(0, 1, PROTO_WANT);
	grant(honest_grant(), WINDOWS);
	while (!older && h->lane_messages < 1 + WINDOWS && !h->closed) /* the greeting, and DONEs */
		if (hostile_look(h))
			count += take_descriptors(count);
	MUST(older || count < WINDOWS);
	while (count < WINDOWS) {
		unsigned more;

		ping();
		MUST(hostile_next(h));
		more = take_descriptors(count);
		MUST(!older || more <= 1);
		count += more;
	}
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_LOCAL_IO});
	hostile_send(h);
}

/* The lies */

static void refused_twice(void)
{
	given_up(2);
}

static void silent(void)
{
}

static void no_tls(void)
{
	MUST(hostile_expect(h, PROTO_HELLO));
	put_bytes(hostile_begin(h, PROTO_HELLO), "who is there?", 13);
	hostile_send(h);
}

/* The answer to the connect request begins no handshake. */
static void spoil_hello(uint8_t *hello, size_t *len)
{
	switch (variant) {
	case 0: *len = 0; break;
	case 1: memcpy(hello, "who is there?", *len = 13); break;
	case 2: *len /= 2; break;
	case 3: hello[4] /= 2; break; /* the record is as short as it says */
	}
}

static void spoil_binder(uint8_t *hello, size_t *len)
{
	hello[*len - 1] ^= 1;
}

static void no_hello(void)
{
}

static void wrong_binder(void)
{
}

/* It answers the terms as if it had proved the ticket. */
static void unfinished(void)
{
	hostile_hear(h);
	take_terms();
	h->control.sealed = true;
	answer_terms();
}

static void wrong_finished(void)
{
	hostile_hear(h);
	take_terms();
	h->flight[h->flight_len - 1] ^= 1;
	hostile_finish(h);
	answer_terms();
}

static void lying_terms(void)
{
	terms_come();
	switch (variant) {
	case 0: h->terms.qps = 64; break;
	case 1: h->terms.session = 0; break;
	case 2: h->terms.mode = MOVER_READ; break;
	case 3: h->terms.encrypt = !h->terms.encrypt; break;
	case 4: h->terms.chunk_bytes = PROTO_MAX_CHUNK; break;
	case 5: h->terms.windows = PROTO_MAX_WINDOWS; break;
	case 6: h->terms.max_entries++; break;
	}
	answer_terms();
}

static void terms_twice(void)
{
	terms_come();
	answer_terms();
	answer_terms();
}

/* TLS would answer with more than fits into a message. No answer may be sent. */
static void keys_updated(void)
{
	offered();
	for (unsigned i = 0; i < 3; i++)
		hostile_update_keys(h, variant ? 2400 : 1);
}

static void too_early(void)
{
	terms_come();
	verdict(0, 1, PROTO_WANT);
}

static void lying_verdict(void)
{
	offered();
	switch (variant) {
	case 0: verdict(1, 1, PROTO_WANT); break;
	case 1: verdict(0, 2, PROTO_WANT); break;
	case 2: verdict(0, 0, PROTO_WANT); break;
	case 3: verdict(0, 65535, PROTO_WANT); break;
	case 4: verdict(0, 1, PROTO_DONE); break; /* of a file whose content has not been sent */
	case 5: verdict(0, 1, PROTO_WOULD); break;
	case 6: verdict(0, 1, (enum proto_verdict)77); break;
	case 7:
		verdict(0, 1, PROTO_WANT);
		verdict(0, 1, PROTO_WANT);
		break;
	}
}

static void lying_have(void)
{
	static const struct {
		uint32_t entry;
		uint64_t first;
		uint16_t says, has;
		uint8_t untold;
	} lies[] = {{1, 0, 1, 1, 0}, {0, 100, 1, 1, 0}, {0, UINT64_MAX, 2, 2, 0}, {0, 0, 2, 1, 0},  {0, 0, 60000, 1, 0},
		    {0, 0, 1, 2, 0}, {0, 0, 1, 1, 1},   {0, 0, 1, 1, 2},          {0, 100, 1, 0, 1}};
	struct cursor_out *out;

	offered();
	out = hostile_begin(h, PROTO_HAVE);
	put_u32(out, lies[variant].entry);
	put_u64(out, lies[variant].first);
	put_u8(out, lies[variant].untold);
	put_u16(out, lies[variant].says);
	for (unsigned i = 0; i < lies[variant].has; i++)
		put_bytes(out, &(struct mover_digest){{0}}, sizeof(struct mover_digest));
	hostile_send(h);
}

static void lying_grant(void)
{
	struct proto_grant g;

	offered();
	g = honest_grant();
	switch (variant) {
	case 0: g.lane = 1; break;
	case 1: g.len--; break;
	case 2: g.window = PROTO_MAX_WINDOWS; break;
	case 3: g.len = UINT32_MAX; break;
	case 4: break; /* too many of them */
	case 5: g.rkey ^= 0x55; break;
	case 6: g.addr += 2 * HOSTILE_BYTES; break;
	}
	if (variant < 5) {
		grant(g, variant == 4 ? 257 : 1);
		return;
	}
	grant(g, 1);
	verdict(0, 1, PROTO_WANT);
}

static void lying_ack(void)
{
	struct proto_result r = {.verdict = PROTO_DONE};

	offered();
	switch (variant) {
	case 0: ack(1, 0, &r); break;
	case 1: ack(0, 1, &r); break; /* no verdict yet */
	case 2:
		verdict(0, 1, PROTO_WANT);
		ack(0, 1, &r); /* not sent yet */
		break;
	case 3: ack(UINT64_MAX, 0, &r); break;
	case 4:
		r.entry = 77;
		ack(0, 1, &r);
		break;
	case 5:
		r.verdict = PROTO_UNCHANGED;
		ack(0, 1, &r);
		break;
	}
}

static void end_too_early(void)
{
	offered();
	proto_put_end(hostile_begin(h, PROTO_END), &(struct proto_end){.status = MOVER_OK, .entries = 1});
	hostile_send(h);
}

static void a_senders_message(void)
{
	static const enum proto_type types[] = {PROTO_OFFER, PROTO_FIN, PROTO_TERMS};
	offered();
	put_u64(hostile_begin(h, types[variant]), 0);
	hostile_send(h);
}

static void on_a_lane(void)
{
	offered();
	hostile_done(h, 0, 0, 0);
}

static void colourful_error(void)
{
	offered();
	proto_put_end(hostile_begin(h, PROTO_ERROR),
		      &(struct proto_end){.status = MOVER_LOCAL_IO, .text = proto_text("\x1b[31mred\x07\n")});
	hostile_send(h);
}

static void stalls(void)
{
	offered();
	if (variant) {
		grant(honest_grant(), 1);
		verdict(0, 1, PROTO_WANT);
	}
}

/* An ERROR in the clear. It is allowed from a peer that has not finished the handshake, but not later. */
static void plain_error(void)
{
	h->control.sealed = false;
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_NO_TRUST});
	hostile_send(h);
	h->control.sealed = true; /* as the messages that come are */
}

static void plain_error_early(void)
{
	hostile_hear(h);
	hostile_finish(h);
	plain_error();
}

static void plain_error_late(void)
{
	offered();
	plain_error();
}

/* It sends the sender away during the handshake, as one that has no room. The sender comes back. */
static void no_room(void)
{
	h->control.sealed = false;
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_NO_CONNECT});
	hostile_send(h);
	MUST(hostile_wait_closed(h));
	hostile_accept_again(h);
	MUST(hostile_expect(h, PROTO_HELLO));
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_NO_TRUST});
	hostile_send(h);
}

/* Wants the entry, and refuses the data connection. The sender connects again, also where the entry is standard input:
 * nothing has been read of it. */
static void lane_refused(void)
{
	terms_come();
	answer_terms();
	MUST(hostile_expect(h, PROTO_OFFER));
	verdict(0, 1, PROTO_WANT);
	MUST(hostile_expect(h, PROTO_PING)); /* so it has had the time to read it */
	hostile_refuse_lane(h);
	MUST(hostile_wait_closed(h));
	hostile_accept_again(h);
	MUST(hostile_expect(h, PROTO_HELLO));
	proto_put_end(hostile_begin(h, PROTO_ERROR), &(struct proto_end){.status = MOVER_NO_TRUST});
	hostile_send(h);
}

static const struct scenario {
	const char *name;
	void (*run)(void);
	enum mover_status status; /* the sender's */
	unsigned variants;
} scenarios[] = {
	{"in-lockstep", in_lockstep, MOVER_REMOTE_IO, 1},
	{"together", together, MOVER_REMOTE_IO, 2},
	{"lane-refused", lane_refused, MOVER_NO_TRUST, 1},
	{"refused-and-given-up", refused_and_given_up, MOVER_LOCAL_IO, 2},
	{"refused-twice", refused_twice, MOVER_PROTOCOL, 1},
	{"silent", silent, MOVER_LOST, 1},
	{"no-room", no_room, MOVER_NO_TRUST, 1},
	{"no-tls", no_tls, MOVER_PROTOCOL, 1},
	{"no-hello", no_hello, MOVER_PROTOCOL, 4},
	{"wrong-binder", wrong_binder, MOVER_NO_TRUST, 1},
	{"unfinished", unfinished, MOVER_PROTOCOL, 1},
	{"wrong-finished", wrong_finished, MOVER_NO_TRUST, 1},
	{"lying-terms", lying_terms, MOVER_PROTOCOL, 7},
	{"terms-twice", terms_twice, MOVER_PROTOCOL, 1},
	{"keys-updated", keys_updated, MOVER_PROTOCOL, 2},
	{"plain-error-early", plain_error_early, MOVER_PROTOCOL, 1},
	{"plain-error-late", plain_error_late, MOVER_PROTOCOL, 1},
	{"too-early", too_early, MOVER_PROTOCOL, 1},
	{"lying-verdict", lying_verdict, MOVER_PROTOCOL, 8},
	{"lying-have", lying_have, MOVER_PROTOCOL, 9},
	{"lying-grant", lying_grant, MOVER_PROTOCOL, 7},
	{"lying-ack", lying_ack, MOVER_PROTOCOL, 6},
	{"end-too-early", end_too_early, MOVER_PROTOCOL, 1},
	{"a-senders-message", a_senders_message, MOVER_PROTOCOL, 3},
	{"on-a-lane", on_a_lane, MOVER_LOST, 1}, /* the sender posts no receives there: our retries run out */
	{"colourful-error", colourful_error, MOVER_REMOTE_IO, 1},
	{"stalls", stalls, MOVER_LOST, 2},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		size_t len = strlen(s->name);

		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			printf("%s %u %d\n", s->name, s->variants, (int)s->status);
		if (argc != 3 || strncmp(argv[2], s->name, len) || argv[2][len] != ':')
			continue;
		variant = (unsigned)atoi(argv[2] + len + 1);
		MUST(variant < s->variants);
		h->spoil_answer = s->run == no_hello ? spoil_hello : s->run == wrong_binder ? spoil_binder : NULL;
		hostile_accept(h, argv[1]);
		s->run();
		MUST(hostile_wait_closed(h));
		_Exit(0);
	}
	return argc == 2 ? 0 : 2;
}
