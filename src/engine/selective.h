/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective resending, with a peer that understands RANGES (ranges.h): all that is missing is sent again within one
 * round trip, and nothing else. A packet counts as lost when one that was sent some time after it has arrived, or when
 * a probe was answered: the idea of RACK (RFC 8985). That time grows when the peer gets packets twice: then the network
 * reorders more than we thought (late.h).
 *
 * With other peers, and where memory is short, recovery is that of recovery.h.
 */
#ifndef ROCI_ENGINE_SELECTIVE_H
#define ROCI_ENGINE_SELECTIVE_H

#include "engine/engine.h"
#include "engine/late.h"
#include "engine/ranges.h"
#include "engine/scoreboard.h"
#include "engine/timer.h"

struct roci_selective {
	bool agreed;     /* the peer has sent RANGES */
	bool offer_due;  /* an OFFER is to be sent */
	uint8_t offers;  /* OFFERs that were sent, without those that only ask */
	uint8_t asks;    /* OFFERs that were sent and only ask */
	bool asks_now;   /* offer_due: the OFFER only asks */
	bool probes_now; /* offer_due: it has zeros behind it, and asks for longer packets (plpmtu.h) */
	uint16_t reads;  /* READ requests that the peer remembers, see far_read.h */
	struct roci_scoreboard board;
	uint8_t payload[ROCI_OFFER_BYTES];
	uint64_t offer_at;   /* when the last one was sent that may still be answered; 0: none */
	uint32_t room;       /* packets that the peer keeps beyond the first that it misses */
	uint16_t duplicates; /* that the peer has counted */
	struct roci_late late;
	uint32_t probe_end; /* 1 beyond the newest packet that was sent before the last probe */
};

/* The requester has sent something, on a path that may be far. Offers RANGES to the peer of a far path, now and then
 * until it answers. Offers it again with the first READs, if the peer has not said yet how many it remembers. */
void roci_selective_sent(struct roci_qp *qp);
/* Asks the peer whether it is a Rocinante, a few times at most; path->ours says so then. */
void roci_selective_ask(struct roci_qp *qp);
/* A request of `bytes` begins, whose packets carry them. If it belongs to a bulk transfer, and longer packets may pass,
 * asks the peer whether they do, now and then. */
void roci_selective_probe(struct roci_qp *qp, uint64_t bytes);
/* Adds the OFFER, which is due, to *batch. True where there is no room for it. */
bool roci_selective_offer(struct roci_qp *qp, struct roci_tx_batch *batch);
/* A RANGES packet came. */
void roci_selective_rx(struct roci_qp *qp, const struct roci_rx *rx);
/* The peer has agreed: adds packets that were lost to *batch, up to `end` packets in all. True where more are waiting:
 * nothing new may be sent before them. */
bool roci_selective_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end);
/* The peer has refused the oldest packet with an RNR NAK. True where it keeps what came behind it, so that only this
 * one is sent again, after the wait. */
bool roci_selective_refused(struct roci_qp *qp);
/* Silence, and no answer to probes: all that the peer did not name counts as lost. */
void roci_selective_lose_all(struct roci_qp *qp);
/* qp->loss_timer: packets that may have been late were not. */
void roci_selective_expire(struct roci_timer *timer);

#endif
