/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling a batch of packets. A driver hands the same batch to the engine again and again, so a packet is written here
 * as a whole: nothing of the packet that had its place before may stay.
 */
#ifndef ROCI_ENGINE_BATCH_H
#define ROCI_ENGINE_BATCH_H

#include "engine/engine.h"

/* Adds `len` bytes at `base` to the payload of the packet that is added next. There must be room for a span. */
static inline void roci_tx_batch_span(struct roci_tx_batch *batch, void *base, uint32_t len)
{
	batch->spans[batch->span_count++] = (struct roci_span){base, len};
}

/* Adds the packet *pkt to `av`. Its payload are the spans that were added since the last packet, pkt->payload_len bytes
 * in all. There must be room for a packet. The caller may set copy_payload, whole and soft_roce of what is returned;
 * all are false. */
struct roci_tx_packet *roci_tx_batch_add(struct roci_tx_batch *batch, const struct roci_av *av,
					 const struct roci_packet *pkt);

#endif
