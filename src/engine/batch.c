/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/batch.h"

#include <assert.h>

struct roci_tx_packet *roci_tx_batch_add(struct roci_tx_batch *batch, const struct roci_av *av,
					 const struct roci_packet *pkt)
{
	struct roci_tx_packet *tx = &batch->packets[batch->count];
	unsigned first_span = batch->count ? tx[-1].first_span + tx[-1].span_count : 0;

	assert(batch->count < ROCI_TX_BATCH && first_span <= batch->span_count);
	*tx = (struct roci_tx_packet){.av = av,
				      .payload_len = pkt->payload_len,
				      .first_span = (uint16_t)first_span,
				      .span_count = (uint16_t)(batch->span_count - first_span)};
	tx->header_len = (uint8_t)roci_packet_build(pkt, tx->header);
	batch->count++;
	return tx;
}
