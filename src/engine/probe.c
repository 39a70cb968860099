/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/probe.h"

#include "engine/batch.h"
#include "engine/qp.h"

void roci_probe_send(struct roci_qp *qp, unsigned count)
{
	if (qp->probe.due < count)
		qp->probe.due = count;
	if (count)
		roci_qp_make_ready(qp);
}

/* Most turns of a QP have none. */
static void fill(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_packet pkt = {.opcode = ROCI_OP_WRITE_ONLY,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .psn = roci_psn_add(qp->req.window.una, ROCI_PSN_MASK),
				  .ack_req = true};

	if (!roci_qp_is_connected(qp))
		qp->probe.due = 0;
	for (; qp->probe.due && batch->count < ROCI_TX_BATCH; qp->probe.due--)
		roci_tx_batch_add(batch, &qp->attr.av, &pkt);
}

bool roci_probe_fill(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	if (!qp->probe.due)
		return false;
	fill(qp, batch);
	return qp->probe.due;
}
