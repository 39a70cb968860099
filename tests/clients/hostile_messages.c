/* SPDX-License-Identifier: BSD-2-Clause */
/* Before the sender is trusted, and wrong messages. */
#include "hostile_sender.h"
#include "honest_sender.h"

static struct hostile *const h = &hostile;

static void silent(void)
{
	honest_connect();
}

/* More connections than a receiver keeps of an address. It closes some, with an ERROR unless it has not yet seen them
 * connect, and the others when their time is up. */
static void crowd(void)
{
	static struct hostile peers[40];
	const size_t count = sizeof(peers) / sizeof(*peers);

	for (size_t i = 0; i < count; i++)
		if (!hostile_connect(&peers[i], honest_host, honest_port, &(struct proto_request){.session = i}))
			MUST(peers[i].reject ==
			     PROTO_REJECT_TICKET); /* a receiver that has a ticket takes nobody without */
	for (size_t i = 0; i < count; i++) {
		if (peers[i].refused)
			continue;
		MUST(hostile_wait_closed(&peers[i]));
		MUST(!peers[i].error || peers[i].end.status == MOVER_LOST || peers[i].end.status == MOVER_NO_CONNECT);
	}
}

static void garbage(void)
{
	static const uint8_t bytes[] = "GET / HTTP/1.1\r\n\r\n";
	silent();
	hostile_send_raw(h, bytes, hostile_variant ? 3 : sizeof(bytes));
}

static void lying_length(void)
{
	uint8_t bytes[64] = {0};
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	silent();
	proto_put_header(&out, PROTO_HELLO, false, hostile_variant ? 10 : 60000);
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void no_handshake(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	silent();
	honest_propose(&terms);
}

static void no_tls(void)
{
	silent();
	put_bytes(hostile_begin(h, PROTO_HELLO), "hello, is anybody there?", 24);
	hostile_send(h);
}

static void half_a_handshake(void)
{
	uint8_t out[16384];
	size_t len = sizeof(out);
	struct mover_secure *secure = mover_secure_sender(NULL);
	const struct connection *conn = &h->control.conn;

	silent();
	MUST(secure && mover_secure_handshake(secure, conn->answer, proto_get_answer(conn->answer, conn->answer_len),
					      out, &len) == 0);
	put_bytes(hostile_begin(h, PROTO_HELLO), out, len / 2);
	hostile_send(h);
	mover_secure_destroy(secure);
}

static void too_long(void)
{
	static const uint8_t bytes[PROTO_MESSAGE_BYTES + 1];
	silent();
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void lane_of_no_session(void)
{
	hostile_connect(h, honest_host, honest_port,
			&(struct proto_request){.data = true, .session = 5, .index = hostile_variant ? 60000 : 0});
}

static void plain_message(void)
{
	uint8_t bytes[PROTO_HEADER_BYTES + 4] = {0};
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	honest_enter();
	proto_put_header(&out, PROTO_TERMS, false, 4);
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void replayed(void)
{
	uint8_t bytes[8192];
	size_t len;
	honest_enter();
	len = honest_sealed(bytes, PROTO_PING, PROTO_PING, 0);
	hostile_send_raw(h, bytes, len);
	hostile_send_raw(h, bytes, len);
}

static void altered(void)
{
	uint8_t bytes[8192];
	size_t len;
	honest_enter();
	len = honest_sealed(bytes, PROTO_PING, PROTO_PING, 0);
	bytes[len - 1 - hostile_variant] ^= 1;
	hostile_send_raw(h, bytes, len);
}

static void truncated(void)
{
	uint8_t bytes[8192];
	struct cursor_out head = cursor_out(bytes, PROTO_HEADER_BYTES);
	size_t len;
	honest_enter();
	len = honest_sealed(bytes, PROTO_PING, PROTO_PING, 0) - 1 - hostile_variant;
	proto_put_header(&head, PROTO_PING, true, (uint32_t)(len - PROTO_HEADER_BYTES));
	hostile_send_raw(h, bytes, len);
}

static void two_types(void)
{
	uint8_t bytes[8192];
	honest_enter();
	hostile_send_raw(h, bytes, honest_sealed(bytes, PROTO_PING, PROTO_END, 0));
}

static void lying_credits(void)
{
	uint8_t bytes[8192];
	honest_enter();
	hostile_send_raw(h, bytes, honest_sealed(bytes, PROTO_PING, PROTO_PING, 255));
}

/* TLS would answer with more than fits into a message. No answer may be sent. */
static void keys_updated(void)
{
	honest_enter();
	for (unsigned i = 0; i < 3; i++)
		hostile_update_keys(h, hostile_variant ? 2400 : 1);
}

static void too_early(void)
{
	struct mover_entry e = honest_file("early", 0);
	honest_enter();
	honest_offer(0, &e);
}

static void lying_terms(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct cursor_out *out;

	switch (hostile_variant) {
	case 0: terms.mode = 3; break;
	case 1: terms.qps = 0; break;
	case 2: terms.qps = MOVER_MAX_QPS + 1; break;
	case 3: terms.windows = 0; break;
	case 4: terms.windows = 65535; break;
	case 5: terms.chunk_bytes = PROTO_MIN_CHUNK + 1; break;
	case 6: terms.chunk_bytes = 1u << 31; break;
	case 7: terms.max_entries = 0; break;
	case 8: terms.max_entries = 65535; break;
	case 9: terms.session = 1; break;
	default: break;
	}
	honest_enter();
	out = hostile_begin(h, PROTO_TERMS);
	proto_put_terms(out, &terms);
	if (hostile_variant == 10)
		put_u8(out, 0);
	hostile_send(h);
}

static void terms_twice(void)
{
	honest_agree(MOVER_WRITE);
	honest_propose(&h->terms);
}

static void wrong_token(void)
{
	struct proto_request request = {.data = true};

	honest_agree(MOVER_WRITE);
	request.session = h->terms.session;
	if (hostile_variant) {
		MUST(mover_secure_token(h->control.secure, request.token) == 0);
		request.index = 1; /* there is only one lane */
	}
	hostile_connect_lane(h, &request);
}

static void no_lanes(void)
{
	honest_agree(MOVER_WRITE);
}

/* Nothing is wrong here. Grants and verdicts come before there is a data connection. */
static void lanes_last(void)
{
	struct mover_entry e = honest_file("file", 10);
	struct proto_segment segment;
	struct proto_descriptor d;

	honest_agree(MOVER_WRITE);
	MUST(honest_verdict_and_grants(0, &e) == PROTO_WANT);
	honest_connect_lane();
	d = honest_write_file(&segment);
	honest_fin(&d, &segment);
	MUST(honest_result().verdict == PROTO_DONE);
}

/* As older senders do it: they take no grant before the data connections are there. */
static void lanes_first(void)
{
	honest_lanes(MOVER_WRITE);
	MUST(!h->granted);
	honest_take_grants();
}

/* As many windows as a far path holds: the first grants do not wait until all are registered. */
static void many_windows(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	unsigned count = 0;

	terms.windows = 60;
	honest_lanes_with(&terms);
	MUST(h->terms.windows == 60);
	for (unsigned more; count < 60; count += more) {
		more = honest_take_grants();
		MUST(more <= 16);
	}
	MUST(count == 60);
}

static void a_receivers_message(void)
{
	static const enum proto_type types[] = {PROTO_VERDICT, PROTO_ACK, PROTO_HAVE, PROTO_HELLO};
	honest_lanes(MOVER_WRITE);
	put_u64(hostile_begin(h, types[hostile_variant]), 0);
	hostile_send(h);
}

const struct scenario hostile_messages[] = {
	{"silent", silent, ERROR_LOST, 1},
	{"crowd", crowd, CHECKED, 1},
	{"garbage", garbage, ERROR_PROTOCOL, 2},
	{"lying-length", lying_length, ERROR_PROTOCOL, 2},
	{"no-handshake", no_handshake, ERROR_PROTOCOL, 1},
	{"no-tls", no_tls, ERROR_PROTOCOL, 1},
	{"half-a-handshake", half_a_handshake, ERROR_LOST, 1},
	{"too-long", too_long, CLOSED, 1},
	{"lane-of-no-session", lane_of_no_session, REJECTED, 2},
	{"plain-message", plain_message, ERROR_PROTOCOL, 1},
	/* TLS itself fails on a record that is not the peer's (RFC 8446 s.5.2), and cannot send an ERROR any more */
	{"replayed", replayed, CLOSED, 1},
	{"altered", altered, CLOSED, 20},
	{"keys-updated", keys_updated, CLOSED, 2},
	{"truncated", truncated, ERROR_PROTOCOL, 20},
	{"two-types", two_types, ERROR_PROTOCOL, 1},
	{"lying-credits", lying_credits, ERROR_PROTOCOL, 1},
	{"too-early", too_early, ERROR_PROTOCOL, 1},
	{"lying-terms", lying_terms, ERROR_PROTOCOL, 11},
	{"terms-twice", terms_twice, ERROR_PROTOCOL, 1},
	{"wrong-token", wrong_token, REJECTED, 2},
	{"no-lanes", no_lanes, ERROR_LOST, 1},
	{"lanes-last", lanes_last, CHECKED, 1},
	{"lanes-first", lanes_first, CHECKED, 1},
	{"many-windows", many_windows, CHECKED, 1},
	{"a-receivers-message", a_receivers_message, ERROR_PROTOCOL, 4},
	{0},
};
