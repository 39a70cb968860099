/* SPDX-License-Identifier: BSD-2-Clause */
/* The completer: acknowledgements and responses complete work requests, or make RC send again (IBTA 9.7.5). */
#ifndef ROCI_ENGINE_COMPLETER_H
#define ROCI_ENGINE_COMPLETER_H

#include "engine/qp.h"

/* The peer sent *pkt if it answers exactly the newest packet, the oldest that is not acknowledged or, as the answer to
 * a probe does, the one before that; or any that is near (far_answer.h) where the peer has not shown its port yet, or
 * has been silent for long: a NAK may be about one in the middle, and no other answer would come. */
enum roci_proof roci_completer_proof(const struct roci_qp *qp, const struct roci_packet *pkt);
/* Everything before PSN `limit` has arrived, says a proven packet; `limit` is outstanding, or 1 beyond. */
void roci_completer_acknowledge(struct roci_qp *qp, uint32_t limit);
/* A packet from the responder: ACK, NAK, READ response or atomic acknowledge. */
void roci_completer_rx(struct roci_qp *qp, const struct roci_rx *rx);

#endif
