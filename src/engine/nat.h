/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP whose packets cross a NAT (docs/ARCHITECTURE.md, wire/nat.h). One end is `hidden`: the NAT replaces its address
 * and UDP port, and forgets them when nothing is sent for a while. The other end is open: it answers to where the
 * hidden one's packets came from. ICRCs cover the addresses that the hidden end sees.
 *
 * The hidden end says HELLO every ROCI_NAT_HELLO_NS while it hears nothing, which keeps the NAT from forgetting (RFC
 * 4787: after two minutes; many do after 30 seconds), and at once when an answer is missed. The open end follows a
 * HELLO from another place when it has the token, which only the two ends know, and the cookie of that place. One with
 * the token and no good cookie gets a CHALLENGE, which brings the cookie. Anything else is dropped: a packet from an
 * unproven place never moves a QP.
 */
#ifndef ROCI_ENGINE_NAT_H
#define ROCI_ENGINE_NAT_H

#include "engine/engine.h"
#include "engine/timer.h"
#include "wire/nat.h"

#define ROCI_NAT_HELLO_NS  UINT64_C(3000000000) /* below the time that the retries of most QPs take, see expire() */
#define ROCI_NAT_QUIET_NS  UINT64_C(1000000000)
#define ROCI_NAT_SILENT_NS UINT64_C(50000000) /* between two HELLOs when answers are missed */

struct roci_nat {
	struct roci_qp *qp;
	struct roci_nat_terms terms;
	struct roci_flow in;     /* the flow of the peer's packets, as the peer sends them */
	struct roci_nat_way out; /* the way of our packets. `in` and `out`: open end only */
	/* Only of the hidden end. */
	struct roci_timer timer;
	uint64_t hello_at; /* when the last one was due */
	bool hello_due;
	uint8_t hello[ROCI_HELLO_BYTES];
	/* Only of the open end. */
	bool challenge_due;
	struct roci_av challenge_av;
	struct roci_nat_way challenge_way;
	uint8_t challenge[ROCI_CHALLENGE_BYTES];
};

struct roci_tx_batch;

/* The QP, of roci_qp_cross_nat(), is in RTR and has its address. */
void roci_nat_begin(struct roci_qp *qp);
/* The QP is reset. */
void roci_nat_end(struct roci_qp *qp);
/* A HELLO came for the QP. True where the peer has moved: see roci_qp_cross_nat(). */
bool roci_nat_rx_hello(struct roci_qp *qp, const struct roci_rx *rx);
/* A CHALLENGE came from the address of the peer. */
void roci_nat_rx_challenge(struct roci_qp *qp, const struct roci_rx *rx);
/* An answer is missed. */
void roci_nat_silent(struct roci_qp *qp);
/* Adds what is due to *batch. True where there is no room. */
bool roci_nat_fill(struct roci_qp *qp, struct roci_tx_batch *batch);

#endif
