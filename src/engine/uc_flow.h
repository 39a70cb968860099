/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control of UC. The standard has none. A lossless link needs none, but a UDP socket's buffer overruns. So a UC
 * sender sets AckReq now and then, which UC's receivers ignore (IBTA 9.2.4). A Rocinante answers with an RC
 * acknowledge, which other senders drop as a packet of the wrong type (IBTA 9.6.1.1.2).
 *
 * While the peer answers, packets stay within the path's congestion window, as RC's do, and on a far path they are
 * paced. The MSN of an answer, which has no meaning in UC, says how many packets have come in all. So the path learns
 * what was lost. Its credits, which have none either, say how many packets the peer's buffer takes. UC stays
 * unreliable: nothing is sent again, and packets in flight are forgotten when no answer comes. A peer nearby that has
 * answered before may be stopped: packets go one at a time then, each of which asks. A peer that does not answer is
 * unresponsive: packets to it go at the pace that the path has for unacknowledged packets.
 */
#ifndef ROCI_ENGINE_UC_FLOW_H
#define ROCI_ENGINE_UC_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/path.h"

#define ROCI_UC_ANSWER_NS UINT64_C(100000000) /* how long an answer may take */

struct roci_uc_flow {
	bool answered;      /* the peer has answered at least once */
	bool ack_requested; /* an answer is due */
	bool stopped;       /* the peer has answered before, but not in time lately */
	bool unresponsive;
	bool paced;         /* nothing is sent until the timer: the path's pace */
	uint8_t unanswered; /* requests since the last answer that got none in time */
	uint8_t far;        /* round trips so far that were those of a far path; long ones count more */
	bool near;          /* one was that of a near path */
	bool counts;        /* `came` is known */
	uint32_t came : 24; /* packets that the peer had when it last answered */
	uint32_t missing;   /* packets sent before that, which have not come */
};

/* Window bytes of `packets` packets. Their messages may be gone when the answer comes, so each counts as full. */
static inline uint64_t roci_uc_flow_bytes(uint32_t mtu, uint32_t packets)
{
	return packets * (mtu + ROCI_PATH_PACKET_BYTES);
}
/* True where the peer is still to be found out, or may be stopped: the next packet asks for an answer. */
static inline bool roci_uc_flow_asks(const struct roci_uc_flow *f)
{
	return (!f->answered || f->stopped) && !f->ack_requested;
}
/* A packet was sent. */
static inline void roci_uc_flow_sent(struct roci_uc_flow *f, bool ack_requested)
{
	f->ack_requested |= ack_requested;
}
/* The peer has answered. */
void roci_uc_flow_answer(struct roci_uc_flow *f);
/* The peer answers that `came` packets have come in all (modulo 2^24); `sent` were sent since its last answer. Sets
 * *lost to how many are lost: those that were missing at the last answer, too, since a packet that is only late comes
 * before the next answer. Returns how many have come since the last answer, `sent` at most. */
uint32_t roci_uc_flow_count(struct roci_uc_flow *f, uint32_t sent, uint32_t came, uint32_t *lost);
/* A round trip was measured while the path is not far. True where it is to be taken for far from now on. */
bool roci_uc_flow_is_far(struct roci_uc_flow *f, uint64_t rtt_ns);
/* No round trip was that of a near path. So as long as there is no model, the window obeys loss. */
static inline bool roci_uc_flow_may_be_far(const struct roci_uc_flow *f)
{
	return f->far && !f->near;
}
/* A stopped peer is asked again by the next packet, and then hears nothing until it answers, or is asked once more. */
static inline bool roci_uc_flow_waits(const struct roci_uc_flow *f)
{
	return f->stopped && f->ack_requested;
}
/* No answer for ROCI_UC_ANSWER_NS. True where one was due: something was lost. near: the path is. */
bool roci_uc_flow_silence(struct roci_uc_flow *f, bool near);

/* The credits of an answer: how many full packets `room` bytes of buffer take (0: nobody knows), as coded in an AETH.
 */
uint8_t roci_uc_flow_credits(uint32_t mtu, uint64_t room);
/* The window bytes for which an answer with this AETH syndrome says that there is room; UINT64_MAX: it does not say. */
uint64_t roci_uc_flow_room(uint32_t mtu, uint8_t syndrome);

#endif
