/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of cm_api share: ids and events at one address, and two ends in one process. */
#ifndef ROCI_TESTS_CM_API_H
#define ROCI_TESTS_CM_API_H

#include <rdma/rdma_cma.h>

#define RESOLVE_MS 2000
#define PORT       7471

extern unsigned failures;
extern struct sockaddr *const address; /* the argument; set_port() sets its port */

void set_port(unsigned port);
/* A group of the family of `address`. */
struct sockaddr *a_group(void);

struct rdma_event_channel *new_channel(void);
struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space);
/* The next event, which must be of this type. The caller acknowledges it. */
struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, and acknowledges it. */
void pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

struct sides {
	struct rdma_event_channel *client_channel, *server_channel;
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *request; /* not acknowledged yet */
};

/* Makes a listener, and a client whose route is resolved. */
void begin(struct sides *s);
void take_request(struct sides *s);
void end(struct sides *s);

/* cm_api_process.c */
void forked(void);
void interrupted(void);
void cancelled(void);

#endif
