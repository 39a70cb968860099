/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting: which requests are refused, and that the ones before are not lost. */
#include "api.h"

static struct ibv_sge sge_of(const struct pair *p, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)p->buf, len, p->mr->lkey};
}

/* Posts `wr` between two good sends. It must be refused with this error, and the first send must succeed. */
static void check_refused(struct pair *p, struct ibv_send_wr *wr, int error, int line)
{
	struct ibv_sge sge = sge_of(p, 8);
	struct ibv_send_wr last = {
		.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr first = {.wr_id = 1,
				    .next = wr,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr recv = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr *bad = NULL;
	struct ibv_wc wc;
	wr->next = &last;
	CHECK(!ibv_post_recv(p->qp[1], &recv, &bad_recv));
	int got = ibv_post_send(p->qp[0], &first, &bad);
	check_at(got == error && bad == wr, __FILE__, line, "the request is refused");
	check_at(cq_wait(p->cq[0], &wc) && wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS, __FILE__, line,
		 "the one before it succeeds");
	check_at(cq_wait(p->cq[1], &wc) && wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS, __FILE__, line, "and arrives");
	check_at(cq_quiet(p->cq[0]), __FILE__, line, "and nothing more");
}
#define REFUSED(p, error, ...) check_refused(p, &(struct ibv_send_wr){__VA_ARGS__}, error, __LINE__)

void test_post_send_errors(void)
{
	struct pair p;
	pair_open(&p, 0);
	struct ibv_sge sges[40];
	for (int i = 0; i < 40; i++)
		sges[i] = sge_of(&p, 8);
	struct ibv_sge big = sge_of(&p, 4096);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 40);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = -1);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_SEND, .num_sge = 1);
	REFUSED(&p, EINVAL, .opcode = 99, .sg_list = sges, .num_sge = 1);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_TSO, .sg_list = sges, .num_sge = 1);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 1, .send_flags = IBV_SEND_IP_CSUM);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_SEND, .sg_list = &big, .num_sge = 1, .send_flags = IBV_SEND_INLINE);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_RDMA_READ, .sg_list = sges, .num_sge = 1, .send_flags = IBV_SEND_INLINE);
	REFUSED(&p, EINVAL, .opcode = IBV_WR_ATOMIC_WRITE);
	pair_close(&p);
}

/* The sender's queue fills up while the receiver has no receives. Then receives are posted, and all arrive in order. */
void test_post_send_full(void)
{
	struct pair p;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	pair_open(&p, 0);
	CHECK(!ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init));
	unsigned room = init.cap.max_send_wr;
	struct ibv_sge sge = sge_of(&p, 8);
	struct ibv_send_wr wrs[256], *bad = NULL;
	CHECK(room < 255);
	for (unsigned i = 0; i < 256; i++) {
		wrs[i] = (struct ibv_send_wr){.wr_id = i,
					      .next = i < 255 ? &wrs[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};
	}
	CHECK(ibv_post_send(p.qp[0], wrs, &bad) == ENOMEM && bad == &wrs[room]);

	struct ibv_wc wc;
	for (unsigned i = 0; i < room; i++) {
		struct ibv_recv_wr recv = {.wr_id = 1000 + i, .sg_list = &sge, .num_sge = 1}, *bad_recv;
		CHECK(!ibv_post_recv(p.qp[1], &recv, &bad_recv));
		CHECK(cq_wait(p.cq[1], &wc) && wc.wr_id == 1000 + i && wc.status == IBV_WC_SUCCESS);
		CHECK(cq_wait(p.cq[0], &wc) && wc.wr_id == i && wc.status == IBV_WC_SUCCESS);
	}
	CHECK(cq_quiet(p.cq[0]) && cq_quiet(p.cq[1]));
	pair_close(&p);
}

void test_post_recv_full(void)
{
	struct pair p;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	pair_open(&p, 0);
	CHECK(!ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init));
	unsigned room = init.cap.max_recv_wr;
	struct ibv_sge sge = sge_of(&p, 8), sges[40] = {{0}};
	struct ibv_recv_wr wrs[256], *bad = NULL;
	CHECK(room < 255);
	for (unsigned i = 0; i < 256; i++)
		wrs[i] = (struct ibv_recv_wr){
			.wr_id = i, .next = i < 255 ? &wrs[i + 1] : NULL, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr wide = {.sg_list = sges, .num_sge = 40}, negative = {.sg_list = sges, .num_sge = -1};
	CHECK(ibv_post_recv(p.qp[0], &wide, &bad) == EINVAL && bad == &wide);
	CHECK(ibv_post_recv(p.qp[0], &negative, &bad) == EINVAL && bad == &negative);
	CHECK(ibv_post_recv(p.qp[0], wrs, &bad) == ENOMEM && bad == &wrs[room]);

	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;
	CHECK(!ibv_modify_qp(p.qp[0], &error, IBV_QP_STATE));
	for (unsigned i = 0; i < room; i++)
		CHECK(cq_wait(p.cq[0], &wc) && wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(cq_quiet(p.cq[0]));
	pair_close(&p);
}

/* INIT allows receives, RTS sends; in the error state both are accepted and flushed. */
void test_post_states(void)
{
	struct ibv_qp_cap cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, NULL, &cap);
	struct ibv_send_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad_send = NULL;
	struct ibv_recv_wr recv = {.wr_id = 2}, *bad_recv = NULL;
	struct ibv_wc wc;
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
	CHECK(!qp_to_init(qp));
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL);
	CHECK(!qp_to_rtr(qp, qp->qp_num));
	CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(cq_wait(cq, &wc) && wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_post_send(qp, &send, &bad_send));
	CHECK(cq_wait(cq, &wc) && wc.wr_id == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(cq_wait(cq, &wc) && wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}
