/* SPDX-License-Identifier: BSD-2-Clause */
/* The header and payload of each packet that the requester sends. */
#ifndef ROCI_ENGINE_PACKETS_H
#define ROCI_ENGINE_PACKETS_H

#include "engine/qp.h"

/* Where the packets of *w go. */
const struct roci_av *roci_swqe_av(const struct roci_qp *qp, const struct roci_swqe *w);
/* Payload bytes of a full packet of *w. */
uint32_t roci_swqe_mtu(const struct roci_qp *qp, const struct roci_swqe *w);

/* Completes *pkt (PSN, P_Key, AckReq are set) for packet `index` of request *w, and adds its payload to the batch's
 * spans. `step`: PSNs it stands for (a READ request asks for that many responses). False where the payload's region is
 * gone; no span was added then. */
bool roci_packets_request(struct roci_qp *qp, const struct roci_swqe *w, uint32_t index, uint32_t step,
			  struct roci_packet *pkt, struct roci_tx_batch *batch);

#endif
