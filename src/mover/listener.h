/* SPDX-License-Identifier: BSD-2-Clause */
/* What mover_recv() keeps: the listening connection, the sessions and the ticket. */
#ifndef ROCI_MOVER_LISTENER_H
#define ROCI_MOVER_LISTENER_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "mover/admission.h"
#include "mover/events.h"
#include "mover/proto.h"
#include "mover/secure.h"

/* Sessions at a time: those let in, those in the handshake, and as many that make room for others. */
#define LISTENER_MAX_SESSIONS(let_in) ((let_in) + 4 * ADMISSION_MAX)

struct mover_tree;
struct proto_request;
struct receiver;

struct listener {
	const struct mover_recv_options *options;
	struct events events;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct mover_tree *tree;
	int over_fd; /* an eventfd: a session has ended */
	unsigned session_count, sessions_so_far;

	pthread_mutex_t lock;      /* guards what follows, and the registrations */
	struct receiver *sessions; /* the newest first */
	unsigned free_fds;
	uint64_t refused_at;    /* when a warning last said that a connection was refused */
	unsigned refused_count; /* connections since then */
	bool ticket_valid;
	struct mover_ticket ticket;
	char identity[17];      /* of the ticket */
	bool ended;             /* with `once`: the one transfer is over */
	uint64_t wait_until_ns; /* with `once`: the session broke, and its sender may connect again so long; 0: it has
				   not */
	uint8_t transfer[PROTO_TRANSFER_BYTES]; /* ... to continue this one */
	enum mover_status status;
	char text[256];
};

/* A request for a data connection. It may come before the handshake has ended, so the session looks at the token. */
struct arrival {
	struct rdma_cm_id *id; /* NULL: none */
	uint64_t at;           /* ns */
	uint8_t token[SECURE_TOKEN_BYTES];
};

/* What the listener keeps of a session. */
struct registration {
	struct listener *listener;
	pthread_t thread;
	int wake_fd;            /* an eventfd: there is something new for the session */
	atomic_bool superseded; /* the session has to end: another takes its place */
	uint64_t id;            /* random: of what the session makes */
	uint64_t number;        /* the sender's: data connections have it, too */
	uint64_t asked_ns;      /* with `once`: since when it waits for the first session with this ticket */
	struct admission_place place;

	/* guarded by the listener's lock */
	struct receiver *next;
	char identity[17];                      /* of the ticket that was proved; empty: none yet */
	uint8_t transfer[PROTO_TRANSFER_BYTES]; /* of its terms */
	bool trusted;                           /* let in */
	bool over;
	unsigned fds;                           /* reserved */
	struct arrival arrivals[MOVER_MAX_QPS]; /* by index */
};

/* listener_sessions.c: the list of sessions. From the listener's thread: */
/* A connect request for a control connection: starts a session, or rejects it. */
void listener_start_session(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request);
/* A connect request for a data connection: hands it to its session, or rejects it. */
void listener_data_request(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request);
/* Frees sessions that are over. */
void listener_reap_sessions(struct listener *l);
/* Makes all sessions end, and waits for them. */
void listener_end_sessions(struct listener *l);

/* From a session's thread: */
/* Reserves file descriptors for that many entries under way, until the session is over. Returns for how many
 * (fd_limit_share()). */
uint16_t listener_reserve_fds(struct receiver *r, uint16_t entries);
/* The request for the data connection with that index, once. False: none has come that is as old as that. */
bool listener_take_arrival(struct receiver *r, unsigned index, uint64_t least_ns, struct arrival *arrival);
/* The last call of a session's thread. */
void listener_session_over(struct receiver *r);

/* listener_trust.c: tickets, and who is let in. */
void listener_set_ticket(struct listener *l, const struct mover_ticket *ticket);
/* Whether a connect request for a control connection proves the ticket (mover_secure_proof()). */
bool listener_knows(struct listener *l, const struct proto_request *request);
/* Makes the session's side of the handshake: with the ticket if the request has proved it, else open. False after
 * session_fail(). */
bool listener_secure(struct receiver *r);
/* The peer has proved a ticket. */
void listener_proved(struct receiver *r);
/* ... and has proposed its terms: may the session go on? False after session_fail(). */
bool listener_admit(struct receiver *r);
/* With the lock, and with `once`: a session that was let in is over. Ends the listener, or makes it wait for the sender
 * to connect again. Returns for how long: 0 if it does not wait. */
uint64_t listener_once_over(struct receiver *r);
/* Ends the listener if it has waited long enough. Returns whether it has ended. */
bool listener_has_ended(struct listener *l);
/* At a session's end: its ticket may be used up, and then the next one is handed out. */
void listener_use_up_ticket(struct receiver *r);
unsigned listener_max_sessions(const struct listener *l);

#endif
