/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes the request packet with the expected PSN: a chain of checks (IBTA 9.7.4.1), then the operation on memory,
 * the receive queue or the ring of responses. What follows from the verdict is the responder's matter.
 */
#ifndef ROCI_ENGINE_EXECUTE_H
#define ROCI_ENGINE_EXECUTE_H

#include "engine/qp.h"

enum roci_verdict {
	ROCI_EXEC_OK,
	ROCI_EXEC_IGNORE,     /* no room for its answer: as if it was lost; or its payload is */
	ROCI_EXEC_NO_RECEIVE, /* RNR NAK */
	ROCI_EXEC_INVALID,    /* NAK invalid request */
	ROCI_EXEC_ACCESS,     /* NAK remote access error */
	ROCI_EXEC_OPERATION,  /* NAK remote operational error */
	ROCI_EXEC_TOO_LONG,   /* the receive is too small: local length error, NAK invalid request */
	ROCI_EXEC_BAD_INV,    /* SEND with Invalidate of a wrong key: executed, acknowledged, then fatal (IBTA 9.9.3.1
				 class J) */
};

enum roci_verdict roci_execute(struct roci_qp *qp, const struct roci_packet *p);

/* Packets of the response to a READ of `len` bytes. */
uint32_t roci_read_packets(uint32_t mtu, uint32_t len);

#endif
