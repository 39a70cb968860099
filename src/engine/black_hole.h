/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that swallows long packets and says nothing (RFC 2923, "black hole"): a router on the way has a smaller MTU
 * than the interface, and its ICMP messages are lost. rdma_cm asks before it connects (wire/mtu_probe.h). A QP whose
 * program set a larger path MTU cannot send shorter packets, because its peer expects full ones (IBTA 9.7.4.1.6). So
 * once a black hole is found, long packets go in IP fragments: routers cut IPv4 packets. Nobody cuts IPv6 packets that
 * fit the interface. There they go in pieces (wire/piece.h), if the peer is a Rocinante; else the device says which
 * path MTU to use, and the requests fail.
 *
 * The sign of it: short packets pass, and one long packet is lost again and again. The requester sends probes (probe.h)
 * and counts the answers that name the same missing packet, which was sent again in between. A responder counts how
 * often the same READ request comes, though it was answered in between. Random loss rarely looks like that for long.
 * Between two Rocinantes a mistake only makes the path slower. Other peers take no fragments over IPv4: there the
 * device only says what it suspects, and packets go on as they are. So a peer is asked whether it is a Rocinante
 * (ranges.h) as soon as a packet is missing twice.
 */
#ifndef ROCI_ENGINE_BLACK_HOLE_H
#define ROCI_ENGINE_BLACK_HOLE_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_BLACK_HOLE_ASKS     2 /* times missing: the peer is asked what it is */
#define ROCI_BLACK_HOLE_ANSWERS  4 /* that name the same packet, if none as long ever arrived */
#define ROCI_BLACK_HOLE_PROVEN   8 /* if one did: the path has changed, or loses many packets */
#define ROCI_BLACK_HOLE_REQUESTS 6 /* for the same READ responses: the requester may just be far away */

/* UDP payload that every path carries: in an IPv6 packet of 1,280 bytes (RFC 8200 s.5), in an IPv4 packet of 576. */
#define ROCI_BLACK_HOLE_1280 1232u
#define ROCI_BLACK_HOLE_576  548u

struct roci_black_hole {
	uint32_t psn : 24;
	uint32_t times : 8; /* in a row that it was missing */
};

/* The packet `psn` is missing once more. True: it is the `most`th time. */
static inline bool roci_black_hole_counts(struct roci_black_hole *b, uint32_t psn, unsigned most)
{
	if (b->psn != psn)
		*b = (struct roci_black_hole){.psn = psn};
	if (++b->times < most)
		return false;
	b->times = 0;
	return true;
}

/* The UDP payload that the path carries in one packet, if it does not carry `bytes`; 0: every path carries `bytes`. */
static inline uint32_t roci_black_hole_carries(uint32_t bytes, bool ipv4)
{
	if (bytes > ROCI_BLACK_HOLE_1280)
		return ROCI_BLACK_HOLE_1280;
	return ipv4 && bytes > ROCI_BLACK_HOLE_576 ? ROCI_BLACK_HOLE_576 : 0;
}

/* ---- of a QP ---- */

struct roci_qp;
struct roci_swqe;

/* The request *w, which carries its payload, was acknowledged up to some packet of full size or to its end. */
void roci_black_hole_passed(struct roci_qp *qp, const struct roci_swqe *w);
/* The peer says that the oldest packet, which has been sent, is missing. */
void roci_black_hole_request(struct roci_qp *qp);
/* The peer asks again for the READ responses from `psn` on, of `len` bytes. */
void roci_black_hole_response(struct roci_qp *qp, uint32_t psn, uint32_t len);
/* Whether the oldest packet is so long that a path may swallow it. */
bool roci_black_hole_may_be(const struct roci_qp *qp);
/* The QP has a path and an address now: takes over what is known of the path. */
void roci_black_hole_follow(struct roci_qp *qp);

#endif
