/* SPDX-License-Identifier: BSD-2-Clause */
/* The near end's way to the far end: exchanges request and offer, and connects the QPs. */
#ifndef ROCI_TOUR_DIAL_H
#define ROCI_TOUR_DIAL_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "tour/endpoint.h"
#include "tour/hello.h"

/* The far end, and how to reach it. */
struct dial_target {
	const char *host;
	uint16_t port;
	const char *device; /* name of the near device; NULL: any */
};

struct dial {
	/* By rdma_cm. */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	/* By socket. */
	int fd; /* -1: none. It stays open: its end is the end of the session */
	struct tour_port port;

	struct hello_offer offer;
	char address[64];   /* numeric, of the far end */
	const char *device; /* of the near device */
	uint32_t caps;      /* of the near device */
};

/* Connects: calls make() once the device is known, which creates the endpoint. Posts the receives. `request` is what
 * the far end gets; dial() adds what it must. Call dial_end() after a failure, too; d->offer.caps is set if the far end
 * has refused (and d->offer.status says why). 0 or negative, with *f. */
int dial_cm(struct dial *d, const struct dial_target *target, struct endpoint *e, const struct endpoint_wish *wish,
	    struct hello_request *request, struct failure *f);
int dial_socket(struct dial *d, const struct dial_target *target, struct endpoint *e, const struct endpoint_wish *wish,
		struct hello_request *request, struct failure *f);

/* Only makes the TCP connection: d->fd and d->address. For other things than the tour. 0 or negative, with *f. */
int dial_tcp(struct dial *d, const struct dial_target *target, struct failure *f);

/* Whether the far end has gone; waits for that, at most until `deadline_ns` of CLOCK_MONOTONIC or tour_stop(). */
bool dial_lost(struct dial *d, uint64_t deadline_ns);

/* Says to the far end that this was all. The endpoint is destroyed after it and before dial_end(). */
void dial_disconnect(struct dial *d);
void dial_end(struct dial *d);

/* Fills *f with what is wrong with an offer; 0: nothing. For dial_*(). */
int dial_check_offer(const struct dial *d, struct failure *f);

#endif
