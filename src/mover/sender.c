/* SPDX-License-Identifier: BSD-2-Clause */
/* mover_send(): walk, connect, prove the ticket, agree on terms, offer, send, and wait until all is stored. */
#include "mover/sender.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "mover/descriptors.h"
#include "mover/stop.h"

#define HANDSHAKE_TIMEOUT_MS 10000
#define DEFAULT_CHUNK        (1u << 20)
#define DEFAULT_WINDOWS      8
#define WINDOWS_PER_QP       2
#define MAX_OFFERED          1024

/* Messages */

static void got_terms(struct sender *x, struct cursor_in *payload)
{
	struct session *s = &x->s;
	struct proto_terms asked = s->terms, terms;

	if (asked.session || proto_get_terms(payload, &terms) || !terms.session || terms.mode != asked.mode ||
	    terms.encrypt != asked.encrypt || terms.dry_run != asked.dry_run || terms.qps > asked.qps ||
	    terms.chunk_bytes > asked.chunk_bytes || terms.windows > asked.windows ||
	    terms.max_entries > asked.max_entries) {
		session_fail_protocol(s, "terms that were not asked for");
		return;
	}
	s->terms = terms;
}

static void got_end(struct sender *x, struct cursor_in *payload)
{
	struct proto_end end;
	char text[PROTO_MAX_TEXT + 1];

	if (!x->end_sent || x->end_came || proto_get_end(payload, &end)) {
		session_fail_protocol(&x->s, "an END out of turn");
		return;
	}
	x->end_came = true;
	session_step(&x->s, "END", "entries stored: %llu", (unsigned long long)end.entries);
	proto_text_copy(text, sizeof(text), &end.text);
	if (end.status != MOVER_OK && end.status != MOVER_PARTLY)
		session_fail(&x->s, session_mirror_status(end.status), "the receiver could not finish: %s", text);
	else if (end.failed != x->s.totals.entries_failed)
		session_fail_protocol(&x->s, "totals that do not agree");
}

static void on_message(struct session *s, enum proto_type type, struct cursor_in *payload)
{
	struct sender *x = (struct sender *)s;

	if (type == PROTO_HELLO && !s->control.sealed) {
		session_step(s, "HELLO", "answer");
		session_handshake(s, payload->at, (size_t)(payload->end - payload->at));
		return;
	}
	if (s->control.sealed && type == PROTO_TERMS) {
		got_terms(x, payload);
		return;
	}
	if (!s->control.sealed || !x->slots) {
		session_fail_protocol(s, "a message too early");
		return;
	}
	switch (type) {
	case PROTO_VERDICT: offer_verdict(x, payload); break;
	case PROTO_HAVE: offer_have(x, payload); break;
	case PROTO_ACK: offer_ack(x, payload); break;
	case PROTO_GRANT: dispatch_grant(x, payload); break;
	case PROTO_FIN: dispatch_fin(x, payload); break;
	case PROTO_END: got_end(x, payload); break;
	default: session_fail_protocol(s, "a message that only a sender may send");
	}
}

static void on_window_done(struct session *s, unsigned window, unsigned lane, uint32_t len)
{
	dispatch_done((struct sender *)s, window);
}

static void on_lane_message(struct session *s, unsigned lane, uint64_t seq, uint16_t window)
{
	session_fail_protocol(s, "a message on a data connection");
}

static unsigned poll_fds(struct session *s, struct pollfd *fds)
{
	struct sender *x = (struct sender *)s;
	unsigned n = 0;

	if (x->disk)
		fds[n++] = (struct pollfd){.fd = disk_fd(x->disk), .events = POLLIN};
	if (x->stdin_waiting && x->file)
		fds[n++] = (struct pollfd){.fd = x->file->fd, .events = POLLIN};
	return n;
}

static bool send_end(struct sender *x)
{
	struct proto_end end = {.status = x->s.totals.entries_failed ? MOVER_PARTLY : MOVER_OK,
				.entries = x->s.totals.entries_done,
				.failed = x->s.totals.entries_failed};
	struct cursor_out *out;

	if (x->end_sent || x->finished != x->entries || !source_idle(x))
		return false;
	out = session_begin(&x->s, PROTO_END);
	if (!out)
		return false;
	session_step(&x->s, "END", "entries: %llu", (unsigned long long)end.entries);
	proto_put_end(out, &end);
	session_send(&x->s);
	x->end_sent = true;
	return true;
}

static bool pump(struct session *s)
{
	struct sender *x = (struct sender *)s;
	bool any = false;

	if (!x->disk)
		return false;
	any |= offer_pump(x);
	any |= source_pump(x);
	any |= dispatch_pump(x);
	any |= send_end(x);
	return any;
}

static const struct session_role role = {on_message, on_window_done, on_lane_message, pump, poll_fds};

/* Connecting */

static bool trusted(struct session *s)
{
	return s->control.sealed;
}

static bool has_terms(struct session *s)
{
	return s->terms.session != 0;
}

/* Takes a data connection one step further. Whether it is up. */
static bool lane_up(struct session *s, unsigned lane)
{
	struct link *link = &s->lanes[lane];
	struct proto_request request = {.data = true, .session = s->terms.session, .index = (uint16_t)lane};
	int err;

	if (link->state == LINK_FAILED)
		session_fail(s, MOVER_LOST, "a data connection could not be made: %s", strerror(-link->err));
	if (link->state != LINK_RESOLVED)
		return link->state == LINK_UP;
	if (mover_secure_token(s->control.secure, request.token)) {
		session_fail(s, MOVER_FAILED, "no token from the handshake");
		return false;
	}
	if (!session_create_lane_qp(s, lane))
		return false;
	err = link_connect(link, &request);
	if (err)
		session_fail_errno(s, err, "a data connection");
	return false;
}

static bool lanes_up(struct session *s)
{
	bool all = true;
	for (unsigned i = 0; i < s->lane_count && s->status == MOVER_OK; i++)
		all &= lane_up(s, i);
	return all;
}

static bool ended(struct session *s)
{
	return ((struct sender *)s)->end_came;
}

static bool prove_ticket(struct sender *x)
{
	struct session *s = &x->s;

	s->last_heard_ns = mover_now_ns();
	s->control.secure = mover_secure_client(x->options->ticket);
	if (!s->control.secure) {
		session_fail(s, MOVER_FAILED, "out of memory");
		return false;
	}
	session_handshake(s, NULL, 0);
	return session_run(s, trusted, HANDSHAKE_TIMEOUT_MS, "the handshake");
}

/* Entries under way: all of them may be files that are open. */
static uint16_t most_entries(void)
{
	unsigned files = mover_descriptors();

	if (files < DESCRIPTORS_LEAST_ENTRIES)
		files = DESCRIPTORS_LEAST_ENTRIES;
	return (uint16_t)(files < MAX_OFFERED ? files : MAX_OFFERED);
}

/* As many windows as memory allows, of a chunk that leaves room for at least two. */
static void ask_terms(struct sender *x, struct proto_terms *terms)
{
	const struct mover_common *c = x->s.common;
	uint64_t memory = c->memory_bytes ? c->memory_bytes : MOVER_DEFAULT_MEMORY_BYTES, room, windows;

	room = memory > control_bytes() + 2 * PROTO_MIN_CHUNK ? memory - control_bytes() : 2 * PROTO_MIN_CHUNK;
	*terms = (struct proto_terms){
		.mode = x->options->mode,
		.encrypt = x->options->encrypt,
		.checksum = x->options->checksum,
		.dry_run = x->options->dry_run,
		.qps = (uint16_t)(c->qps ? c->qps : MOVER_DEFAULT_QPS),
		.max_entries = most_entries(),
		.chunk_bytes = c->chunk_bytes ? c->chunk_bytes : DEFAULT_CHUNK,
		.entries = x->entries,
		.bytes = mover_walk_bytes(x->walk),
	};
	while (terms->chunk_bytes > PROTO_MIN_CHUNK && terms->chunk_bytes > room / 2)
		terms->chunk_bytes /= 2;
	windows = terms->qps * WINDOWS_PER_QP > DEFAULT_WINDOWS ? terms->qps * WINDOWS_PER_QP : DEFAULT_WINDOWS;
	if (windows > room / (terms->chunk_bytes + 4096))
		windows = room / (terms->chunk_bytes + 4096);
	terms->windows = (uint16_t)(windows ? windows : 1);
}

static bool agree_on_terms(struct sender *x)
{
	struct session *s = &x->s;
	struct cursor_out *out;
	int access;

	ask_terms(x, &s->terms);
	out = session_begin(s, PROTO_TERMS);
	if (!out) {
		session_fail_protocol(s, "a handshake of too many flights");
		return false;
	}
	session_step(s, "TERMS", "mode %s, QPs: %u, chunks of %u bytes", mover_mode_name(s->terms.mode), s->terms.qps,
		     s->terms.chunk_bytes);
	proto_put_terms(out, &s->terms);
	session_send(s);
	if (!session_run(s, has_terms, 0, NULL))
		return false;
	access = s->terms.mode == MOVER_READ ? -1 : 0;
	return session_open_windows(s, s->terms.windows, access);
}

/* To where the control connection leads, from where it comes, all at once; then a greeting on each, because in iWARP
 * the side that connects has to speak first (RFC 5044 s.7.1). */
static bool connect_lanes(struct sender *x)
{
	struct session *s = &x->s;
	struct rdma_cm_id *control = s->control.link.id;
	struct sockaddr_storage source;

	memcpy(&source, rdma_get_local_addr(control), sizeof(source));
	((struct sockaddr_in *)&source)->sin_port = 0; /* where the port of an IPv6 address is, too */
	for (unsigned i = 0; i < s->lane_count; i++) {
		int err =
			link_resolve(&s->lanes[i], s->channel, (struct sockaddr *)&source, rdma_get_peer_addr(control));
		if (err) {
			session_fail_errno(s, err, "a data connection");
			return false;
		}
	}
	if (!session_run(s, lanes_up, SENDER_CONNECT_TIMEOUT_MS, "making the data connections"))
		return false;
	for (unsigned i = 0; i < s->lane_count; i++)
		if (!session_lane_send(s, i, 0, session_wr_id(WR_LANE_SEND, i, 0), UINT64_MAX, PROTO_NO_WINDOW))
			return false;
	return true;
}

/* Sending */

static bool transfer(struct sender *x)
{
	struct session *s = &x->s;

	if (!sender_connect(x) || !prove_ticket(x) || !agree_on_terms(x))
		return false;
	session_connected(s);
	x->tokens_ns = mover_now_ns();
	if (!connect_lanes(x))
		return false;
	x->slots = calloc(s->terms.max_entries, sizeof(*x->slots));
	if (!x->slots || source_init(x)) {
		session_fail(s, MOVER_FAILED, "out of memory");
		return false;
	}
	return session_run(s, ended, 0, NULL);
}

static void warn_left_out(void *context, const char *path, const char *why)
{
	char *text;

	if (asprintf(&text, "%s: %s; left out", path, why) < 0)
		text = NULL;
	session_warn(context, text ? text : why);
	free(text);
}

static bool walk(struct sender *x)
{
	const struct mover_send_options *o = x->options;
	struct session *s = &x->s;
	size_t bad = 0;
	int err = mover_walk_create(o->paths, o->path_count, o->stdin_name, warn_left_out, s, &x->walk, &bad);

	if (err == -EEXIST)
		session_fail(s, MOVER_USAGE, "%s: another argument has the same name over there", o->paths[bad]);
	else if (err)
		session_fail(s, MOVER_LOCAL_IO, "%s: %s", o->paths[bad], strerror(-err));
	if (err)
		return false;
	if (mover_walk_count(x->walk) >= UINT32_MAX) {
		session_fail(s, MOVER_USAGE, "more than four thousand million entries");
		return false;
	}
	x->entries = (uint32_t)mover_walk_count(x->walk);
	s->totals.entries_total = x->entries;
	s->totals.bytes_total = mover_walk_bytes(x->walk);
	session_tell(s, &(struct mover_event){.type = MOVER_OFFERED, .totals = s->totals});
	return true;
}

/* What the receiver has not got is known by now; to it belongs what could not even be offered. */
static void judge_ending(struct sender *x)
{
	struct session *s = &x->s;
	struct mover_totals *t = &s->totals;
	size_t unread = x->walk ? mover_walk_unread(x->walk) : 0;

	t->entries_total += unread;
	t->entries_failed += unread;
	if (s->status != MOVER_OK || !t->entries_failed)
		return;
	if (t->entries_total == 1)
		session_fail(s, unread ? MOVER_LOCAL_IO : x->entry_status, "the one entry could not be sent");
	else
		session_fail(s, MOVER_PARTLY, "%llu of %llu entries could not be sent; the others %s",
			     (unsigned long long)t->entries_failed, (unsigned long long)t->entries_total,
			     x->options->dry_run ? "can be" : "arrived");
}

static void destroy(struct sender *x)
{
	if (x->end_came)
		x->s.peer_told = true; /* both know what became of each entry */
	session_close(&x->s);
	/* reads under way end in windows: these go last */
	source_destroy(x);
	session_destroy(&x->s);
	for (uint32_t i = 0; x->slots && i < x->s.terms.max_entries; i++) {
		free(x->slots[i].have);
		free(x->slots[i].present);
	}
	free(x->slots);
	if (x->walk)
		mover_walk_destroy(x->walk);
}

enum mover_status mover_send(const struct mover_send_options *options, mover_event_fn *event, void *context)
{
	struct sender *x = calloc(1, sizeof(*x));
	struct teller teller;
	enum mover_status status;
	int err;

	if (!x)
		return MOVER_FAILED;
	mover_stop_fd();
	teller_init(&teller, event, context);
	x->options = options;
	err = session_init(&x->s, &role, &options->common, &teller, 1);
	if (err)
		session_fail(&x->s, MOVER_NO_DEVICE, "no RDMA device: %s", strerror(-err));
	if (!err && walk(x))
		transfer(x);
	judge_ending(x);
	status = x->s.status;
	destroy(x);
	session_progress(&x->s, true);
	session_ended(&x->s);
	teller_destroy(&teller);
	free(x);
	return status;
}
