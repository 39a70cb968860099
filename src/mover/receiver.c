/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver's session, from the connect request to the end: trust, terms, data connections, content, and the message
 * that all of it is on the disk. */
#include "mover/receiver.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "mover/disk.h"
#include "mover/stop.h"
#include "mover/terms.h"
#include "mover/worker.h"

#define TRUST_TIMEOUT_MS      5000 /* for proving the ticket */
#define LANES_TIMEOUT_MS      10000
#define ARRIVAL_WAIT_NS       1000000000u
#define DISCONNECT_TIMEOUT_MS 3000
#define ACK_TIMEOUT_MS        1000

/* Messages */

static void on_terms(struct session *s, struct cursor_in *payload)
{
	struct receiver *r = (struct receiver *)s;

	if (r->terms_came || proto_get_terms(payload, &s->terms) || s->terms.session) {
		session_fail_protocol(s, "malformed terms");
		return;
	}
	r->terms_came = true;
	s->holding = true; /* the sender does not wait for the answer */
}

static void on_message(struct session *s, enum proto_type type, struct cursor_in *payload)
{
	struct receiver *r = (struct receiver *)s;

	switch (type) {
	case PROTO_OFFER: verdicts_offer(r, payload); break;
	case PROTO_FIN: descriptors_fin(r, payload); break;
	case PROTO_GRANT: descriptors_grant(r, payload); break;
	case PROTO_BYE: end_bye(r); break;
	default: session_fail_protocol(s, "a message that only a receiver may send");
	}
}

static void on_window_done(struct session *s, unsigned window, unsigned lane, uint32_t len)
{
	if (s->terms.mode == MOVER_READ)
		read_done((struct receiver *)s, window);
	else
		windows_received((struct receiver *)s, window, lane, len);
}

static void on_lane_message(struct session *s, unsigned lane, uint64_t seq, uint16_t window)
{
	if (s->lanes.conns[lane].greeted)
		windows_done((struct receiver *)s, lane, seq, window);
	s->lanes.conns[lane].greeted = true;
}

static unsigned poll_fds(struct session *s, struct pollfd *fds)
{
	struct receiver *r = (struct receiver *)s;
	unsigned n = 0;

	fds[n++] = (struct pollfd){.fd = r->reg.wake_fd, .events = POLLIN};
	if (r->store.disk)
		fds[n++] = (struct pollfd){.fd = disk_fd(r->store.disk), .events = POLLIN};
	if (r->store.out)
		fds[n++] = (struct pollfd){.fd = disk_fd(r->store.out), .events = POLLIN};
	if (r->verdicts.worker)
		fds[n++] = (struct pollfd){.fd = worker_fd(r->verdicts.worker), .events = POLLIN};
	if (r->commit_worker)
		fds[n++] = (struct pollfd){.fd = worker_fd(r->commit_worker), .events = POLLIN};
	return n;
}

static void refuse(struct rdma_cm_id *id)
{
	connection_reject(id, PROTO_REJECT_UNKNOWN);
	rdma_destroy_id(id);
}

/* While a former session ends: a connect request cannot wait as long as that may take. The sender makes another when it
 * has the answer to its terms. */
static void refuse_old_arrivals(struct receiver *r)
{
	struct arrival arrival;

	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		if (listener_take_arrival(r, i, ARRIVAL_WAIT_NS, &arrival))
			refuse(arrival.id);
}

static bool pump(struct session *s)
{
	struct receiver *r = (struct receiver *)s;
	eventfd_t count;
	bool any = false;

	eventfd_read(r->reg.wake_fd, &count);
	if (mover_stopped()) /* this also supersedes every session, so check it first */
		session_fail_stopped(s);
	else if (atomic_load(&r->reg.superseded) && *r->reg.identity)
		session_fail(s, MOVER_FAILED, "the sender has connected again");
	else if (atomic_load(&r->reg.superseded))
		session_fail(s, MOVER_NO_CONNECT, "others came before it had proved a ticket");
	if (s->holding)
		refuse_old_arrivals(r);
	if (!s->ready || s->status != MOVER_OK)
		return any;
	any |= verdicts_pump(r);
	any |= store_pump(r);
	any |= descriptors_pump(r);
	any |= windows_pump(r);
	if (s->terms.mode == MOVER_READ)
		any |= read_pump(r);
	if (!r->end.finishing)
		any |= entries_pump(r);
	any |= entries_ack(r, any);
	any |= end_pump(r);
	return any;
}

const struct session_role receiver_role = {on_terms, on_message, on_window_done, on_lane_message, pump, poll_fds};

/* Data connections */

static void accept_lane(struct receiver *r, unsigned lane, struct rdma_cm_id *id)
{
	struct session *s = &r->s;
	struct connection *conn = &s->lanes.conns[lane];
	unsigned receives = s->terms.mode == MOVER_WRITE ? s->pool.count + 1 : 1;
	int err;

	conn->id = id;
	id->context = conn;
	if (id->verbs != s->dev.verbs) {
		session_fail_protocol(s, "a data connection by another device");
		return;
	}
	if (!session_lane_create_qp(s, lane))
		return;
	for (unsigned i = 0; i < receives; i++)
		if (!session_lane_receive(s, lane, i))
			return;
	err = connection_accept(conn, NULL, 0);
	if (err)
		session_fail_errno(s, err, "accepting a data connection");
}

/* The sender may have asked for more lanes than it gets. */
static void take_arrival(struct receiver *r, unsigned lane)
{
	struct session *s = &r->s;
	struct arrival arrival;

	if (s->lanes.conns[lane].state != CONNECTION_NONE || !listener_take_arrival(r, lane, 0, &arrival))
		return;
	if (lane < s->lanes.count && CRYPTO_memcmp(arrival.token, r->token, sizeof(r->token)) == 0) {
		accept_lane(r, lane, arrival.id);
		return;
	}
	refuse(arrival.id);
}

static void take_arrivals(struct receiver *r)
{
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		take_arrival(r, i);
}

static bool lanes_greeted(struct session *s)
{
	struct receiver *r = (struct receiver *)s;
	bool all = true;

	take_arrivals(r);
	for (unsigned i = 0; i < s->lanes.count; i++)
		all &= s->lanes.conns[i].greeted;
	r->lanes_up = all;
	return all;
}

/* The story */

static bool control_up(struct session *s)
{
	return s->control.conn.state == CONNECTION_UP;
}

static bool end_known(struct session *s)
{
	return end_is_known((struct receiver *)s);
}

static bool sender_gone(struct session *s)
{
	return ((struct receiver *)s)->end.bye_came || s->control.conn.state != CONNECTION_UP;
}

static bool ticket_proved(struct session *s)
{
	return s->control.trusted;
}

static bool has_terms(struct session *s)
{
	return ((struct receiver *)s)->terms_came;
}

static bool end_sent(struct session *s)
{
	return ((struct receiver *)s)->end.sent;
}

/* The handshake begins with the answer to the connect request. */
static bool answer(struct receiver *r)
{
	struct session *s = &r->s;
	uint8_t hello[PROTO_ANSWER_BYTES];
	size_t len = sizeof(hello);
	int err;

	if (!listener_secure(r))
		return false;
	err = mover_secure_handshake(s->control.secure, NULL, 0, hello, &len);
	if (err) {
		session_fail_errno(s, err, "beginning the handshake");
		return false;
	}
	err = connection_accept(&s->control.conn, hello, len);
	if (err)
		session_fail_errno(s, err, "accepting");
	return !err;
}

static bool let_in(struct receiver *r)
{
	struct session *s = &r->s;

	if (!session_open_device(s) || !answer(r))
		return false;
	if (!session_run(s, control_up, TRUST_TIMEOUT_MS, "connecting"))
		return false;
	session_step(s, "CONNECT", "QP 0x%x", s->control.conn.id->qp->qp_num);
	if (!session_run(s, ticket_proved, TRUST_TIMEOUT_MS, "proving the ticket"))
		return false;
	listener_proved(r);
	return session_run(s, has_terms, TRUST_TIMEOUT_MS, "agreeing on terms") && listener_admit(r);
}

/* Local access to all windows for the whole session; -1: each use of a window registers it. */
static int local_access(const struct session *s)
{
	if (s->terms.mode == MOVER_WRITE || (s->terms.mode == MOVER_READ && s->dev.iwarp))
		return -1;
	return IBV_ACCESS_LOCAL_WRITE;
}

/* Makes everything that the sender may use as soon as it has the answer to its terms. */
static bool prepare(struct receiver *r)
{
	struct session *s = &r->s;
	int err;

	end_init(r);
	s->totals.entries_total = s->terms.entries;
	s->totals.bytes_total = s->terms.bytes;
	if (!session_open_lanes(s, local_access(s)))
		return false;
	windows_init(r);
	if (entries_init(r) || verdicts_init(r) || descriptors_init(r) || worker_create(&r->commit_worker)) {
		session_fail_memory(s);
		return false;
	}
	if (mover_secure_token(s->control.secure, r->token)) {
		session_fail(s, MOVER_FAILED, "the handshake gave no token");
		return false;
	}
	err = store_init(r);
	if (err) {
		session_fail_errno(s, err, "preparing to write files");
		return false;
	}
	s->ready = true;
	return true;
}

static bool agree_on_terms(struct receiver *r)
{
	struct session *s = &r->s;
	struct proto_terms answer;
	struct cursor_out *out;

	if (s->terms.checksum && !r->reg.listener->options->compare) {
		session_warn(s, "the sender wants to compare contents; without --compare, size and time are compared");
		s->terms.checksum = false;
	}
	terms_limit(&s->terms, s->common, listener_reserve_fds(r, s->terms.max_entries), r->reg.number);
	if (!prepare(r))
		return false;
	out = session_begin(s, PROTO_TERMS);
	if (!out) {
		session_fail_protocol(s, "too many handshake messages");
		return false;
	}
	session_step(s, "TERMS", "mode %s, QPs: %u, chunks of %u bytes", mover_mode_name(s->terms.mode), s->terms.qps,
		     s->terms.chunk_bytes);
	answer = s->terms;
	if (r->reg.listener->options->to_stdout)
		memset(answer.transfer, 0, sizeof(answer.transfer));
	proto_put_terms(out, &answer);
	session_send(s);
	take_arrivals(r); /* before windows are registered, which takes longer */
	session_connected(s);
	session_release_held(s);
	return session_run(s, lanes_greeted, LANES_TIMEOUT_MS, "making the data connections");
}

/* The final status: what became of the entries. The sender knows it; how the connection ended does not matter now. */
static void conclude(struct receiver *r)
{
	struct session *s = &r->s;
	const struct mover_totals *t = &s->totals;

	s->status = MOVER_OK;
	*s->text = 0;
	if (*r->end.text)
		session_fail(s, MOVER_LOCAL_IO, "%s", r->end.text);
	else if (t->entries_failed && t->entries_total == 1)
		session_fail(s, r->entries.status, "the one entry did not arrive");
	else if (t->entries_failed)
		session_fail(s, MOVER_PARTLY, "%llu of %llu entries did not arrive%s",
			     (unsigned long long)t->entries_failed, (unsigned long long)t->entries_total,
			     t->entries_failed < t->entries_total ? "; the others did" : "");
}

static void serve(struct receiver *r)
{
	struct session *s = &r->s;

	if (!let_in(r) || !agree_on_terms(r))
		return;
	if (!session_run(s, end_sent, 0, NULL))
		return;
	s->closing = true;
	session_wait(s, sender_gone, DISCONNECT_TIMEOUT_MS);
	/* its last message, or acknowledgement, may be read after the disconnection: that came on another way, and
	 * others drive the device, too */
	session_wait(s, end_known, ACK_TIMEOUT_MS);
	conclude(r);
}

void *receiver_thread(void *receiver)
{
	struct receiver *r = receiver;

	serve(r);
	atomic_store(&r->ending, true);
	session_close(&r->s);
	/* First the QPs, so that nothing more arrives. Then the writes; then the workers, which may still use files and
	 * the names of folders; then those. */
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		connection_destroy(&r->s.lanes.conns[i]);
	store_destroy(r);
	worker_destroy(r->commit_worker);
	entries_destroy(r);
	verdicts_destroy(r);
	end_destroy(r);
	descriptors_destroy(r);
	session_progress(&r->s, true);
	listener_session_over(r);
	return NULL;
}

void receiver_destroy(struct receiver *r)
{
	session_destroy(&r->s);
	if (r->reg.wake_fd >= 0)
		close(r->reg.wake_fd);
	free(r->s.report.part_file);
	free(r);
}
