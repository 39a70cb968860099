/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of READ requests over a far path (far_read.h). The responder executes requests in order, so one that is lost
 * holds up all behind it for a round trip or more, while the line is idle. Once one was lost, each goes again with
 * those that follow it: with the next three where they ask for so much that the copies take two percent of it at most,
 * else with the next one. So three requests in a row have to be lost as well before anything is held up.
 *
 * A copy has the Solicited Event bit, which means nothing in a READ request (IBTA 9.2.3). The responder ignores a copy
 * of what it has executed: nothing is answered twice because of it.
 */
#ifndef ROCI_ENGINE_READ_COPIES_H
#define ROCI_ENGINE_READ_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"

#define ROCI_READ_COPIES      3
#define ROCI_READ_COPIES_FROM 16  /* packets that a request asks for, to be copied so often */
#define ROCI_READ_COPIES_TWO  4   /* likewise twice, where one copy is not enough */
#define ROCI_READ_COPIES_LIFE 256 /* round trips without a lost request */

struct roci_read_copies {
	uint64_t until;                  /* ns: requests are lost lately */
	uint32_t psns[ROCI_READ_COPIES]; /* of the last requests, the newest first */
	unsigned count;                  /* of these */
	uint32_t begin;                  /* requests from this PSN on were copied */
	bool more;                       /* one of these was lost, too */
};

/* The request for the packets from `psn` on was lost. A round trip takes `rtt_ns`. */
static inline void roci_read_copies_lost(struct roci_read_copies *c, uint32_t psn, uint64_t now, uint64_t rtt_ns)
{
	bool copied = now < c->until;

	if (!copied)
		c->begin = c->psns[0];
	c->more = copied && (c->more || roci_psn_diff(psn, c->begin) >= 0);
	c->until = now + ROCI_READ_COPIES_LIFE * rtt_ns;
}
/* A request for the packets from `psn` on was sent. */
static inline void roci_read_copies_asked(struct roci_read_copies *c, uint32_t psn)
{
	for (unsigned i = ROCI_READ_COPIES; --i;)
		c->psns[i] = c->psns[i - 1];
	c->psns[0] = psn;
	c->count += c->count < ROCI_READ_COPIES;
}
/* How many of psns go again together with a request for `packets`. */
static inline unsigned roci_read_copies_due(const struct roci_read_copies *c, uint64_t now, uint32_t packets)
{
	unsigned most = c->more && packets >= ROCI_READ_COPIES_TWO ? 2 : 1;

	if (packets >= ROCI_READ_COPIES_FROM)
		most = ROCI_READ_COPIES;
	if (now >= c->until)
		return 0;
	return c->count < most ? c->count : most;
}

struct roci_qp;
struct roci_tx_batch;
/* Before a READ request for `packets` is added to *batch: adds the copies that are due, and leaves room for it. */
void roci_read_copies_fill(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t packets);

#endif
