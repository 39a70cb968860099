/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle [-g GID-INDEX]: makes a connected pair of RC queue pairs, moves one message, arms the CQ, prints "idle", and
 * waits for an event that never comes. The test checks that its threads sleep meanwhile.
 */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	uint32_t psn[2] = {qp_random_psn(), qp_random_psn()};
	static uint8_t memory[2][64];
	struct ibv_comp_channel *channel;
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad_send;
	struct address address[2];
	struct ibv_qp *qp[2];
	struct ibv_cq *cq, *event_cq;
	struct endpoint ep;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	void *context;

	endpoint_open(&ep, argc == 3 ? atoi(argv[2]) : 0);
	channel = ibv_create_comp_channel(ep.ctx);
	need(channel != NULL, "ibv_create_comp_channel");
	cq = ibv_create_cq(ep.ctx, 16, NULL, channel, 0);
	need(cq != NULL, "ibv_create_cq");
	mr = ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < 2; i++) {
		qp[i] = qp_make(&ep, IBV_QPT_RC, cq, NULL, 4, 1);
		address[i] = (struct address){.gid = ep.gid, .qpn = qp[i]->qp_num, .psn = psn[i], .mtu = ep.mtu_bytes};
	}
	for (int i = 0; i < 2; i++)
		qp_connect(&ep, qp[i], psn[i], &address[!i], &pair_retries);

	struct ibv_sge from = {(uintptr_t)memory[0], 64, mr->lkey}, to = {(uintptr_t)memory[1], 64, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1};
	struct ibv_send_wr send = {
		.wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	errno = ibv_post_recv(qp[1], &recv, &bad_recv);
	need(!errno, "ibv_post_recv");
	errno = ibv_post_send(qp[0], &send, &bad_send);
	need(!errno, "ibv_post_send");
	for (int i = 0; i < 2; i++) {
		cq_next(cq, &wc);
		need(wc.status == IBV_WC_SUCCESS, "the message");
	}
	need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	puts("idle");
	fflush(stdout);
	ibv_get_cq_event(channel, &event_cq, &context);
	die("unexpected event");
}
