/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets that a responder sends: responses in the order of PSNs, then one acknowledgement or NAK for all that was
 * executed since the last one (coalesced, IBTA 9.7.5.1.2). What goes wrong is returned, and is the responder's matter.
 */
#ifndef ROCI_ENGINE_RESPONSE_H
#define ROCI_ENGINE_RESPONSE_H

#include "engine/qp.h"

enum roci_fill {
	ROCI_FILL_DONE,      /* nothing is left to send */
	ROCI_FILL_MORE,      /* the batch is full */
	ROCI_FILL_PACED,     /* a long response waits for its pace; the QP is made ready then */
	ROCI_FILL_NO_ACCESS, /* the region of a response was deregistered */
};

/* Adds responses to *batch until it has `end` packets. With ROCI_FILL_NO_ACCESS, *psn is the PSN of the packet that
 * could not be sent; the rest of its response is dropped. */
enum roci_fill roci_response_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned end, uint32_t *psn);
/* Adds the NAK or ACK and the CNP that are due. True where the batch has no room for them. */
bool roci_response_fill_ack(struct roci_qp *qp, struct roci_tx_batch *batch);
/* The QP's resp_timer: the next packet of a long response may go. */
void roci_response_expire(struct roci_timer *timer);

#endif
