/* SPDX-License-Identifier: BSD-2-Clause */
/* A client and a server of rdma_cm in one process, for `roci explain --provoke`. */
#ifndef ROCI_PROVOKE_ENDS_H
#define ROCI_PROVOKE_ENDS_H

#include <netinet/in.h>
#include <stdbool.h>

#include <rdma/rdma_cma.h>

/* The two ends: one channel each. The listener's backlog is 1. */
struct ends {
	struct rdma_event_channel *client_events, *server_events;
	struct rdma_cm_id *client, *listener, *server;
	struct sockaddr_in address; /* where the client connects to; after ends_open(), the listener's */
};

/* Opens both channels, listens at 127.0.0.1, and makes the client's id. False: a call failed. */
bool ends_open(struct ends *ends);

/* Only the client's channel and id: ends->address stays as it is. */
bool ends_open_client(struct ends *ends);

/* Ends all that is there. */
void ends_close(struct ends *ends);

/* Waits for the next event of a channel, and tells it. Returns its type, or -1 where none came; *status and *id (may be
 * NULL) are the event's. */
int ends_next(const char *who, struct rdma_event_channel *channel, int *status, struct rdma_cm_id **id);

/* The same. True if it is an event of this type. */
bool ends_expect(const char *who, struct rdma_event_channel *channel, int type, struct rdma_cm_id **id);

/* Waits for CONNECT_REQUEST: ends->server is its id then. */
bool ends_requested(struct ends *ends);

/* The client resolves ends->address and its route. */
bool ends_resolve(struct ends *ends);

/* The client makes a queue pair, and asks for a connection. Returns what rdma_connect() does, -1 for an earlier call.
 */
int ends_connect(struct ends *ends);

/* The server makes a queue pair, and accepts. */
bool ends_accept(struct ends *ends);

/* Connects both ends. True: both have got ESTABLISHED. */
bool ends_establish(struct ends *ends);

#endif
