/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events that no peer is needed for, or that belong to a shared receive queue. */
#include <stdio.h>

#include "provoke.h"

static bool drained(struct provoke *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_qp *qp = provoke_qp(p, 4, IBV_ACCESS_LOCAL_WRITE);
	bool came = qp && !provoke_rtr(p, qp, qp->qp_num) && !provoke_rts(qp, 1, PROVOKE_SHORT) &&
		    !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
		    provoke_event_comes(p, "  event", IBV_EVENT_SQ_DRAINED);

	if (qp)
		provoke_qp_destroy(qp);
	return came;
}

/* A queue pair that is its own peer, and takes its receives from an SRQ. */
struct shared {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static bool make_shared(struct provoke *p, struct shared *s)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_send_sge = 1}};

	s->cq = ibv_create_cq(p->context, 8, NULL, NULL, 0);
	s->srq = ibv_create_srq(p->pd, &srq);
	init.send_cq = init.recv_cq = s->cq;
	init.srq = s->srq;
	s->qp = s->cq && s->srq ? ibv_create_qp(p->pd, &init) : NULL;
	return s->qp &&
	       !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
	       !provoke_rtr(p, s->qp, s->qp->qp_num) && !provoke_rts(s->qp, 1, PROVOKE_SHORT);
}

static void destroy_shared(struct shared *s)
{
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->srq)
		ibv_destroy_srq(s->srq);
	if (s->cq)
		ibv_destroy_cq(s->cq);
}

/* One receive is posted, and the limit is 1: the SEND that takes it leaves fewer. */
static bool limit_reached(struct provoke *p)
{
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_recv_wr receive = {.wr_id = 1}, *bad_receive;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct shared s = {NULL};
	bool came = make_shared(p, &s) && !ibv_post_srq_recv(s.srq, &receive, &bad_receive) &&
		    !ibv_modify_srq(s.srq, &limit, IBV_SRQ_LIMIT) && !ibv_post_send(s.qp, &send, &bad_send) &&
		    provoke_event_comes(p, "  event", IBV_EVENT_SRQ_LIMIT_REACHED);

	destroy_shared(&s);
	return came;
}

static bool last_wqe(struct provoke *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct shared s = {NULL};
	bool came = make_shared(p, &s) && !ibv_modify_qp(s.qp, &attr, IBV_QP_STATE) &&
		    provoke_event_comes(p, "  event", IBV_EVENT_QP_LAST_WQE_REACHED);

	destroy_shared(&s);
	return came;
}

static const struct {
	enum ibv_event_type event;
	const char *story;
	bool (*run)(struct provoke *p);
} cases[] = {
	{IBV_EVENT_SQ_DRAINED, "A queue pair in RTS is moved to SQD, with en_sqd_async_notify 1.", drained},
	{IBV_EVENT_SRQ_LIMIT_REACHED, "An SRQ has one receive and srq_limit 1, and a SEND takes the receive.",
	 limit_reached},
	{IBV_EVENT_QP_LAST_WQE_REACHED, "A queue pair with an SRQ is moved to ERR.", last_wqe},
};

bool provoke_event(struct provoke *p, const struct explanation *row, bool *known)
{
	*known = false;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (row->kind != EXPLAIN_ASYNC || row->code != (int)cases[i].event)
			continue;
		*known = true;
		if (!p)
			return false;
		puts(cases[i].story);
		return cases[i].run(p);
	}
	return false;
}
