/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include <openssl/crypto.h>

#include "mover/clock.h"
#include "mover/receiver.h"
#include "mover/stop.h"

#define DEFAULT_SESSIONS 16
#define SUPERSEDE_MS     15000
#define NOTICE_MS        5000        /* more than --timeout, for a session whose sender is gone to end */
#define ALIVE_NS         1000000000u /* what comes so much later was not on its way when somebody else asked */

void listener_set_ticket(struct listener *l, const struct mover_ticket *ticket)
{
	l->ticket = *ticket;
	mover_secure_identity(ticket->secret, l->identity);
	l->ticket_valid = true;
}

bool listener_knows(struct listener *l, const struct proto_request *request)
{
	uint8_t secret[MOVER_SECRET_BYTES], proof[SECURE_TOKEN_BYTES];
	bool valid;

	pthread_mutex_lock(&l->lock);
	valid = l->ticket_valid;
	memcpy(secret, l->ticket.secret, sizeof(secret));
	pthread_mutex_unlock(&l->lock);
	valid = valid && mover_secure_proof(secret, request->session, proof) == 0 &&
		CRYPTO_memcmp(proof, request->token, sizeof(proof)) == 0;
	OPENSSL_cleanse(secret, sizeof(secret));
	return valid;
}

bool listener_secure(struct receiver *r)
{
	struct listener *l = r->reg.listener;
	bool proved = r->reg.place.proved, valid;
	uint8_t secret[MOVER_SECRET_BYTES];

	pthread_mutex_lock(&l->lock);
	valid = l->ticket_valid;
	memcpy(secret, l->ticket.secret, sizeof(secret));
	pthread_mutex_unlock(&l->lock);
	if (proved && !valid) { /* since it was proved */
		connection_reject(r->s.control.conn.id, PROTO_REJECT_TICKET);
		session_fail(&r->s, MOVER_NO_TRUST, "the ticket has been used");
		return false;
	}
	r->s.control.secure = mover_secure_receiver(proved ? secret : NULL);
	OPENSSL_cleanse(secret, sizeof(secret));
	if (r->s.control.secure)
		mover_secure_way(r->s.control.secure, &r->s.way);
	else
		session_fail_memory(&r->s);
	return r->s.control.secure != NULL;
}

/* With the lock: another session that has been let in and is not over. `identity`: with this ticket; NULL: with any. */
static struct receiver *trusted_other(struct receiver *r, const char *identity)
{
	for (struct receiver *o = r->reg.listener->sessions; o; o = o->reg.next)
		if (o != r && o->reg.trusted && !o->reg.over && (!identity || strcmp(o->reg.identity, identity) == 0))
			return o;
	return NULL;
}

unsigned listener_max_sessions(const struct listener *l)
{
	return l->options->max_sessions ? l->options->max_sessions : DEFAULT_SESSIONS;
}

/* With the lock: how many have been let in. */
static unsigned trusted_sessions(const struct listener *l)
{
	unsigned count = 0;

	for (const struct receiver *r = l->sessions; r; r = r->reg.next)
		count += r->reg.trusted && !r->reg.over;
	return count;
}

void listener_proved(struct receiver *r)
{
	pthread_mutex_lock(&r->reg.listener->lock);
	snprintf(r->reg.identity, sizeof(r->reg.identity), "%s", mover_secure_ticket_identity(r->s.control.secure));
	pthread_mutex_unlock(&r->reg.listener->lock);
}

static bool is_one_time(const struct receiver *r)
{
	return !mover_secure_is_open(r->s.control.secure) && !r->reg.listener->options->keep_ticket;
}

/* The number of a transfer is its sender's secret: only that sender can continue it. Zeros belong to none. */
static bool same_transfer(const uint8_t a[PROTO_TRANSFER_BYTES], const uint8_t b[PROTO_TRANSFER_BYTES])
{
	static const uint8_t none[PROTO_TRANSFER_BYTES];

	return memcmp(a, none, PROTO_TRANSFER_BYTES) != 0 && CRYPTO_memcmp(a, b, PROTO_TRANSFER_BYTES) == 0;
}

/* With the lock: the session that this one continues. Its sender was cut off, and has now connected again; or, as the
 * one-time ticket shows, it was killed and started again. With `once`, the latter has to wait until the former session
 * has noticed: otherwise a second sender would end the first one's transfer. */
static struct receiver *former_session(struct receiver *r)
{
	const struct listener *l = r->reg.listener;
	bool by_ticket = is_one_time(r) && !l->options->once;

	for (struct receiver *o = l->sessions; o; o = o->reg.next) {
		if (o == r || !o->reg.trusted || o->reg.over)
			continue;
		if (same_transfer(r->reg.transfer, o->reg.transfer) ||
		    (by_ticket && strcmp(o->reg.identity, r->reg.identity) == 0))
			return o;
	}
	return NULL;
}

/* The former session has to end first, so that this one can resume what it has. */
static bool former_gone(struct session *s)
{
	struct receiver *r = (struct receiver *)s, *former;

	pthread_mutex_lock(&r->reg.listener->lock);
	former = former_session(r);
	if (former && !atomic_exchange(&former->reg.superseded, true))
		eventfd_write(former->reg.wake_fd, 1);
	pthread_mutex_unlock(&r->reg.listener->lock);
	return !former;
}

/* With `once`, the first session with this ticket is over, or its sender is alive: something has come from it since
 * this session asks. A sender is never silent for long: it sends a PING every two seconds. */
static bool first_judged(struct session *s)
{
	struct receiver *r = (struct receiver *)s, *first;
	bool judged;

	pthread_mutex_lock(&r->reg.listener->lock);
	first = trusted_other(r, r->reg.identity);
	judged = !first || atomic_load(&first->s.received_ns) > r->reg.asked_ns + ALIVE_NS;
	pthread_mutex_unlock(&r->reg.listener->lock);
	return judged;
}

/* With `once`, this may be the sender of the first session, killed and started again: it waits until that is known, and
 * takes the place of a session that has broken. False after session_fail(). */
static bool await_first(struct receiver *r)
{
	if (!r->reg.listener->options->once || !is_one_time(r))
		return true;
	r->reg.asked_ns = mover_now_ns();
	return session_wait(&r->s, first_judged, r->s.stall_timeout_ms + NOTICE_MS) != SESSION_FAILED;
}

/* With the lock, and with `once`: whether the one transfer has begun, and this session does not continue it. */
static bool is_second(struct receiver *r)
{
	const struct listener *l = r->reg.listener;

	return l->ended || trusted_other(r, NULL) ||
	       (l->wait_until_ns && !is_one_time(r) && !same_transfer(r->reg.transfer, l->transfer));
}

/* With the lock: OK if the session may go on; else why not, though a ticket was proved. */
static enum mover_status refusal(struct receiver *r, const char **why)
{
	struct listener *l = r->reg.listener;

	if (l->options->once && is_second(r)) {
		*why = is_one_time(r) && trusted_other(r, r->reg.identity)
			       ? "this receiver takes one transfer, and another sender with this ticket is "
				 "at it; start another `roci recv`"
			       : "this receiver takes one transfer, and has begun it; start another `roci recv`";
		return MOVER_NO_CONNECT;
	}
	if (is_one_time(r) && trusted_other(r, r->reg.identity)) {
		*why = "another transfer with this ticket has begun just now";
		return MOVER_LOST;
	}
	if (is_one_time(r) && (!l->ticket_valid || strcmp(l->identity, r->reg.identity) != 0)) {
		*why = "the ticket has been used";
		return MOVER_NO_TRUST;
	}
	if (trusted_sessions(l) >= listener_max_sessions(l)) {
		*why = "it has as many sessions as --max-sessions allows; try later";
		return MOVER_NO_CONNECT;
	}
	return MOVER_OK;
}

bool listener_admit(struct receiver *r)
{
	struct listener *l = r->reg.listener;
	const char *why = NULL;
	enum mover_status status;

	pthread_mutex_lock(&l->lock);
	memcpy(r->reg.transfer, r->s.terms.transfer, sizeof(r->reg.transfer));
	pthread_mutex_unlock(&l->lock);
	if (!session_run(&r->s, former_gone, SUPERSEDE_MS, "ending the former connection of this transfer") ||
	    !await_first(r))
		return false;
	pthread_mutex_lock(&l->lock);
	status = refusal(r, &why);
	r->reg.trusted = status == MOVER_OK;
	if (r->reg.trusted)
		l->wait_until_ns = 0;
	pthread_mutex_unlock(&l->lock);
	if (why)
		session_fail(&r->s, status, "%s", why);
	return status == MOVER_OK;
}

/* Whether a session ended in a way that lets its sender connect again: it broke, or its sender may not know that it has
 * ended. What went to standard output cannot be continued. */
static bool may_be_continued(const struct receiver *r)
{
	const struct mover_recv_options *o = r->reg.listener->options;

	if (!o->common.retry_ms || o->to_stdout || mover_stopped())
		return false;
	return r->s.status == MOVER_LOST || atomic_load(&r->reg.superseded) || (r->end.sent && !end_is_known(r));
}

uint64_t listener_once_over(struct receiver *r)
{
	struct listener *l = r->reg.listener;
	uint64_t wait_ns = l->options->common.retry_ms * 1000000;

	l->status = r->s.status;
	l->ended = !may_be_continued(r);
	if (l->ended)
		return 0;
	l->wait_until_ns = mover_now_ns() + wait_ns;
	memcpy(l->transfer, r->reg.transfer, sizeof(l->transfer));
	return wait_ns;
}

bool listener_has_ended(struct listener *l)
{
	bool ended, waited;

	pthread_mutex_lock(&l->lock);
	waited = l->wait_until_ns && mover_now_ns() > l->wait_until_ns;
	l->ended |= waited;
	ended = l->ended;
	pthread_mutex_unlock(&l->lock);
	if (waited)
		events_emit(&l->events, &(struct mover_event){
						.type = MOVER_WARNING,
						.text = "the sender did not connect again in time",
					});
	return ended;
}

/* A ticket is used up when the transfer has ended, whatever the outcomes of its entries, and the sender knows it. If
 * the transfer broke, if only as the sender sees it, or is not safe on the disk, it may be resumed with the same
 * ticket. */
void listener_use_up_ticket(struct receiver *r)
{
	struct listener *l = r->reg.listener;
	struct mover_ticket next = {0};
	bool any;

	if (mover_secure_is_open(r->s.control.secure) || l->options->keep_ticket || r->s.terms.dry_run ||
	    !r->end.sent || *r->end.text || !(r->end.bye_came || session_peer_finished(&r->s)))
		return;
	pthread_mutex_lock(&l->lock);
	l->ticket_valid = false;
	mover_ticket_forget(&l->ticket);
	pthread_mutex_unlock(&l->lock);
	if (!l->options->next_ticket || l->options->once)
		return;
	pthread_mutex_lock(&l->events.lock);
	any = l->options->next_ticket(l->events.context, &next);
	pthread_mutex_unlock(&l->events.lock);
	if (!any)
		return;
	pthread_mutex_lock(&l->lock);
	listener_set_ticket(l, &next);
	pthread_mutex_unlock(&l->lock);
	mover_ticket_forget(&next);
}
