/* SPDX-License-Identifier: BSD-2-Clause */
/* One near end, as the far end serves it. */
#ifndef ROCI_TOUR_FAR_SESSION_H
#define ROCI_TOUR_FAR_SESSION_H

#include <rdma/rdma_cma.h>

#include "tour/endpoint.h"
#include "tour/hello.h"

enum session_state {
	SESSION_FREE,
	SESSION_HELLO,      /* by socket: the request is not complete */
	SESSION_CONNECTING, /* by rdma_cm: accepted, not established */
	SESSION_UP,
};

struct session {
	enum session_state state;
	unsigned number;
	enum tour_way way;
	char address[64]; /* of the near end */
	struct rdma_cm_id *id;
	int fd;                /* -1: none */
	struct tour_port port; /* by socket */
	uint8_t hello[HELLO_REQUEST_BYTES];
	size_t hello_len;
	struct hello_request request;
	struct endpoint endpoint;
	struct region window;  /* for RDMA and atomics */
	struct region answers; /* one for each slot */
	struct ibv_mw *mw;     /* of send-inv */
	uint32_t bound_rkey;   /* of the memory window; 0: it is not bound */
	struct answer binding; /* what is answered when it is, from... */
	unsigned binding_slot;
	bool is_binding;
	uint64_t deadline_ns;      /* CLOCK_MONOTONIC: the session ends */
	uint64_t messages;         /* operations that it has answered, without controls */
	uint64_t woken_ns;         /* CLOCK_REALTIME */
	uint64_t times[FAR_TIMES]; /* of the last operation that this program saw */
	off_t mark;                /* of the record: what it had before that operation */
	const char *ended;         /* why it shall end; NULL: it shall not */
	struct failure failure;    /* of a call */
};

/* Makes the objects and fills the offer. session_offer()'s status says whether that worked. For the socket way, takes
 * the QP to RTS, too. */
void far_session_open(struct session *s, struct ibv_context *verbs, uint32_t caps, bool embedded,
		      struct hello_offer *offer);
/* An offer that says no. */
void far_session_refusal(enum hello_status status, uint32_t caps, const char *device, struct hello_offer *offer);
/* Takes what has completed. */
void far_session_completions(struct session *s);
/* Ends everything and makes it SESSION_FREE. */
void far_session_close(struct session *s);

#endif
