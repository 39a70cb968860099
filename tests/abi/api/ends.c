/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a program's last calls when it ends, and of objects whose context is closed. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

#define LAST_POSTS 8

/* Opens a device of the child's own, posts, and ends. The first SEND leaves at once and completes; the others wait for
 * the program's next call, since there is a completion to poll. */
static void post_and_end(uint32_t dest_qpn, void (*end)(int status))
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	static struct ibv_ah *ah; /* as the leak sanitizer can find it */
	api_ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	api_pd = api_ctx ? ibv_alloc_pd(api_ctx) : NULL;
	struct ibv_cq *cq = api_pd ? ibv_create_cq(api_ctx, LAST_POSTS, NULL, NULL, 0) : NULL;
	struct ibv_qp_cap cap = {.max_send_wr = LAST_POSTS, .max_send_sge = 1, .max_inline_data = 8};
	struct ibv_qp *qp = cq ? qp_new(IBV_QPT_UD, cq, NULL, &cap) : NULL;
	struct ibv_ah_attr attr;
	uint64_t data = 0;
	struct ibv_sge sge = {.addr = (uintptr_t)&data, .length = sizeof(data)};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				 .wr.ud = {.remote_qpn = dest_qpn, .remote_qkey = 0x1234}},
			   *bad;
	if (!qp)
		_exit(1);
	ah_self(&attr);
	wr.wr.ud.ah = ah = ibv_create_ah(api_pd, &attr);
	if (!ah || qp_to_init(qp) || qp_to_rtr(qp, 0) || qp_to_rts(qp))
		_exit(2);
	for (; data < LAST_POSTS; data++)
		if (ibv_post_send(qp, &wr, &bad))
			_exit(3);
	end(0);
}

/* An adapter sends what was posted; so a program that ends has sent it. */
static void check_end(void (*end)(int status))
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, LAST_POSTS, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_recv_wr = LAST_POSTS, .max_recv_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_UD, cq, NULL, &cap);
	static uint64_t memory[LAST_POSTS][6]; /* behind 40 bytes for a GRH */
	struct ibv_mr *mr = ibv_reg_mr(api_pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;
	int status = 1;
	CHECK(mr && !qp_to_init(qp) && !qp_to_rtr(qp, 0));
	memset(memory, 0xff, sizeof(memory));
	for (unsigned i = 0; i < LAST_POSTS; i++) {
		struct ibv_sge sge = {(uintptr_t)memory[i], sizeof(memory[i]), mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
	pid_t pid = fork();
	if (!pid)
		post_and_end(qp->qp_num, end);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	for (unsigned i = 0; i < LAST_POSTS; i++)
		CHECK(cq_wait(cq, &wc) && wc.status == IBV_WC_SUCCESS && memory[i][5] == i);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

void test_exit_sends(void)
{
	check_end(exit);
	check_end(_exit);
	check_end(quick_exit);
}

/* Objects that only the program knows keep the context, too. */
static void closed_early(void)
{
	struct ibv_context *ctx = ibv_open_device(api_device);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){0});
	struct ibv_ah_attr attr;
	struct ibv_cq *cq;
	void *arg;
	ah_self(&attr);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	CHECK(channel && pd && td && ah && !fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	CHECK(!ibv_close_device(ctx));
	CHECK_ERRNO(ibv_get_cq_event(channel, &cq, &arg), EAGAIN);
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_destroy_ah(ah));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_dealloc_td(td));
}

/* All other calls are refused. */
void test_closed_context(void)
{
	struct ibv_context *ctx = ibv_open_device(api_device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1});
	struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}});
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);
	struct ibv_qp_ex *qp_ex = ibv_qp_to_qp_ex(qp);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_device_attr device;
	struct ibv_wc wc;
	char byte;
	CHECK(pd && cq && cq_ex && srq && qp && qp_ex);
	CHECK(!ibv_close_device(ctx));
	CHECK(ibv_close_device(ctx) == EINVAL);
	CHECK(ibv_query_device(ctx, &device) == EINVAL);
	CHECK_ERRNO(!ibv_alloc_pd(ctx), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(pd, &byte, 1, 0), EINVAL);
	CHECK_ERRNO(ibv_poll_cq(cq, 1, &wc) == -EINVAL, EINVAL);
	CHECK(ibv_start_poll(cq_ex, &(struct ibv_poll_cq_attr){0}) == EINVAL);
	CHECK(ibv_req_notify_cq(cq, 0) == EINVAL);
	CHECK(ibv_resize_cq(cq, 2) == EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL);
	CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	ibv_wr_start(qp_ex);
	ibv_wr_send(qp_ex);
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_pd(pd));
	closed_early();
}
