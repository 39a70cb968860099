/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "api.h"

void test_srq(void)
{
	struct ibv_device_attr device;
	CHECK(!ibv_query_device(api_ctx, &device));
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 0, .max_sge = 1}};
	CHECK_ERRNO(!ibv_create_srq(NULL, &init), EINVAL);
	CHECK_ERRNO(!ibv_create_srq(api_pd, NULL), EINVAL);
	CHECK_ERRNO(!ibv_create_srq(api_pd, &init), EINVAL);
	init.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
	CHECK_ERRNO(!ibv_create_srq(api_pd, &init), EINVAL);
	init.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = (uint32_t)device.max_srq_sge + 1};
	CHECK_ERRNO(!ibv_create_srq(api_pd, &init), EINVAL);
	struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 4, .max_sge = 1},
					  .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					  .srq_type = IBV_SRQT_TM,
					  .pd = api_pd};
	CHECK_ERRNO(!ibv_create_srq_ex(api_ctx, &ex), EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_BASIC;
	struct ibv_srq *basic = ibv_create_srq_ex(api_ctx, &ex);
	CHECK(basic && !ibv_destroy_srq(basic));

	init = (struct ibv_srq_init_attr){.srq_context = &init, .attr = {.max_wr = 5, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(api_pd, &init);
	CHECK(srq && init.attr.max_wr >= 5 && init.attr.max_sge >= 2 && srq->srq_context == &init);
	struct ibv_srq_attr attr = {0};
	uint32_t number;
	CHECK(!ibv_query_srq(srq, &attr) && attr.max_wr == init.attr.max_wr && attr.srq_limit == 0);
	CHECK(ibv_query_srq(srq, NULL) == EINVAL && ibv_query_srq(NULL, &attr) == EINVAL);
	CHECK(ibv_get_srq_num(srq, &number) == EOPNOTSUPP);
	attr.srq_limit = attr.max_wr + 1;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	CHECK(ibv_modify_srq(srq, &attr, 1 << 4) == EINVAL);
	attr.srq_limit = 2;
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.max_wr = 50;
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	CHECK(!ibv_query_srq(srq, &attr) && attr.max_wr >= 50 && attr.srq_limit == 2);

	struct ibv_cq *cq = ibv_create_cq(api_ctx, 4, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_send_wr = 1, .max_send_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, srq, &cap);
	CHECK(qp && qp->srq == srq);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	CHECK(ibv_destroy_srq(NULL) == EINVAL);
}

void test_srq_full(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(api_pd, &init);
	struct ibv_recv_wr wrs[64], *bad = NULL;
	unsigned room = init.attr.max_wr;
	CHECK(room < 63);
	for (unsigned i = 0; i < 64; i++)
		wrs[i] = (struct ibv_recv_wr){.wr_id = i, .next = i < 63 ? &wrs[i + 1] : NULL};
	CHECK(ibv_post_srq_recv(srq, wrs, &bad) == ENOMEM && bad == &wrs[room]);

	struct ibv_sge sges[40] = {{0}};
	struct ibv_recv_wr wide = {.sg_list = sges, .num_sge = 40};
	CHECK(ibv_post_srq_recv(srq, &wide, &bad) == EINVAL && bad == &wide);
	CHECK(!ibv_destroy_srq(srq));
}
