/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets, and who is let in with them: a session asks when its sender has proved one. */
#include <stdio.h>
#include <sys/eventfd.h>

#include "mover/listener.h"

#define DEFAULT_SESSIONS 16
#define SUPERSEDE_MS     15000

void listener_set_ticket(struct listener *l, const struct mover_ticket *ticket)
{
	l->ticket = *ticket;
	mover_secure_identity(ticket->secret, l->identity);
	l->ticket_valid = true;
}

bool listener_lookup(void *context, const char *identity, uint8_t secret[MOVER_SECRET_BYTES])
{
	struct listener *l = context;
	bool known = false;

	pthread_mutex_lock(&l->lock);
	if (strcmp(identity, "open") == 0) {
		known = l->options->open;
		memset(secret, 0, MOVER_SECRET_BYTES);
	} else if (l->ticket_valid && strcmp(identity, l->identity) == 0) {
		known = true;
		memcpy(secret, l->ticket.secret, MOVER_SECRET_BYTES);
	}
	pthread_mutex_unlock(&l->lock);
	return known;
}

/* With the lock: another session that has been let in and is not over; of any ticket, or of that one. */
static struct receiver *trusted_other(struct receiver *r, const char *identity)
{
	for (struct receiver *o = r->listener->sessions; o; o = o->next)
		if (o != r && o->trusted && !o->over && (!identity || strcmp(o->identity, identity) == 0))
			return o;
	return NULL;
}

unsigned listener_most_sessions(const struct listener *l)
{
	return l->options->max_sessions ? l->options->max_sessions : DEFAULT_SESSIONS;
}

/* With the lock: how many have been let in. */
static unsigned trusted_sessions(const struct listener *l)
{
	unsigned count = 0;

	for (const struct receiver *r = l->sessions; r; r = r->next)
		count += r->trusted && !r->over;
	return count;
}

/* If a session with the same one-time ticket is still there, its sender was killed or cut off and comes again: the old
 * one ends first, so that what it has can be resumed. */
static bool holder_gone(struct session *s)
{
	struct receiver *r = (struct receiver *)s, *holder;

	pthread_mutex_lock(&r->listener->lock);
	holder = trusted_other(r, r->identity);
	if (holder && !atomic_exchange(&holder->superseded, true))
		eventfd_write(holder->wake_fd, 1);
	pthread_mutex_unlock(&r->listener->lock);
	return !holder;
}

/* With the lock: why one who has proved a ticket is not let in, and what is told of it. OK: is. */
static enum mover_status refusal(struct receiver *r, bool one_time, const char **why)
{
	struct listener *l = r->listener;

	if (l->options->once && (l->ended || trusted_other(r, NULL))) {
		*why = "this receiver takes one transfer, and has begun it; start another `roci recv`";
		return MOVER_NO_CONNECT;
	}
	if (one_time && trusted_other(r, r->identity)) {
		*why = "another transfer with this ticket has begun just now";
		return MOVER_LOST;
	}
	if (one_time && (!l->ticket_valid || strcmp(l->identity, r->identity) != 0)) {
		*why = "the ticket has been used";
		return MOVER_NO_TRUST;
	}
	if (trusted_sessions(l) >= listener_most_sessions(l)) {
		*why = "it has as many sessions as --max-sessions allows; try later";
		return MOVER_NO_CONNECT;
	}
	return MOVER_OK;
}

/* Whoever comes again takes the place of his own former transfer, except where there is to be but one: its end would be
 * the receiver's. */
bool listener_claim(struct receiver *r)
{
	struct listener *l = r->listener;
	bool one_time = !mover_secure_is_open(r->s.control.secure) && !l->options->keep_ticket;
	const char *why = NULL;
	enum mover_status status;

	pthread_mutex_lock(&l->lock);
	snprintf(r->identity, sizeof(r->identity), "%s", mover_secure_peer_identity(r->s.control.secure));
	pthread_mutex_unlock(&l->lock);
	if (one_time && !l->options->once &&
	    !session_run(&r->s, holder_gone, SUPERSEDE_MS, "ending the transfer before with this ticket"))
		return false;
	pthread_mutex_lock(&l->lock);
	status = refusal(r, one_time, &why);
	r->trusted = status == MOVER_OK;
	pthread_mutex_unlock(&l->lock);
	if (why)
		session_fail(&r->s, status, "%s", why);
	return status == MOVER_OK;
}

/* A ticket is used up when a transfer with it has come to its end, whatever became of the entries, and the sender knows
 * it; one that broke, if only for the sender, or is not safe on the disk may be resumed. */
void listener_use_up(struct listener *l, struct receiver *r)
{
	struct mover_ticket next = {0};

	if (mover_secure_is_open(r->s.control.secure) || l->options->keep_ticket || r->s.terms.dry_run ||
	    !r->end_sent || *r->seal_text || !session_goodbye(&r->s))
		return;
	pthread_mutex_lock(&l->lock);
	l->ticket_valid = false;
	mover_ticket_forget(&l->ticket);
	pthread_mutex_unlock(&l->lock);
	if (!l->options->next_ticket || l->options->once)
		return;
	pthread_mutex_lock(&l->teller.lock);
	l->options->next_ticket(l->teller.context, &next);
	pthread_mutex_unlock(&l->teller.lock);
	pthread_mutex_lock(&l->lock);
	listener_set_ticket(l, &next);
	pthread_mutex_unlock(&l->lock);
	mover_ticket_forget(&next);
}
