/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/uc_flow.h"

#include "engine/requester.h"

#define SILENCE_NS UINT64_C(100000000)
#define SILENCES   3 /* after which the peer is taken as mute */

/* All before `una` is off the books. */
static void settle(struct roci_qp *qp, uint32_t una)
{
	struct roci_requester *r = &qp->req;
	uint64_t before = r->una_bytes;

	r->una = una;
	r->una_bytes = r->sent_bytes - roci_uc_bytes(qp, (uint32_t)roci_psn_diff(r->psn, una));
	roci_path_acked(qp->path, qp->e->now, r->una_bytes - before);
	roci_requester_book_flight(qp);
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}

void roci_uc_arm(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	if (r->paced)
		return;
	roci_timer_set(&qp->e->timers, &qp->timer,
		       !r->mute && r->psn != r->una ? qp->e->now + SILENCE_NS : ROCI_TIMER_OFF);
}

void roci_uc_ack(struct roci_qp *qp, uint32_t psn)
{
	struct roci_requester *r = &qp->req;
	uint32_t una = roci_psn_add(psn, 1);

	if (qp->state != ROCI_QPS_RTS && qp->state != ROCI_QPS_SQD)
		return;
	if (r->mute)
		r->paced = false;
	r->heard = true;
	r->mute = r->asked = false;
	r->silences = 0;
	if (roci_psn_diff(una, r->una) > 0 && roci_psn_diff(una, r->psn) <= 0)
		settle(qp, una);
	roci_uc_arm(qp);
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}

void roci_uc_silence(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	if (r->asked) {
		roci_path_congested(qp->path, qp->e->now);
		r->mute = ++r->silences >= SILENCES;
	}
	r->asked = false;
	settle(qp, r->psn);
}
