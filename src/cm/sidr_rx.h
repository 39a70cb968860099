/* SPDX-License-Identifier: BSD-2-Clause */
/* SIDR messages, for the files of this room. */
#ifndef ROCI_CM_SIDR_RX_H
#define ROCI_CM_SIDR_RX_H

#include "cm/exchange.h"

/* A SIDR_REQ: a duplicate, or a new exchange. */
void roci_sidr_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req);
/* A SIDR_REP: the answer to a SIDR_REQ of ours; otherwise it is counted and dropped. */
void roci_sidr_rx_rep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rep);
/* Answers a SIDR_REQ with a status other than success. No exchange is created. */
void roci_sidr_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_sidr_status status);

#endif
