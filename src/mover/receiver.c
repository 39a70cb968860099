/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver's session, from the connect request to the end: trust, terms, data connections, content, and the word that
 * all of it is on the disk. */
#include "mover/receiver.h"
#include "mover/stop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define TRUST_TIMEOUT_MS   5000 /* who has not proved the ticket by then is shown the door */
#define LANES_TIMEOUT_MS   10000
#define GOODBYE_TIMEOUT_MS 3000

struct seal_job {
	struct worker_job job;
	struct receiver *r;
	int synced;    /* 0 or -errno */
	int results[]; /* of the folders */
};

/* Messages */

static void got_terms(struct receiver *r, struct cursor_in *payload)
{
	if (r->terms_came || proto_get_terms(payload, &r->s.terms) || r->s.terms.session) {
		session_fail_protocol(&r->s, "terms that make no sense");
		return;
	}
	r->terms_came = true;
}

static void got_end(struct receiver *r, struct cursor_in *payload)
{
	struct proto_end end;

	if (r->end_came || proto_get_end(payload, &end) || r->offered != r->s.terms.entries || r->takes_busy ||
	    r->result_count || !windows_idle(r)) {
		session_fail_protocol(&r->s, "an END before the end");
		return;
	}
	session_step(&r->s, "END", "entries: %llu", (unsigned long long)end.entries);
	r->end_came = true;
}

static void on_message(struct session *s, enum proto_type type, struct cursor_in *payload)
{
	struct receiver *r = (struct receiver *)s;

	if (type == PROTO_HELLO && !s->control.sealed && s->control.secure) {
		session_step(s, "HELLO", "%zu bytes of the handshake", (size_t)(payload->end - payload->at));
		session_handshake(s, payload->at, (size_t)(payload->end - payload->at));
		return;
	}
	if (s->control.sealed && type == PROTO_TERMS) {
		got_terms(r, payload);
		return;
	}
	if (!s->control.sealed || !r->takes) {
		session_fail_protocol(s, "a message too early");
		return;
	}
	switch (type) {
	case PROTO_OFFER: judge_offer(r, payload); break;
	case PROTO_FIN: windows_fin(r, payload); break;
	case PROTO_GRANT: windows_grant(r, payload); break;
	case PROTO_END: got_end(r, payload); break;
	default: session_fail_protocol(s, "a message that only a receiver may send");
	}
}

static void on_window_done(struct session *s, unsigned window, unsigned lane, uint32_t len)
{
	windows_arrived((struct receiver *)s, window, lane, len);
}

static void on_lane_message(struct session *s, unsigned lane, uint64_t seq, uint16_t window)
{
	if (!s->lanes[lane].greeted) {
		s->lanes[lane].greeted = true;
		return;
	}
	windows_done((struct receiver *)s, lane, seq, window);
}

static unsigned poll_fds(struct session *s, struct pollfd *fds)
{
	struct receiver *r = (struct receiver *)s;
	unsigned n = 0;

	fds[n++] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
	if (r->disk)
		fds[n++] = (struct pollfd){.fd = disk_fd(r->disk), .events = POLLIN};
	if (r->out)
		fds[n++] = (struct pollfd){.fd = disk_fd(r->out), .events = POLLIN};
	if (r->judge)
		fds[n++] = (struct pollfd){.fd = worker_fd(r->judge), .events = POLLIN};
	if (r->commit)
		fds[n++] = (struct pollfd){.fd = worker_fd(r->commit), .events = POLLIN};
	return n;
}

/* Data connections */

static void accept_lane(struct receiver *r, unsigned lane, struct rdma_cm_id *id)
{
	struct session *s = &r->s;
	struct link *link = &s->lanes[lane];
	unsigned receives = s->terms.mode == MOVER_WRITE ? s->windows.count + 1 : 1;
	int err;

	link->id = id;
	link->index = (uint16_t)lane;
	id->context = link;
	if (id->verbs != s->verbs) {
		session_fail_protocol(s, "a data connection by another device");
		return;
	}
	if (!session_create_lane_qp(s, lane))
		return;
	for (unsigned i = 0; i < receives; i++)
		if (!session_lane_receive(s, lane, i))
			return;
	err = link_accept(link);
	if (err)
		session_fail_errno(s, err, "accepting a data connection");
}

static bool lanes_greeted(struct session *s)
{
	struct receiver *r = (struct receiver *)s;
	bool all = true;

	for (unsigned i = 0; i < s->lane_count; i++) {
		if (s->lanes[i].state == LINK_NONE) {
			struct rdma_cm_id *id = listener_arrival(r, i);
			if (id)
				accept_lane(r, i, id);
		}
		all &= s->lanes[i].greeted;
	}
	return all;
}

/* The end */

static void run_seal(struct worker_job *job)
{
	struct seal_job *seal = (struct seal_job *)job;
	struct receiver *r = seal->r;

	mover_tree_seal(r->tree, r->folders, r->folder_count, seal->results);
	seal->synced = mover_tree_sync(r->tree, r->sync_failures);
}

/* Also where no folder came: the names of files are to be synced. */
static void start_seal(struct receiver *r)
{
	r->sealing = true;
	if (!r->tree) {
		r->sealed = true;
		return;
	}
	r->seal = calloc(1, sizeof(*r->seal) + r->folder_count * sizeof(r->seal->results[0]));
	if (!r->seal) {
		session_fail(&r->s, MOVER_FAILED, "out of memory");
		return;
	}
	r->seal->job.run = run_seal;
	r->seal->r = r;
	worker_submit(r->commit, &r->seal->job);
}

/* A folder that was there may be another user's: what is in it has arrived, and he alone can set its mode. */
static void folder_not_sealed(struct receiver *r, const struct mover_entry *folder, int err)
{
	char text[PROTO_MAX_TEXT + 1];

	snprintf(text, sizeof(text), "mode and time could not be set (%s): %.*s", strerrordesc_np(-err),
		 (int)folder->name_len, (const char *)folder->name);
	if (err == -EPERM)
		session_warn(&r->s, text);
	else if (!*r->seal_text)
		memcpy(r->seal_text, text, sizeof(text));
}

static void reap_seal(struct receiver *r)
{
	const struct seal_job *seal = r->seal;

	r->sealed = true;
	if (seal->synced)
		snprintf(r->seal_text, sizeof(r->seal_text), "the names of what arrived could not be synced: %s",
			 strerrordesc_np(-seal->synced));
	for (size_t i = 0; i < r->folder_count; i++)
		if (seal->results[i])
			folder_not_sealed(r, &r->folders[i], seal->results[i]);
}

static bool end_pump(struct receiver *r)
{
	struct proto_end end = {.status = MOVER_OK};
	struct cursor_out *out;

	if (!r->end_came || r->end_sent)
		return false;
	if (!r->sealing) {
		start_seal(r);
		return true;
	}
	if (!r->sealed) {
		if (!worker_reap(r->commit))
			return false;
		reap_seal(r);
		return true;
	}
	out = session_begin(&r->s, PROTO_END);
	if (!out)
		return false;
	if (*r->seal_text) {
		end.status = MOVER_LOCAL_IO;
		end.text = proto_text(r->seal_text);
	} else if (r->s.totals.entries_failed) {
		end.status = MOVER_PARTLY;
	}
	end.entries = r->s.totals.entries_done;
	end.failed = r->s.totals.entries_failed;
	session_step(&r->s, "END", "entries stored: %llu", (unsigned long long)end.entries);
	proto_put_end(out, &end);
	session_send(&r->s);
	r->end_sent = true;
	return true;
}

static bool pump(struct session *s)
{
	struct receiver *r = (struct receiver *)s;
	eventfd_t count;
	bool any = false;

	eventfd_read(r->wake_fd, &count);
	if (mover_stopped()) /* which supersedes every session as well */
		session_fail(s, MOVER_INTERRUPTED, "stopped; sending again goes on from here");
	else if (atomic_load(&r->superseded))
		session_fail(s, MOVER_LOST, "the sender has come again by a new connection");
	if (!r->disk || s->status != MOVER_OK)
		return false;
	any |= judge_pump(r);
	any |= store_pump(r);
	any |= windows_pump(r);
	if (!r->end_came)
		any |= take_pump(r);
	any |= take_ack(r, any);
	any |= end_pump(r);
	return any;
}

const struct session_role receiver_role = {on_message, on_window_done, on_lane_message, pump, poll_fds};

/* The story */

static bool control_up(struct session *s)
{
	return s->control.link.state == LINK_UP;
}

static bool trusted(struct session *s)
{
	return s->control.sealed;
}

static bool has_terms(struct session *s)
{
	return ((struct receiver *)s)->terms_came;
}

static bool all_told(struct session *s)
{
	return ((struct receiver *)s)->end_sent;
}

static bool gone(struct session *s)
{
	return s->control.link.state != LINK_UP;
}

static bool let_in(struct receiver *r)
{
	struct session *s = &r->s;
	int err;

	if (!session_open_device(s))
		return false;
	s->control.secure = mover_secure_server(listener_lookup, r->listener);
	if (!s->control.secure) {
		session_fail(s, MOVER_FAILED, "out of memory");
		return false;
	}
	err = link_accept(&s->control.link);
	if (err) {
		session_fail_errno(s, err, "accepting");
		return false;
	}
	if (!session_run(s, control_up, TRUST_TIMEOUT_MS, "connecting"))
		return false;
	session_step(s, "CONNECT", "QP 0x%x", s->control.link.id->qp->qp_num);
	if (!session_run(s, trusted, TRUST_TIMEOUT_MS, "proving the ticket"))
		return false;
	return listener_claim(r);
}

/* The sender's wishes, bounded by what there is on this side. */
static void settle_terms(struct receiver *r)
{
	const struct mover_common *c = r->s.common;
	struct proto_terms *t = &r->s.terms;
	uint64_t memory = c->memory_bytes ? c->memory_bytes : MOVER_DEFAULT_MEMORY_BYTES, room;

	room = memory > control_bytes() + 2 * PROTO_MIN_CHUNK ? memory - control_bytes() : 2 * PROTO_MIN_CHUNK;
	if (c->qps && t->qps > c->qps)
		t->qps = (uint16_t)c->qps;
	while (t->chunk_bytes > PROTO_MIN_CHUNK && t->chunk_bytes > room / 2)
		t->chunk_bytes /= 2;
	if (t->windows > room / (t->chunk_bytes + 4096))
		t->windows = (uint16_t)(room / (t->chunk_bytes + 4096));
	if (!t->windows)
		t->windows = 1;
	t->max_entries = listener_reserve(r, t->max_entries);
	if (t->mode == MOVER_SEND && t->qps > t->windows)
		t->qps = t->windows; /* a data connection without a window would never be used */
	t->session = r->id;
}

/* The token of an entry's slots, windows and workers: everything is there before the sender hears of the terms. */
static bool prepare(struct receiver *r)
{
	struct session *s = &r->s;
	int access =
		s->terms.mode == MOVER_WRITE || (s->terms.mode == MOVER_READ && s->iwarp) ? -1 : IBV_ACCESS_LOCAL_WRITE;

	r->sync_failures = r->tree ? mover_tree_sync_failures(r->tree) : 0;
	s->totals.entries_total = s->terms.entries;
	s->totals.bytes_total = s->terms.bytes;
	if (!session_open_windows(s, s->terms.windows, access))
		return false;
	r->takes = calloc(s->terms.max_entries, sizeof(*r->takes));
	r->results = calloc(s->terms.max_entries, sizeof(*r->results));
	r->ready = calloc(s->terms.max_entries, sizeof(*r->ready));
	r->judged_last = &r->judged;
	if (!r->takes || !r->results || !r->ready || worker_create(&r->judge) || worker_create(&r->commit)) {
		session_fail(s, MOVER_FAILED, "out of memory");
		return false;
	}
	if (mover_secure_token(s->control.secure, r->token)) {
		session_fail(s, MOVER_FAILED, "no token from the handshake");
		return false;
	}
	listener_publish(r);
	return true;
}

static bool agree_on_terms(struct receiver *r)
{
	struct session *s = &r->s;
	struct cursor_out *out;

	if (!session_run(s, has_terms, TRUST_TIMEOUT_MS, "agreeing on terms"))
		return false;
	settle_terms(r);
	if (!prepare(r))
		return false;
	out = session_begin(s, PROTO_TERMS);
	if (!out) {
		session_fail_protocol(s, "a handshake of too many flights");
		return false;
	}
	session_step(s, "TERMS", "mode %s, QPs: %u, chunks of %u bytes", mover_mode_name(s->terms.mode), s->terms.qps,
		     s->terms.chunk_bytes);
	proto_put_terms(out, &s->terms);
	session_send(s);
	session_connected(s);
	return session_run(s, lanes_greeted, LANES_TIMEOUT_MS, "making the data connections");
}

static void serve(struct receiver *r)
{
	struct session *s = &r->s;
	int err;

	if (!let_in(r) || !agree_on_terms(r))
		return;
	err = store_init(r);
	if (err) {
		session_fail_errno(s, err, "preparing to write files");
		return;
	}
	if (!session_run(s, all_told, 0, NULL))
		return;
	/* the sender goes first, when it has heard */
	s->closing = true;
	session_run(s, gone, GOODBYE_TIMEOUT_MS, "the sender's goodbye");
	s->status = MOVER_OK;
	*s->text = 0;
	if (*r->seal_text)
		session_fail(s, MOVER_LOCAL_IO, "%s", r->seal_text);
	else if (s->totals.entries_failed && s->totals.entries_total == 1)
		session_fail(s, r->entry_status, "the one entry did not arrive");
	else if (s->totals.entries_failed)
		session_fail(s, MOVER_PARTLY, "%llu of %llu entries did not arrive; the others did",
			     (unsigned long long)s->totals.entries_failed, (unsigned long long)s->totals.entries_total);
}

void *receiver_thread(void *receiver)
{
	struct receiver *r = receiver;

	serve(r);
	atomic_store(&r->ending, true);
	session_close(&r->s);
	/* The QPs go first, so that nothing arrives any more; then what is on its way to the disk, where the folders
	 * may be on their way to be sealed; then who judges, and with him their names. */
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		link_destroy(&r->s.lanes[i]);
	store_destroy(r);
	take_destroy(r);
	judge_destroy(r);
	free(r->seal);
	for (unsigned i = 0; i < PROTO_FINS; i++)
		free(r->fins[i].segments);
	session_progress(&r->s, true);
	listener_over(r);
	return NULL;
}

void receiver_destroy(struct receiver *r)
{
	session_destroy(&r->s);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	free(r);
}
