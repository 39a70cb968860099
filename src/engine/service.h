/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RC, UC and UD do differently when they send and receive: one table for each transport service (IBTA 9.7, 9.8),
 * in rc.c, uc.c and ud.c. The requester asks the table, not the QP's type.
 */
#ifndef ROCI_ENGINE_SERVICE_H
#define ROCI_ENGINE_SERVICE_H

#include "engine/engine.h"
#include "engine/peer_port.h"

struct roci_swqe;

struct roci_service {
	uint8_t transport; /* ROCI_TRANSPORT_*: the upper bits of its opcodes */
	bool is_datagram;  /* each request names its destination, and is one packet */
	/* What *pkt proves where it comes from another UDP port than the peer's. NULL: any port is right. */
	enum roci_proof (*proof)(const struct roci_qp *qp, const struct roci_packet *pkt);
	/* A packet that passed the checks of all services came for *qp. */
	void (*rx)(struct roci_qp *qp, const struct roci_rx *rx);
	/* Whether the next packet, of `bytes` window bytes, may go now. If not, the QP is made ready when it may. */
	bool (*may_send)(struct roci_qp *qp, uint64_t bytes);
	/* Whether the next packet, which belongs to *w, asks for an acknowledgement. */
	bool (*wants_ack)(const struct roci_qp *qp, const struct roci_swqe *w, uint64_t bytes);
	/* A packet of *w was sent, which stands for `packets` PSNs; the next one is packet req.next_packet. */
	void (*sent)(struct roci_qp *qp, const struct roci_swqe *w, uint32_t packets, bool ack);
	/* A batch has packets of the QP, whose timer does not run. */
	void (*start_timer)(struct roci_qp *qp);
	/* The timer expired while packets are outstanding. */
	void (*silence)(struct roci_qp *qp);
	/* A request has failed and was completed: what becomes of the QP (IBTA 10.3.1). */
	void (*failed)(struct roci_qp *qp);
	bool acknowledged; /* a request is done when its packets are acknowledged; else when they are sent */
};

extern const struct roci_service roci_service_rc, roci_service_uc, roci_service_ud;

#endif
