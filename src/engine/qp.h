/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair: its attributes, its queues, and the two machines that work on them. The requester and the completer
 * work on the send queue, the responder on the receive queue.
 */
#ifndef ROCI_ENGINE_QP_H
#define ROCI_ENGINE_QP_H

#include "engine/ack_steps.h"
#include "engine/ack_timer.h"
#include "engine/black_hole.h"
#include "engine/cnp.h"
#include "engine/event.h"
#include "engine/far_answer.h"
#include "engine/far_read.h"
#include "engine/flush_icrc.h"
#include "engine/internal.h"
#include "engine/keepalive.h"
#include "engine/late_ranges.h"
#include "engine/nat.h"
#include "engine/outstanding.h"
#include "engine/path.h"
#include "engine/peer_port.h"
#include "engine/plpmtu.h"
#include "engine/psn.h" /* IWYU pragma: export */
#include "engine/recovery.h"
#include "engine/response_ring.h"
#include "engine/rnr_wait.h"
#include "engine/probe.h"
#include "engine/rq.h"
#include "engine/rtt_sample.h"
#include "engine/selective.h"
#include "engine/send_window.h"
#include "engine/sent_log.h"
#include "engine/sq.h"
#include "engine/uc_flow.h"

/*
 * With thousands of QPs none of them is in a cache when its packet comes, and each cache line of it costs as much as a
 * hundred instructions. So what a packet touches lies next to each other, in lines of its own. The order of the fields
 * here, and of some structs in them, follows from that.
 */
#define ROCI_CACHE_LINE 64 /* bytes */

/* Sends work requests, and sends them again. */
struct roci_requester {
	/* a line */
	uint32_t next_packet; /* packets of sq.next that this pass has sent */
	bool stopped;         /* a request failed before it was sent: nothing behind it is sent */
	struct roci_rnr_wait rnr;
	struct roci_send_window window;
	uint64_t flight;                /* bytes of the window that are counted on the path, see flight.h */
	struct roci_far_read *far_read; /* owned; NULL: off */
	/* a line, which ends with the counters of `outstanding` */
	struct roci_ack_timer ack_timer;
	struct roci_rtt_sample rtt;
	struct roci_recovery recovery;
	struct roci_black_hole hole;
	struct roci_plpmtu plpmtu;
	struct {
		bool pending; /* it overtook a response, and counts when una has come to its PSN */
		uint8_t code;
		uint32_t psn;
	} fatal_nak;
	struct roci_outstanding outstanding;
	/* a line, with the first fields of `selective` */
	struct roci_far_answer far;
	struct roci_uc_flow uc;
	struct roci_selective selective;
	/* seldom */
	struct roci_reorder early; /* responses that overtook others */
	struct roci_sent_log log;  /* of a far path */
	struct roci_flush_icrc flush_icrc;
};

/* The SEND or WRITE of which some packets have come. */
struct roci_message {
	uint8_t kind;        /* enum roci_kind: SEND or WRITE; 0: none is under way */
	uint32_t mtu;        /* payload bytes of its first packet, and of all but the last */
	uint64_t va;         /* WRITE: address of the next byte */
	uint32_t rkey, left; /* WRITE: bytes that are still to come */
	uint64_t offset;     /* SEND: bytes placed; WRITE: bytes in all */
};

/* Serves the peer's requests. */
struct roci_responder {
	/* a line, with the first fields of `ranges` */
	uint32_t epsn;     /* expected PSN */
	uint32_t msn;      /* messages completed; UC: packets that came, see uc_flow.h */
	bool gap_reported; /* a NAK said that epsn is missing or not ready; the packets behind it need none */
	bool skipping;     /* UC: until the next First or Only */
	bool begun;        /* UC: a packet was taken, so older ones may come late */
	bool ack_due, nak_due, cnp_due;
	bool drain; /* in ERR: the request that failed was executed; responses and ACK up to it are still sent */
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	struct roci_ack_steps steps; /* RC */
	struct roci_response_ring responses;
	struct {
		bool offered, due, answers; /* answers: a duplicate has come since the last RANGES */
		bool asked;                 /* due, though the peer has not offered */
		uint16_t longest;           /* payload bytes of the peer's packets that a probe was for; 0: none came */
		uint16_t duplicates;
		uint64_t secret;               /* of the peer */
		struct roci_ranges_kept *kept; /* owned; NULL until the peer's first offer */
	} ranges;                              /* RC, see ranges.h */
	/* a line */
	struct roci_message message;
	struct roci_reorder early; /* requests that overtook others */
	/* of SENDs */
	bool have_rwqe;         /* *rwqe is in use */
	struct roci_rwqe *rwqe; /* owned; the receive that is being filled */
	/* seldom */
	uint64_t cnp_at; /* when the last CNP was due */
	struct roci_cnp cnp;
	uint8_t cnp_payload[ROCI_CNP_BYTES]; /* of the one that is being sent */
	struct roci_black_hole hole;
};

struct roci_qp {
	/* a line */
	_Alignas(ROCI_CACHE_LINE) struct roci_engine *e;
	const struct roci_service *service; /* of its type */
	struct roci_path *path;             /* RC and UC from RTR on */
	struct roci_nat *nat;               /* owned; NULL: its packets cross no NAT */
	enum roci_qp_state state;
	enum roci_qp_type type;
	uint32_t qpn, pd;
	uint32_t mtu; /* bytes */
	bool sig_all, established;
	struct roci_probe probe;
	/* two lines, the first of them its address vector */
	struct roci_qp_attr attr;
	uint64_t load_at;            /* when it last sent a request or a READ response; 0: never */
	_Atomic uint32_t *published; /* by the driver, see roci_qp_publish(); NULL: nowhere */
	/* a line */
	struct roci_peer_port peer; /* that packets of the peer come from; RC and UC */
	struct roci_list ready;
	struct roci_keepalive alive; /* without its timer */
	/* of the requester: a line in which its timer is, its queue, and the rest */
	struct roci_timer timer; /* acknowledgement, RNR wait, pace */
	struct roci_sq sq;
	struct roci_cq *send_cq;
	struct roci_requester req;
	struct roci_list sent;
	struct roci_srq *srq;
	/* of the responder */
	struct roci_responder resp;
	struct roci_cq *recv_cq;
	struct roci_rq rq;
	/* seldom */
	struct roci_list all, blocked;
	struct roci_event_source event;
	struct roci_timer resp_timer; /* of the responder: pace of a long READ response */
	struct roci_timer loss_timer; /* of the requester: see selective.h */
	struct roci_why_pace why;     /* of what the peers do wrong */
	struct roci_qp_cap cap;
	uint64_t secret;     /* see struct roci_qp_init */
	uint16_t own_port;   /* RC: what packets left from before they left from 4791; 0: none was given up */
	bool own_port_again; /* they leave from it again */
};

#define ROCI_BEGINS_LINE(field) _Static_assert(offsetof(struct roci_qp, field) % ROCI_CACHE_LINE == 0, "see above")
ROCI_BEGINS_LINE(attr.av);
ROCI_BEGINS_LINE(peer);
ROCI_BEGINS_LINE(sq);
ROCI_BEGINS_LINE(req);
ROCI_BEGINS_LINE(req.ack_timer);
ROCI_BEGINS_LINE(req.far);
ROCI_BEGINS_LINE(resp);
#undef ROCI_BEGINS_LINE

/* Its peer is a process of this host, see engine.h. */
static inline bool roci_qp_is_local(const struct roci_qp *qp)
{
	return qp->attr.av.local;
}
/* Window bytes of a full packet of a SEND or WRITE that begins now, about. */
static inline uint64_t roci_qp_packet_bytes(const struct roci_qp *qp)
{
	uint32_t longer = roci_plpmtu_payload(&qp->req.plpmtu, qp->mtu, qp->attr.av.max_datagram);

	return (longer ? longer : qp->mtu) + ROCI_PATH_PACKET_BYTES;
}
/* Payload bytes of the longest packet that the peer may send: the path MTU, or what it has probed for. */
static inline uint32_t roci_qp_longest_rx(const struct roci_qp *qp)
{
	uint32_t longest = qp->resp.ranges.longest;

	return longest > qp->mtu ? longest : qp->mtu;
}
/* RC, and in a state in which requests are sent and acknowledged. */
static inline bool roci_qp_is_connected(const struct roci_qp *qp)
{
	return qp->type == ROCI_QPT_RC && (qp->state == ROCI_QPS_RTS || qp->state == ROCI_QPS_SQD);
}
/* The peer has shown its port, or an address vector was set. A peer that sends from port 4791 is answered from there
 * (av.mad_port): a firewall that knows no RoCE may have seen just that way. Where it sends from another port later, it
 * was far away and thought too early that we are silent, or we that it is: then packets leave from the own port again.
 */
void roci_qp_address(struct roci_qp *qp);
/* No answer comes from the peer. Where nothing ever came from it, packets leave from port 4791 from now on; and after
 * a long silence where they leave from the own port again, but this time for good. long_since:
 * perhaps its port has changed, so its answers prove less (roci_completer_proof()). */
void roci_qp_peer_silent(struct roci_qp *qp, bool long_since);
/* The QP is about to fail or to be reset: nobody fetches payload of what it sent any more. */
void roci_qp_take_back(struct roci_qp *qp);
/* State or access flags have changed: brings what is published up to date. */
void roci_qp_published(struct roci_qp *qp);
/* The QP has packets to send, or may have: roci_engine_tx() asks it. */
void roci_qp_make_ready(struct roci_qp *qp);
/* The QP fails: ERR (RC), both queues flushed in order; async event `type` unless -1. */
void roci_qp_error(struct roci_qp *qp, int type);
/* Pushes the completion of *w, which is about to leave the send queue. */
void roci_qp_complete_send(struct roci_qp *qp, struct roci_swqe *w, const struct roci_cqe *cqe);
/* UD and UC: a send failed; SQE, and the send queue is flushed (IBTA 10.3.1.7). */
void roci_qp_send_queue_error(struct roci_qp *qp);
/* Takes the next receive into resp.rwqe, from the SRQ or the QP's own queue. False when there is none. */
bool roci_qp_take_receive(struct roci_qp *qp);
/* The protection domain of resp.rwqe: an SRQ has its own, which need not be the QP's (IBTA 10.2.9). */
static inline uint32_t roci_qp_receive_pd(const struct roci_qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}
/* Completes resp.rwqe. */
void roci_qp_complete_receive(struct roci_qp *qp, struct roci_cqe *cqe, bool solicited);
/* True in the states in which requests of the peer are served (IBTA 10.3.1). */
static inline bool roci_qp_receives(const struct roci_qp *qp)
{
	return qp->state == ROCI_QPS_RTR || qp->state == ROCI_QPS_RTS || qp->state == ROCI_QPS_SQD ||
	       qp->state == ROCI_QPS_SQE;
}
/* Requester, responder and queues become those of a new QP; state RESET. */
void roci_qp_reset(struct roci_qp *qp);

#endif
