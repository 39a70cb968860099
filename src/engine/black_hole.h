/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that swallows long packets and says nothing (RFC 2923, "black hole"): a router on the way has a smaller MTU
 * than the interface, and its ICMP messages are lost. rdma_cm asks before it connects (wire/mtu_probe.h). QPs whose
 * program set a larger path MTU cannot send shorter packets, as their peers expect full ones (IBTA 9.7.4.1.6). From
 * then on they go in IP fragments: routers cut IPv4 packets. Nobody cuts IPv6 packets that the host itself thinks to
 * fit; then the device says which path MTU to use, and the requests fail.
 *
 * What shows it: short packets pass, and the same long one does not, time and again. The requester asks by a probe
 * (probe.h) for what is missing; each answer that names the same packet, which was sent again meanwhile, counts. A
 * responder hears the same READ request again and again, though it was answered meanwhile. Loss alone takes long to
 * look like that. Between two Rocinantes a path that was taken for a black hole is slower, and nothing else. Other
 * peers take no fragments over IPv4: with them it is said, and packets go on as they are. So a peer over IPv4 is asked
 * whether it is a Rocinante (ranges.h) as soon as a packet is missing twice.
 */
#ifndef ROCI_ENGINE_BLACK_HOLE_H
#define ROCI_ENGINE_BLACK_HOLE_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_BLACK_HOLE_ASKS     2 /* the peer is asked what it is */
#define ROCI_BLACK_HOLE_ANSWERS  4 /* that name the same missing packet, where none as long has ever arrived */
#define ROCI_BLACK_HOLE_PROVEN   8 /* where one has: the way is another one by now, or many packets are lost */
#define ROCI_BLACK_HOLE_REQUESTS 6 /* for the same READ responses: the requester may just be far away */

/* UDP payload that every path takes: of an IPv6 packet of 1,280 bytes (RFC 8200 s.5), and of an IPv4 packet of 576. */
#define ROCI_BLACK_HOLE_1280 1232u
#define ROCI_BLACK_HOLE_576  548u

struct roci_black_hole {
	uint32_t psn : 24;
	uint32_t times : 8; /* that it was missing, in a row */
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

/* What the path takes in one packet, if a datagram of `bytes` of UDP payload does not pass; 0: no path is that narrow.
 */
static inline uint32_t roci_black_hole_carries(uint32_t bytes, bool ipv4)
{
	if (bytes > ROCI_BLACK_HOLE_1280)
		return ROCI_BLACK_HOLE_1280;
	return ipv4 && bytes > ROCI_BLACK_HOLE_576 ? ROCI_BLACK_HOLE_576 : 0;
}

/* ---- of a QP ---- */

struct roci_qp;

/* A request of `len` bytes, which carries its payload, was acknowledged up to some packet of full size or to its end.
 */
void roci_black_hole_passed(struct roci_qp *qp, uint64_t len);
/* The peer says that the oldest packet, which has been sent, is missing. */
void roci_black_hole_request(struct roci_qp *qp);
/* The peer asks again for the READ responses from `psn` on, of `len` bytes. */
void roci_black_hole_response(struct roci_qp *qp, uint32_t psn, uint32_t len);
/* Whether the oldest packet is so long that a path may swallow it. */
bool roci_black_hole_may_be(const struct roci_qp *qp);
/* The QP has a path and an address now: what the path is known to carry goes for it, too. */
void roci_black_hole_follow(struct roci_qp *qp);

#endif
