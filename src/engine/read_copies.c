/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/read_copies.h"

#include "engine/batch.h"
#include "engine/far_read.h"
#include "engine/packets.h"
#include "engine/qp.h"
#include "engine/requester.h"

/* Nothing where the request for `psn` was answered, or is to be sent again anyway. */
static void add_copy(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t psn)
{
	const struct roci_send_window *window = &qp->req.window;
	struct roci_packet pkt = {.pkey = ROCI_PKEY_DEFAULT, .psn = psn};
	const struct roci_swqe *w;
	uint32_t index;

	if (batch->count + 1 >= ROCI_TX_BATCH || roci_psn_diff(psn, window->acked) < 0 ||
	    roci_psn_diff(psn, window->next) >= 0)
		return;
	w = roci_requester_find(qp, psn);
	index = (uint32_t)roci_psn_diff(psn, w->first_psn);
	if (!roci_far_read_is(w, index) || index >= w->packets)
		return;
	roci_packets_request(qp, w, index, roci_requester_step(w, index), &pkt, batch);
	pkt.solicited = true;
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
}

void roci_read_copies_fill(struct roci_qp *qp, struct roci_tx_batch *batch, uint32_t packets)
{
	const struct roci_read_copies *c = &qp->req.far_read->copies;

	for (unsigned i = roci_read_copies_due(c, qp->e->now, packets); i--;)
		add_copy(qp, batch, c->psns[i]);
}
