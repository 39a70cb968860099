/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles, and address handles from received datagrams. */
#include "api.h"

#define QKEY 0x1234

void test_ah(void)
{
	struct ibv_ah_attr attr;
	ah_self(&attr);
	CHECK_ERRNO(!ibv_create_ah(NULL, &attr), EINVAL);
	CHECK_ERRNO(!ibv_create_ah(api_pd, NULL), EINVAL);
	CHECK_ERRNO((attr.is_global = 0, !ibv_create_ah(api_pd, &attr)), EINVAL);
	attr.is_global = 1;
	CHECK_ERRNO((attr.port_num = 2, !ibv_create_ah(api_pd, &attr)), EINVAL);
	attr.port_num = 1;
	CHECK_ERRNO((attr.grh.sgid_index = 255, !ibv_create_ah(api_pd, &attr)), EINVAL);
	attr.grh.sgid_index = 0;
	struct ibv_ah *ah = ibv_create_ah(api_pd, &attr);
	CHECK(ah && ah->context == api_ctx && ah->pd == api_pd);
	CHECK(!ibv_destroy_ah(ah));
	CHECK(ibv_destroy_ah(NULL) == EINVAL);

	uint8_t mac[6];
	uint16_t vlan;
	CHECK(!ibv_resolve_eth_l2_from_gid(api_ctx, &attr, mac, &vlan) && vlan == 0xffff);
	attr.grh.dgid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 129, 2, 3}};
	CHECK(!ibv_resolve_eth_l2_from_gid(api_ctx, &attr, mac, &vlan) && !memcmp(mac, "\x01\x00\x5e\x01\x02\x03", 6));
	attr.is_global = 0;
	CHECK(ibv_resolve_eth_l2_from_gid(api_ctx, &attr, mac, &vlan) == EINVAL);
}

static struct ibv_qp *ud_ready(struct ibv_cq *cq)
{
	struct ibv_qp_cap cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_UD, cq, NULL, &cap);
	CHECK(!qp_to_init(qp) && !qp_to_rtr(qp, 0) && !qp_to_rts(qp));
	return qp;
}

/* Sends a datagram over GID `index`, and answers to its source address. */
static void ping(struct ibv_qp *qp[2], struct ibv_cq *cq[2], struct ibv_mr *mr, uint8_t *buf, uint8_t index)
{
	struct ibv_ah_attr attr;
	struct ibv_wc wc;
	ah_self(&attr);
	attr.grh.sgid_index = index;
	CHECK(!ibv_query_gid(api_ctx, 1, index, &attr.grh.dgid));
	struct ibv_ah *ah = ibv_create_ah(api_pd, &attr);
	CHECK(ah);
	for (int i = 0; i < 2 && ah; i++) {
		struct ibv_sge to = {(uintptr_t)buf, 256, mr->lkey}, from = {(uintptr_t)buf + 1024, 8, mr->lkey};
		struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1}, *bad_recv;
		struct ibv_send_wr send = {.wr_id = 2,
					   .sg_list = &from,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.ud = {.ah = ah, .remote_qpn = qp[!i]->qp_num, .remote_qkey = QKEY}},
				   *bad;
		CHECK(!ibv_post_recv(qp[!i], &recv, &bad_recv) && !ibv_post_send(qp[i], &send, &bad));
		CHECK(cq_wait(cq[i], &wc) && wc.status == IBV_WC_SUCCESS && wc.wr_id == 2);
		CHECK(cq_wait(cq[!i], &wc) && wc.status == IBV_WC_SUCCESS && wc.byte_len == 48 &&
		      wc.src_qp == qp[i]->qp_num);
		CHECK(wc.wc_flags & IBV_WC_GRH);
		CHECK(!ibv_destroy_ah(ah));
		struct ibv_ah_attr back;
		CHECK(!ibv_init_ah_from_wc(api_ctx, 1, &wc, (struct ibv_grh *)buf, &back));
		CHECK(back.is_global && back.grh.sgid_index == index && !memcmp(&back.grh.dgid, &attr.grh.dgid, 16));
		ah = ibv_create_ah_from_wc(api_pd, &wc, (struct ibv_grh *)buf, 1);
		CHECK(ah);
	}
	if (ah)
		CHECK(!ibv_destroy_ah(ah));
}

void test_ah_from_wc(void)
{
	static uint8_t buf[2048];
	struct ibv_gid_entry gids[64];
	ssize_t count = ibv_query_gid_table(api_ctx, gids, 64, 0);
	struct ibv_cq *cq[2] = {ibv_create_cq(api_ctx, 16, NULL, NULL, 0), ibv_create_cq(api_ctx, 16, NULL, NULL, 0)};
	struct ibv_qp *qp[2] = {ud_ready(cq[0]), ud_ready(cq[1])};
	struct ibv_mr *mr = ibv_reg_mr(api_pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	for (ssize_t i = 0; i < count; i++)
		ping(qp, cq, mr, buf, (uint8_t)i);

	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr attr;
	memset(buf, 0, 40);
	CHECK_ERRNO(ibv_init_ah_from_wc(api_ctx, 1, &wc, (struct ibv_grh *)buf, &attr) == -1, EPROTONOSUPPORT);
	CHECK_ERRNO(ibv_init_ah_from_wc(api_ctx, 1, &wc, NULL, &attr) == -1, EINVAL);
	CHECK_ERRNO(ibv_init_ah_from_wc(api_ctx, 7, &wc, (struct ibv_grh *)buf, &attr) == -1, EINVAL);
	wc.wc_flags = 0;
	CHECK(!ibv_init_ah_from_wc(api_ctx, 1, &wc, NULL, &attr) && !attr.is_global);
	CHECK_ERRNO(!ibv_create_ah_from_wc(api_pd, &wc, NULL, 1), EINVAL); /* no GRH, so no address */

	/* Sends without an address handle, or with one of another context, are refused. */
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .wr.ud = {.remote_qpn = 1}}, *bad = NULL;
	CHECK(ibv_post_send(qp[0], &send, &bad) == EINVAL && bad == &send);
	struct ibv_pd *foreign_pd = ibv_alloc_pd(api_other);
	ah_self(&attr);
	send.wr.ud.ah = ibv_create_ah(foreign_pd, &attr);
	CHECK(send.wr.ud.ah && ibv_post_send(qp[0], &send, &bad) == EINVAL);
	CHECK(!ibv_destroy_ah(send.wr.ud.ah) && !ibv_dealloc_pd(foreign_pd));
	CHECK(!ibv_dereg_mr(mr));
	for (int i = 0; i < 2; i++)
		CHECK(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]));
}
