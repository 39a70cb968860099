/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creating, state transitions, querying, multicast. */
#include "api.h"

static const struct ibv_qp_cap small = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};

void test_qp_create(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0),
		      *foreign = ibv_create_cq(api_other, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = small};
	CHECK_ERRNO(!ibv_create_qp(NULL, &init), EINVAL);
	CHECK_ERRNO(!ibv_create_qp(api_pd, NULL), EINVAL);
	CHECK_ERRNO((init.send_cq = NULL, !ibv_create_qp(api_pd, &init)), EINVAL);
	CHECK_ERRNO((init.send_cq = foreign, !ibv_create_qp(api_pd, &init)), EINVAL);
	init.send_cq = cq;
	CHECK_ERRNO((init.qp_type = IBV_QPT_RAW_PACKET, !ibv_create_qp(api_pd, &init)), EOPNOTSUPP);
	CHECK_ERRNO((init.qp_type = 77, !ibv_create_qp(api_pd, &init)), EINVAL);
	init.qp_type = IBV_QPT_UD;
	CHECK_ERRNO((init.cap.max_send_wr = UINT32_MAX, !ibv_create_qp(api_pd, &init)), EINVAL);
	init.cap = small;
	CHECK_ERRNO((init.cap.max_recv_sge = 0xffff, !ibv_create_qp(api_pd, &init)), EINVAL);
	init.cap = small;
	CHECK_ERRNO((init.cap.max_inline_data = 1 << 20, !ibv_create_qp(api_pd, &init)), EINVAL);
	init.cap = small;
	struct ibv_qp *qp = ibv_create_qp(api_pd, &init);
	CHECK(qp && qp->qp_num > 1 && qp->qp_num < 0xffffff && qp->state == IBV_QPS_RESET && qp->qp_type == IBV_QPT_UD);
	CHECK(init.cap.max_send_wr >= 4 && init.cap.max_recv_sge >= 1);
	CHECK_ERRNO(!ibv_qp_to_qp_ex(qp), EOPNOTSUPP);
	struct ibv_ece ece = {.vendor_id = 1};
	CHECK(ibv_query_ece(qp, &ece) == EOPNOTSUPP && ibv_set_ece(qp, &ece) == EOPNOTSUPP);
	CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_SEND, 0) == 0);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(ibv_destroy_qp(NULL) == EINVAL);

	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_UD,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = small,
					 .comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 .pd = api_pd};
	CHECK_ERRNO(!ibv_create_qp_ex(api_ctx, &ex), EINVAL); /* no PD */
	ex.comp_mask |= IBV_QP_INIT_ATTR_PD;
	CHECK_ERRNO((ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ, !ibv_create_qp_ex(api_ctx, &ex)), EOPNOTSUPP);
	ex.send_ops_flags = IBV_QP_EX_WITH_SEND;
	ex.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	CHECK_ERRNO((ex.create_flags = IBV_QP_CREATE_SCATTER_FCS, !ibv_create_qp_ex(api_ctx, &ex)), EOPNOTSUPP);
	ex.create_flags = 0;
	qp = ibv_create_qp_ex(api_ctx, &ex);
	CHECK(qp && ibv_qp_to_qp_ex(qp) == (struct ibv_qp_ex *)qp);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(foreign));
}

void test_qp_modify(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, NULL, &small);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	CHECK(ibv_modify_qp(NULL, &attr, to_init) == EINVAL);
	CHECK(ibv_modify_qp(qp, NULL, to_init) == EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, to_init & ~IBV_QP_PORT) == EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, to_init | 1 << 24) == EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, to_init | IBV_QP_RATE_LIMIT) == EOPNOTSUPP);
	attr.port_num = 2;
	CHECK(ibv_modify_qp(qp, &attr, to_init) == EINVAL);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1};
	CHECK(ibv_modify_qp(qp, &attr, to_init) == EINVAL);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL);
	CHECK(qp->state == IBV_QPS_RESET);
	CHECK(!qp_to_init(qp) && qp->state == IBV_QPS_INIT);

	/* RoCE needs a GRH. The GID index must exist, and have the destination's family. */
	int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num};
	ah_self(&attr.ah_attr);
	attr.ah_attr.is_global = 0;
	CHECK(ibv_modify_qp(qp, &attr, to_rtr) == EINVAL);
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.sgid_index = 200;
	CHECK(ibv_modify_qp(qp, &attr, to_rtr) == EINVAL);
	attr.ah_attr.grh.sgid_index = 0;
	attr.ah_attr.port_num = 3;
	CHECK(ibv_modify_qp(qp, &attr, to_rtr) == EINVAL);
	attr.ah_attr.port_num = 1;
	attr.path_mtu = 9;
	CHECK(ibv_modify_qp(qp, &attr, to_rtr) == EINVAL);
	CHECK(qp->state == IBV_QPS_INIT);
	CHECK(!qp_to_rtr(qp, qp->qp_num) && qp->state == IBV_QPS_RTR);
	CHECK(!qp_to_rts(qp) && qp->state == IBV_QPS_RTS);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET};
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE) && qp->state == IBV_QPS_RESET);
	struct ibv_qp_init_attr init;
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV, &init));
	CHECK(!attr.dest_qp_num && !attr.ah_attr.is_global && !attr.ah_attr.grh.hop_limit); /* the peer is forgotten */
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

void test_qp_query(void)
{
	struct pair p;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	pair_open(&p, 0);
	CHECK(ibv_query_qp(NULL, &attr, 0, &init) == EINVAL);
	CHECK(ibv_query_qp(p.qp[0], NULL, 0, &init) == EINVAL);
	CHECK(!ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.cur_qp_state == IBV_QPS_RTS && attr.path_mtu == IBV_MTU_1024);
	CHECK(attr.dest_qp_num == p.qp[1]->qp_num && attr.timeout == 14 && attr.retry_cnt == 7 && attr.rnr_retry == 7);
	CHECK(attr.ah_attr.is_global && attr.ah_attr.port_num == 1 && attr.port_num == 1 && attr.min_rnr_timer == 12);
	CHECK(attr.qp_access_flags ==
	      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL));
	CHECK(attr.max_rd_atomic == 1 && attr.max_dest_rd_atomic == 1);
	CHECK(init.qp_type == IBV_QPT_RC && init.send_cq == p.cq[0] && init.cap.max_send_wr >= 16);
	CHECK(init.cap.max_inline_data >= 64 && attr.cap.max_recv_wr >= 16);
	pair_close(&p);
}

void test_qp_destroy_purges(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 64, NULL, NULL, 0);
	struct ibv_qp *qp[3];
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};
	for (int i = 0; i < 3; i++) {
		qp[i] = qp_new(IBV_QPT_RC, cq, NULL, &small);
		CHECK(!qp_to_init(qp[i]));
	}
	for (int n = 0; n < 4; n++) {
		for (int i = 0; i < 3; i++) {
			wr.wr_id = (uint64_t)i;
			CHECK(!ibv_post_recv(qp[i], &wr, &bad));
		}
	}
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_modify_qp(qp[i], &error, IBV_QP_STATE));
	CHECK(!ibv_destroy_qp(qp[0]));
	CHECK(!ibv_modify_qp(qp[2], &reset, IBV_QP_STATE));
	struct ibv_wc wc;
	for (int n = 0; n < 4; n++)
		CHECK(cq_wait(cq, &wc) && wc.wr_id == 1 && wc.qp_num == qp[1]->qp_num);
	CHECK(cq_quiet(cq));
	CHECK(!ibv_destroy_qp(qp[1]) && !ibv_destroy_qp(qp[2]) && !ibv_destroy_cq(cq));
}

void test_mcast(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0);
	struct ibv_qp *ud = qp_new(IBV_QPT_UD, cq, NULL, &small), *rc = qp_new(IBV_QPT_RC, cq, NULL, &small);
	union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}}, unicast;
	CHECK(!ibv_query_gid(api_ctx, 1, 0, &unicast));
	CHECK(ibv_attach_mcast(rc, &group, 0) == EINVAL);
	CHECK(ibv_attach_mcast(ud, &unicast, 0) == EINVAL);
	CHECK(ibv_attach_mcast(ud, NULL, 0) == EINVAL && ibv_attach_mcast(NULL, &group, 0) == EINVAL);
	CHECK(ibv_detach_mcast(ud, &group, 0) == EINVAL);
	CHECK(!ibv_attach_mcast(ud, &group, 0));
	CHECK(!ibv_attach_mcast(ud, &group, 0)); /* attached already */
	CHECK(!ibv_detach_mcast(ud, &group, 0));
	CHECK(ibv_detach_mcast(ud, &group, 0) == EINVAL);
	CHECK(!ibv_attach_mcast(ud, &group, 0));
	CHECK(ibv_destroy_qp(ud) == EBUSY);
	CHECK(!ibv_detach_mcast(ud, &group, 0));
	CHECK(!ibv_destroy_qp(ud) && !ibv_destroy_qp(rc) && !ibv_destroy_cq(cq));
}
