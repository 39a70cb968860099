/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a program's last calls when it ends. */
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

#define LAST_POSTS 8

/* Opens a device of the child's own, posts, and ends. The first SEND leaves at once and completes; the others wait for
 * the program's next call, since there is a completion to poll. */
static void post_and_exit(uint32_t dest_qpn)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	api_ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
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
	wr.wr.ud.ah = ibv_create_ah(api_pd, &attr);
	if (!wr.wr.ud.ah || qp_to_init(qp) || qp_to_rtr(qp, 0) || qp_to_rts(qp))
		_exit(2);
	for (; data < LAST_POSTS; data++)
		if (ibv_post_send(qp, &wr, &bad))
			_exit(3);
	_exit(0);
}

/* An adapter sends what was posted; so a program that ends by _exit() has sent it. */
void test_exit_sends(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, LAST_POSTS, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_recv_wr = LAST_POSTS, .max_recv_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_UD, cq, NULL, &cap);
	static uint64_t memory[LAST_POSTS][6]; /* behind 40 bytes for a GRH */
	struct ibv_mr *mr = ibv_reg_mr(api_pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;
	int status = 1;
	CHECK(mr && !qp_to_init(qp) && !qp_to_rtr(qp, 0));
	for (unsigned i = 0; i < LAST_POSTS; i++) {
		struct ibv_sge sge = {(uintptr_t)memory[i], sizeof(memory[i]), mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
	pid_t pid = fork();
	if (!pid)
		post_and_exit(qp->qp_num);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	for (unsigned i = 0; i < LAST_POSTS; i++)
		CHECK(cq_wait(cq, &wc) && wc.status == IBV_WC_SUCCESS && memory[i][5] == i);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}
