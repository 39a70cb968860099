/* SPDX-License-Identifier: BSD-2-Clause */
/* mover_send(): walk, connect, prove the ticket, agree on terms, offer, send, and wait until all of it is stored. */
#include "mover/sender.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mover/clock.h"
#include "mover/fd_limit.h"
#include "mover/gcm_wide.h"
#include "mover/opening.h"
#include "mover/stop.h"
#include "mover/terms.h"

#define HANDSHAKE_TIMEOUT_MS 10000
#define BYE_TIMEOUT_MS       2000
#define BYE_LEAVES_MS        5
#define ENTER_TRIES          5
#define RESENT_NS            2000000000u /* later answers are to a request that was sent again */
#define ACCEPT_NS            5000000u    /* that a receiver may take to answer: a thread, queues, a key */
#define MAX_OFFERED          PROTO_MAX_ENTRIES

/* Messages */

/* What was made for the terms that were proposed, and is more than what was agreed on. False after session_fail(). */
static bool reduce(struct session *s)
{
	for (unsigned i = s->terms.qps; i < s->lanes.count; i++)
		connection_destroy(&s->lanes.conns[i]);
	s->lanes.count = s->terms.qps;
	return session_fit_windows(s, s->terms.mode == MOVER_READ ? -1 : 0);
}

/* The terms are agreed on. The messages of the transfer may be right behind the answer. */
static void begin_transfer(struct sender *x)
{
	struct session *s = &x->s;

	if (!reduce(s))
		return;
	offer_limit(x);
	rate_limit_init(&x->dispatch.limit, x->options->limit_bytes_per_s, mover_now_ns());
	if (pack_init(x) || source_init(x) || dispatch_init(x)) {
		session_fail_memory(s);
		return;
	}
	session_connected(s);
	s->ready = true;
}

static void on_terms(struct session *s, struct cursor_in *payload)
{
	static const uint8_t no_transfer[PROTO_TRANSFER_BYTES];
	struct sender *x = (struct sender *)s;
	struct proto_terms terms;

	if (s->terms.session || proto_get_terms(payload, &terms) || !terms_acceptable(&s->terms, &terms)) {
		session_fail_protocol(s, "terms that were not proposed");
		return;
	}
	if (s->terms.checksum && !terms.checksum)
		session_warn(
			s,
			"--checksum: the receiver compares by size and time; `roci recv --compare` compares contents");
	s->terms = terms;
	if (!memcmp(terms.transfer, no_transfer, sizeof(no_transfer)))
		s->report.stream = MOVER_STDOUT;
	begin_transfer(x);
}

static void got_end(struct sender *x, struct cursor_in *payload)
{
	struct proto_end end;
	char text[PROTO_MAX_TEXT + 1];

	if (!x->lanes_up || x->offer.finished != x->entry_count || x->end_came || proto_get_end(payload, &end)) {
		session_fail_protocol(&x->s, "an unexpected END");
		return;
	}
	x->end_came = true;
	session_step(&x->s, "END", "entries stored: %llu", (unsigned long long)end.entries);
	proto_text_copy(text, sizeof(text), &end.text);
	x->receiver_stays = !strcmp(text, PROTO_STAYS);
	if (end.status != MOVER_OK && end.status != MOVER_PARTLY)
		session_fail(&x->s, session_mirror_status(end.status), "the receiver could not finish: %s", text);
	else if (end.failed != x->s.totals.entries_failed)
		session_fail_protocol(&x->s, "totals that do not agree");
}

static void on_message(struct session *s, enum proto_type type, struct cursor_in *payload)
{
	struct sender *x = (struct sender *)s;

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
	const struct source *source = &((struct sender *)s)->source;
	unsigned n = 0;

	if (source->disk)
		fds[n++] = (struct pollfd){.fd = disk_fd(source->disk), .events = POLLIN};
	if (source->stdin_waiting && source->file)
		fds[n++] = (struct pollfd){.fd = source->file->fd, .events = POLLIN};
	return n;
}

/* While the answer to the terms is on its way: registers the next window. One at a time, because what comes is looked
 * at between them. After the first one, when the requests of the data connections have left: loads what seals them. */
static bool register_ahead(struct session *s)
{
	struct window *next = s->ready ? NULL : window_not_open(&s->pool);
	int err = next ? window_open(&s->pool, next) : 0;

	if (next && next->index == 1 && !s->terms.dry_run)
		gcm_wide_load();
	if (err)
		session_fail_errno(s, err, SESSION_NO_MEMORY);
	return next && !err;
}

static bool pump(struct session *s)
{
	struct sender *x = (struct sender *)s;
	bool any = false;

	any |= sender_lanes_pump(x);
	any |= register_ahead(s);
	if (!s->ready || s->status != MOVER_OK)
		return any;
	any |= offer_pump(x);
	any |= source_pump(x);
	any |= dispatch_pump(x);
	return any;
}

static const struct session_role role = {on_terms, on_message, on_window_done, on_lane_message, pump, poll_fds};

/* The story */

static bool trusted(struct session *s)
{
	return s->control.trusted;
}

static bool ended(struct session *s)
{
	return ((struct sender *)s)->end_came;
}

static void warn_left_out(void *context, const char *path, const char *why)
{
	char *text;

	if (asprintf(&text, "%s: %s; left out", path, why) < 0)
		text = NULL;
	session_warn(context, text ? text : why);
	free(text);
}

static void count_entries(struct sender *x)
{
	x->s.totals.entries_total = x->entry_count;
	x->s.totals.bytes_total = mover_walk_bytes(x->walk);
}

static bool number_transfer(struct sender *x)
{
	if (!x->options->transfer)
		return getrandom(x->transfer, sizeof(x->transfer), 0) == sizeof(x->transfer);
	memcpy(x->transfer, x->options->transfer, sizeof(x->transfer));
	return true;
}

static bool walk(struct sender *x)
{
	const struct mover_send_options *o = x->options;
	struct session *s = &x->s;
	size_t bad = 0;
	int err = mover_walk_create(o->paths, o->path_count, o->stdin_name, warn_left_out, s, &x->walk, &bad);

	if (err == -EEXIST)
		session_fail(s, MOVER_USAGE, "%s: another argument would get the same name at the receiver",
			     o->paths[bad]);
	else if (err == -EOPNOTSUPP)
		session_fail(s, MOVER_LOCAL_IO, "cannot send %s: it is no file, folder or symbolic link",
			     o->paths[bad]);
	else if (err == -EINVAL)
		session_fail(s, MOVER_LOCAL_IO, "cannot send %s: receivers do not take this name", o->paths[bad]);
	else if (err)
		session_fail(s, MOVER_LOCAL_IO, "cannot read %s: %s", o->paths[bad], strerror(-err));
	if (err)
		return false;
	if (mover_walk_count(x->walk) >= UINT32_MAX) {
		session_fail(s, MOVER_USAGE, "more than 4294967294 entries");
		return false;
	}
	x->entry_count = (uint32_t)mover_walk_count(x->walk);
	x->history = calloc(x->entry_count + 1, 1);
	if (!x->history || !number_transfer(x)) {
		session_fail_memory(s);
		return false;
	}
	count_entries(x);
	session_emit(s, &(struct mover_event){.type = MOVER_OFFERED, .totals = s->totals});
	return true;
}

/* The receiver's answer to the connect request has begun the handshake. From here on messages can be sealed. */
static bool prove_ticket(struct sender *x)
{
	struct session *s = &x->s;
	const struct connection *conn = &s->control.conn;

	s->received_ns = mover_now_ns();
	if (!session_handshake(s, conn->answer, proto_get_answer(conn->answer, conn->answer_len)))
		return false;
	if (!s->control.sealed)
		session_fail_protocol(s, "its answer does not begin a handshake");
	return s->control.sealed;
}

/* How many entries may be under way: each may be a file that is open. */
static uint16_t most_entries(void)
{
	unsigned files = fd_limit_raise();

	if (files < FD_LIMIT_MIN_ENTRIES)
		files = FD_LIMIT_MIN_ENTRIES;
	return (uint16_t)(files < MAX_OFFERED ? files : MAX_OFFERED);
}

/* As the answer to the connect request shows: no SEND has been acknowledged yet. */
static uint64_t round_trip_so_far(const struct session *s)
{
	uint64_t answer_ns = s->control.conn.answer_ns;

	return answer_ns > ACCEPT_NS && answer_ns < RESENT_NS ? answer_ns - ACCEPT_NS : 0;
}

static bool propose_terms(struct sender *x)
{
	struct session *s = &x->s;
	struct cursor_out *out;

	s->terms = terms_propose(x->options, most_entries(), x->entry_count, mover_walk_bytes(x->walk),
				 round_trip_so_far(s), connection_is_roci(s->dev.verbs->device));
	memcpy(s->terms.transfer, x->transfer, sizeof(x->transfer));
	out = session_begin(s, PROTO_TERMS);
	if (!out) {
		session_fail_protocol(s, "too many handshake messages");
		return false;
	}
	session_step(s, "TERMS", "mode %s, QPs: %u, chunks of %u bytes", mover_mode_name(s->terms.mode), s->terms.qps,
		     s->terms.chunk_bytes);
	proto_put_terms(out, &s->terms);
	session_send(s);
	return true;
}

static void offer_padded(struct sender *x)
{
	const struct session *s = &x->s;
	bool endless = mover_sends_stdin(x->options->paths, x->options->path_count);
	uint64_t content = s->terms.mode == MOVER_READ ? 0 : endless ? UINT64_MAX : mover_walk_bytes(x->walk);

	mover_secure_pad(s->control.secure,
			 opening_bytes(round_trip_so_far(s), content, connection_is_roci(s->dev.verbs->device)));
	offer_first(x);
	mover_secure_pad(s->control.secure, 0);
}

/* The end of the handshake, the answer, verdicts, windows and data connections come in one round trip. */
static bool ask_for_all(struct sender *x)
{
	struct session *s = &x->s;

	if (!prove_ticket(x) || !propose_terms(x))
		return false;
	if (offer_init(x)) {
		session_fail_memory(s);
		return false;
	}
	offer_padded(x);
	return session_open_lanes(s, s->terms.mode == MOVER_READ ? -1 : 0) && sender_begin_lanes(x) &&
	       session_run(s, trusted, HANDSHAKE_TIMEOUT_MS, "the handshake");
}

/* What was asked for in a session that has not begun. */
static void forget(struct sender *x)
{
	session_close_lanes(&x->s);
	offer_destroy(x);
	x->offer = (struct offer){0};
	x->lanes_up = x->lanes_begun = false;
	x->lanes_early = 0;
	x->lanes_deadline_ns = 0;
}

/* A receiver that has more strangers than places sends some away, chosen at random, until they have proved the ticket.
 */
static bool enter(struct sender *x)
{
	struct session *s = &x->s;

	for (unsigned tries = 1;; tries++) {
		if (!sender_connect(x))
			return false;
		if (ask_for_all(x))
			return true;
		if (s->status != MOVER_NO_CONNECT || s->control.trusted || tries == ENTER_TRIES)
			return false;
		forget(x);
		session_start_over(s);
	}
}

/* The final status, now that all outcomes are known. Entries that could not even be offered count as failed. */
static void conclude(struct sender *x)
{
	struct session *s = &x->s;
	struct mover_totals *t = &s->totals;
	size_t unread = x->walk ? mover_walk_unread(x->walk) : 0;

	t->entries_total += unread;
	t->entries_failed += unread;
	if (s->status != MOVER_OK || !t->entries_failed)
		return;
	if (t->entries_total == 1)
		session_fail(s, unread ? MOVER_LOCAL_IO : x->offer.status, "the one entry could not be sent");
	else
		session_fail(s, MOVER_PARTLY, "%llu of %llu entries could not be sent%s",
			     (unsigned long long)t->entries_failed, (unsigned long long)t->entries_total,
			     t->entries_failed == t->entries_total ? ""
			     : x->options->dry_run                 ? "; the others can be"
								   : "; the others arrived");
}

/* Lets the receiver know that END has come. (END's acknowledgement may be lost, and a QP that is gone does not repeat
 * it.) One that stays does not wait for that, so nobody waits here for a round trip to it: only until BYE has
 * left. False after session_fail(): the receiver may not know, and another session has to tell it. */
static bool say_bye(struct sender *x)
{
	struct session *s = &x->s;
	bool said = control_can_send(&s->control, PROTO_BYE);

	if (said) {
		session_step(s, "BYE", "END has come");
		control_begin(&s->control, PROTO_BYE);
		said = !control_send(&s->control);
	}
	s->closing = true;
	session_wait(s, session_all_sent, x->receiver_stays ? BYE_LEAVES_MS : BYE_TIMEOUT_MS);
	s->status = MOVER_OK;
	s->unawaited = x->receiver_stays;
	if (x->receiver_stays)
		return true;
	if (said && (session_all_received(s) || s->control.conn.state == CONNECTION_DOWN))
		return true;
	conclude(x);
	x->outcome.known = true;
	x->outcome.status = s->status;
	memcpy(x->outcome.text, s->text, sizeof(s->text));
	x->outcome.entries_total = s->totals.entries_total;
	x->outcome.entries_failed = s->totals.entries_failed;
	s->status = MOVER_OK;
	session_fail(s, MOVER_LOST, "the transfer has ended, but the receiver may not know that we know");
	return false;
}

static bool transfer(struct sender *x)
{
	return enter(x) && session_run(&x->s, ended, 0, NULL) && say_bye(x);
}

/* No later session could tell the receiver. */
static void take_outcome(struct sender *x)
{
	struct session *s = &x->s;

	s->status = x->outcome.status;
	memcpy(s->text, x->outcome.text, sizeof(s->text));
	s->totals.entries_total = x->outcome.entries_total;
	s->totals.entries_failed = x->outcome.entries_failed;
}

bool sender_begin(struct sender *x)
{
	struct session_report report = x->s.report;
	struct mover_totals before = session_totals(&x->s);
	int err = session_init(&x->s, &role, &x->options->common, x->events, 1);

	report.events = x->events;
	report.number = 1;
	report.before = before;
	x->s.report = report;
	x->refused = false;
	if (x->walk)
		count_entries(x);
	if (err)
		session_fail(&x->s, MOVER_NO_DEVICE, "no RDMA device: %s", strerror(-err));
	return !err;
}

void sender_disconnect(struct sender *x)
{
	if (x->end_came)
		x->s.peer_notified = true; /* both sides know the outcome of each entry */
	session_close(&x->s);
	/* reads under way end in windows, so the windows go last */
	source_destroy(x);
	pack_destroy(x);
	forget(x);
	session_destroy(&x->s);
	x->source = (struct source){0};
	x->packs = (struct packs){0};
	dispatch_destroy(x);
	x->end_came = x->receiver_stays = false;
}

static void destroy(struct sender *x)
{
	if (x->addresses)
		freeaddrinfo(x->addresses);
	if (x->walk)
		mover_walk_destroy(x->walk);
	free(x->history);
	free(x);
}

enum mover_status mover_send(const struct mover_send_options *options, mover_event_fn *event, void *context)
{
	struct sender *x = calloc(1, sizeof(*x));
	struct events events;
	enum mover_status status;

	if (!x)
		return MOVER_FAILED;
	mover_stop_fd();
	events_init(&events, event, context);
	x->events = &events;
	x->options = options;
	retry_init(&x->retry, options->common.retry_ms * 1000000, options->retry_first);
	if (sender_begin(x) && walk(x))
		while ((x->s.status != MOVER_OK || !transfer(x)) && sender_again(x))
			;
	if (x->outcome.known && x->s.status != MOVER_OK)
		take_outcome(x);
	else
		conclude(x);
	status = x->s.status;
	sender_disconnect(x);
	session_progress(&x->s, true);
	session_ended(&x->s);
	events_destroy(&events);
	destroy(x);
	return status;
}
