/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READs over a far path, between two Rocinantes. Who asks for data decides how fast it comes: READ requests are paced,
 * and what they ask for is bounded, by a model of the path that the responses take (path.h, inbound). So the responder
 * needs neither a model nor an acknowledgement of what it sends. A response that is missing is asked for again by
 * itself, by a READ request for just that part (IBTA 9.7.5.2.1 has it for the tail of a READ), in the time of one round
 * trip: when one that was asked for a while later has come (RACK, RFC 8985), or when the peer says that it has sent it.
 * Responses that come early are placed at once, since nobody may look at the memory of a READ before it completes (IBTA
 * 10.7.3).
 *
 * It begins when the peer has said how many READ requests it remembers (ranges.h), which are more than max_rd_atomic.
 * READs that are under way then go on like this: go-back-N would send their responses again in bursts. A READ request
 * that is lost itself is sent again as selective.h has it, and later ones are copied (read_copies.h). Other peers'
 * READs are as the standard has it.
 */
#ifndef ROCI_ENGINE_FAR_READ_H
#define ROCI_ENGINE_FAR_READ_H

#include "engine/late.h"
#include "engine/list.h"
#include "engine/read_copies.h"
#include "engine/scoreboard.h"
#include "engine/sent_log.h"
#include "engine/sq.h"
#include "engine/timer.h"

#define ROCI_FAR_READ_SPAN (UINT32_C(1) << 19) /* packets that may be outstanding, whatever the path holds */

/* qp->req.far_read, owned; NULL: it is off. */
struct roci_far_read {
	struct roci_qp *qp;
	struct roci_path *path;   /* inbound; a reference */
	struct roci_list blocked; /* in path->blocked */
	uint64_t flight;          /* bytes that are counted on the path */
	uint32_t asked;           /* packets that were asked for, and are not before una */
	uint32_t requests;        /* READ requests of which some are */
	uint32_t fresh;           /* packets that have come since the path was told */
	struct roci_late late;
	struct roci_scoreboard board;
	struct roci_sent_log log;
	struct roci_read_copies copies;
	struct roci_timer timer; /* packets that may have been late were not */
};

/* The peer remembers `reads` READ requests, 0: it did not say. Begins where the path is far. */
void roci_far_read_agree(struct roci_qp *qp, uint16_t reads);
/* What was asked for is forgotten, where it is on: everything is asked for again. */
void roci_far_read_restart(struct roci_qp *qp);
/* Likewise, and nothing is asked for any more. */
void roci_far_read_stop(struct roci_qp *qp);
/* Off, as in a new QP. */
void roci_far_read_end(struct roci_qp *qp);

/* Packets that are outstanding like this. `f`: NULL where it is off. */
static inline uint32_t roci_far_read_packets(const struct roci_far_read *f)
{
	return f ? f->asked : 0;
}
/* Whether the packet `index` of *w is asked for like this. */
static inline bool roci_far_read_is(const struct roci_swqe *w, uint32_t index)
{
	return w->opcode == ROCI_WR_RDMA_READ && index >= w->read.far_from;
}
/* Packets for a READ request: those of a burst, see pace.h. A power of two. */
uint16_t roci_far_read_piece(const struct roci_qp *qp);
/* Whether `packets` more may be asked for now. If not, the QP is made ready when they may. */
bool roci_far_read_may_ask(struct roci_qp *qp, uint32_t packets);
/* The packets from `psn` on were asked for; again: not for the first time. */
void roci_far_read_asked(struct roci_qp *qp, uint32_t psn, uint32_t packets, bool again);
/* A READ request was lost, which asked for the packets from `psn` on; it will be sent again. */
void roci_far_read_request_lost(struct roci_qp *qp, uint32_t psn);
/* Asks again for what was lost, until *batch has `end` packets. */
void roci_far_read_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end);

enum roci_far_response {
	ROCI_FAR_RESPONSE_NONE,  /* none: it is to be handled as the standard has it */
	ROCI_FAR_RESPONSE_DROP,  /* it has come before, or nobody can be believed to have sent it */
	ROCI_FAR_RESPONSE_NEXT,  /* its PSN is una */
	ROCI_FAR_RESPONSE_EARLY, /* others are missing before it */
};
/* What the outstanding READ response *rx is. If it is not dropped, *w is its request. */
enum roci_far_response roci_far_read_judge(struct roci_qp *qp, const struct roci_rx *rx, struct roci_swqe **w);
/* The response `psn` was placed, packet `index` of *w. early: as above. */
void roci_far_read_came(struct roci_qp *qp, const struct roci_swqe *w, uint32_t psn, uint32_t index, bool early);
/* Packets of *w from `index` on that have come. */
uint32_t roci_far_read_run(struct roci_qp *qp, const struct roci_swqe *w, uint32_t index);
/* una moves from packet `from` of *w to packet `to`. */
void roci_far_read_advance(struct roci_qp *qp, const struct roci_swqe *w, uint32_t from, uint32_t to);
/* A READ response came twice: it was late, not lost. */
void roci_far_read_late(struct roci_qp *qp);
/* The peer has executed everything before the window's `acked`: what it has answered and did not come is lost, or late.
 * all: it is lost. False where una does not wait for such a response. */
bool roci_far_read_missing(struct roci_qp *qp, bool all);

#endif
