/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification packets (IBTA A17.9.3). The standard's names no packet, so anybody who hits a QPN can forge
 * one. Ours proves that the peer sent it: the first of its 16 reserved bytes name the packet that met the congestion,
 * and the PSN that the first packet of its direction had. Receivers ignore reserved bytes. A CNP without that proof
 * counts only where the QP's packets say that they understand ECN: others are dropped by a congested network, and not
 * marked.
 */
#ifndef ROCI_ENGINE_CNP_H
#define ROCI_ENGINE_CNP_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_CNP_BYTES  16   /* its payload */
#define ROCI_CNP_WINDOW 8192 /* PSNs: a CNP is about one of the last so many: two windows of short packets */

/* What a CNP is about. */
enum roci_cnp_kind {
	ROCI_CNP_STANDARD = 0, /* no proof: all bytes are 0 */
	ROCI_CNP_REQUEST = 1,  /* a request that its receiver sent */
	ROCI_CNP_RESPONSE = 2, /* a response, or acknowledgement */
};

struct roci_cnp {
	uint8_t kind; /* enum roci_cnp_kind; other values prove nothing */
	uint32_t psn;
	uint32_t first_psn; /* what the direction began with */
};

static inline void roci_cnp_build(const struct roci_cnp *cnp, uint8_t payload[ROCI_CNP_BYTES])
{
	for (unsigned i = 0; i < ROCI_CNP_BYTES; i++)
		payload[i] = 0;
	payload[0] = cnp->kind;
	payload[1] = (uint8_t)(cnp->psn >> 16);
	payload[2] = (uint8_t)(cnp->psn >> 8);
	payload[3] = (uint8_t)cnp->psn;
	payload[4] = (uint8_t)(cnp->first_psn >> 16);
	payload[5] = (uint8_t)(cnp->first_psn >> 8);
	payload[6] = (uint8_t)cnp->first_psn;
}

static inline struct roci_cnp roci_cnp_parse(const uint8_t payload[ROCI_CNP_BYTES])
{
	return (struct roci_cnp){.kind = payload[0],
				 .psn = (uint32_t)payload[1] << 16 | (uint32_t)payload[2] << 8 | payload[3],
				 .first_psn = (uint32_t)payload[4] << 16 | (uint32_t)payload[5] << 8 | payload[6]};
}

#endif
