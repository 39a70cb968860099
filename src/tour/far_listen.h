/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end's state, and how near ends come in. */
#ifndef ROCI_TOUR_FAR_LISTEN_H
#define ROCI_TOUR_FAR_LISTEN_H

#include "tour/far.h"
#include "tour/far_session.h"

struct far {
	struct far_options options;
	uint16_t port;
	char lacks[200];
	struct rdma_event_channel *channel; /* NULL: there is no rdma_cm */
	struct rdma_cm_id *listeners[TOUR_QPS];
	int tcp, end_fd;
	unsigned clients; /* so far */
	struct session sessions[FAR_CLIENTS];
};

int far_listen(struct far *far, struct failure *f);
void far_stop_listening(struct far *far);
void far_take_cm_events(struct far *far);
void far_accept(struct far *far);
/* Reads a session's socket: its request, and its end. */
void far_read_socket(struct far *far, struct session *s);

/* A free session, or NULL: there are as many as can be. */
struct session *far_new_session(struct far *far, enum tour_way way);
void far_end_session(struct far *far, struct session *s);
void far_report(struct far *far, const struct session *s, enum far_event_type type, const char *text);

#endif
