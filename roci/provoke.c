/* SPDX-License-Identifier: BSD-2-Clause */
#include "provoke.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "mover/mover.h"

#define EVENTS_MAX 8 /* that come before the one that is waited for */

static bool (*const ways[])(struct provoke *, const struct explanation *, bool *) = {
	provoke_request, provoke_event, provoke_call, provoke_cm, provoke_played, provoke_address, provoke_state};

bool provoke_can(const struct explanation *row)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		bool known;

		(void)ways[i](NULL, row, &known);
		if (known)
			return true;
	}
	return false;
}

struct ibv_qp *provoke_qp(struct provoke *p, uint32_t depth, unsigned access)
{
	struct ibv_cq *cq = ibv_create_cq(p->context, depth ? (int)depth : 1, NULL, NULL, 0);
	uint32_t wr = depth || !cq ? depth : (uint32_t)cq->cqe + 1;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = wr, .max_recv_wr = wr, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
	struct ibv_qp *qp = cq ? ibv_create_qp(p->pd, &init) : NULL;

	if (qp && !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return qp;
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
	return NULL;
}

void provoke_qp_destroy(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->recv_cq;

	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

int provoke_rtr(struct provoke *p, struct ibv_qp *qp, uint32_t qpn)
{
	return provoke_rtr_to(p, qp, qpn, 0, &p->gid);
}

int provoke_rtr_to(struct provoke *p, struct ibv_qp *qp, uint32_t qpn, uint8_t sgid_index, const union ibv_gid *dgid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = p->mtu,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *dgid, .sgid_index = sgid_index, .hop_limit = 64}},
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* One retry, and no retry after an RNR NAK. */
int provoke_rts(struct ibv_qp *qp, uint8_t max_rd_atomic, uint8_t timeout)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = timeout,
				   .retry_cnt = 1,
				   .rnr_retry = 0,
				   .max_rd_atomic = max_rd_atomic};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

bool provoke_completes(const char *who, struct ibv_qp *qp, int status)
{
	int64_t end = now_ms() + PROVOKE_WAIT_MS;
	const struct explanation *row;
	struct ibv_wc wc;

	while (ibv_poll_cq(qp->recv_cq, 1, &wc) != 1) {
		if (now_ms() > end)
			return false;
	}
	row = explain_wc_status((int)wc.status);
	printf("  %s: completion with status %d, %s (%s)\n", who, (int)wc.status, row ? row->name : "?",
	       ibv_wc_status_str(wc.status));
	return (int)wc.status == status;
}

bool provoke_event_comes(struct provoke *p, const char *head, int type)
{
	for (unsigned i = 0; i < EVENTS_MAX; i++) {
		struct pollfd fd = {.fd = p->context->async_fd, .events = POLLIN};
		const struct explanation *row;
		struct ibv_async_event event;

		if (poll(&fd, 1, PROVOKE_WAIT_MS) != 1 || ibv_get_async_event(p->context, &event))
			return false;
		row = explain_code(EXPLAIN_ASYNC, (int)event.event_type);
		printf("%s %s (%s)\n", head, row ? row->name : "?", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
		if ((int)event.event_type == type)
			return true;
	}
	return false;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d = list;
	struct ibv_context *context = NULL;

	while (d && *d && name && strcmp(ibv_get_device_name(*d), name))
		d++;
	if (d && *d)
		context = ibv_open_device(*d);
	if (list)
		ibv_free_device_list(list);
	return context;
}

static bool start(struct provoke *p, const char *name)
{
	struct ibv_port_attr port;

	p->context = open_device(name);
	if (!p->context || ibv_query_port(p->context, 1, &port) || ibv_query_gid(p->context, 1, 0, &p->gid))
		return false;
	p->mtu = port.active_mtu;
	p->pd = ibv_alloc_pd(p->context);
	p->mr = p->pd ? ibv_reg_mr(p->pd, p->bytes, sizeof(p->bytes),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_ATOMIC)
		      : NULL;
	return p->mr;
}

static void stop(struct provoke *p)
{
	if (p->mw)
		ibv_dealloc_mw(p->mw);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	if (p->context)
		ibv_close_device(p->context);
}

int provoke_run(const struct explanation *row, const char *name)
{
	struct provoke *p = calloc(1, sizeof(*p));
	bool known = false, came = false, ready = p && start(p, name);

	if (!ready)
		complain(&explain_command, "the device cannot be used: %s", strerror(errno));
	for (size_t i = 0; ready && !known && i < sizeof(ways) / sizeof(ways[0]); i++)
		came = ways[i](p, row, &known);
	if (came)
		printf("That is %s. `roci explain` tells what to look for.\n", row->name);
	else if (ready)
		complain(&explain_command, "%s did not happen on this device", row->name);
	if (p)
		stop(p);
	free(p);
	return came ? 0 : ready ? EXIT_FAILURE : MOVER_NO_DEVICE;
}
