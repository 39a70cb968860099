/* SPDX-License-Identifier: BSD-2-Clause */
/* What listener.c, which listens and starts sessions, and listener_trust.c, which lets them in, share. */
#ifndef ROCI_MOVER_LISTENER_H
#define ROCI_MOVER_LISTENER_H

#include "mover/receiver.h"

struct listener {
	const struct mover_recv_options *options;
	struct teller teller;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct mover_tree *tree;
	int over_fd; /* a session has ended */

	pthread_mutex_t lock;
	struct receiver *sessions;
	unsigned session_count, sessions_so_far;
	unsigned free_descriptors;
	bool ticket_valid;
	struct mover_ticket ticket;
	char identity[17]; /* of the ticket */
	bool ended;        /* with `once`: the one session is over */
	enum mover_status status;
	char text[256];
};

/* listener_trust.c: tickets, and who is let in with them */
void listener_set_ticket(struct listener *l, const struct mover_ticket *ticket);
/* After a session, before it counts as over: its ticket may be good no more, and the next one is handed out. */
void listener_use_up(struct listener *l, struct receiver *r);
unsigned listener_most_sessions(const struct listener *l);

#endif
