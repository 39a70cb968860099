/* SPDX-License-Identifier: BSD-2-Clause */
#include "loopback.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ATOMIC WRITE and FLUSH are younger than the others. The device says whether it has them, by flags that only the
 * kernel's <rdma/ib_user_verbs.h> names so far. A QP that is to send them must say so when it is made. */
#define DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

static void create_qp(const struct bare *bare, struct loopback_side *side)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.pd = bare->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_device_attr_ex device;

	check(ibv_query_device_ex(bare->context, NULL, &device), "ibv_query_device_ex");
	if (device.device_cap_flags_ex & DEVICE_ATOMIC_WRITE)
		init.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#ifdef HAVE_IBV_WR_FLUSH
	if (device.device_cap_flags_ex & DEVICE_FLUSH_GLOBAL) {
		init.send_ops_flags |= IBV_QP_EX_WITH_FLUSH;
		side->flush_right = IBV_ACCESS_FLUSH_GLOBAL;
	}
#endif
	if (init.send_ops_flags)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	side->qp = made(ibv_create_qp_ex(bare->context, &init), "ibv_create_qp_ex");
}

static struct loopback_side open_side(const struct bare *bare, struct ibv_comp_channel *channel)
{
	int access = LOOPBACK_ALL | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	struct loopback_side side = {0};

	side.cq = made(ibv_create_cq(bare->context, 32, NULL, channel, 0), "ibv_create_cq");
	create_qp(bare, &side);
	side.memory = made(aligned_alloc(4096, LOOPBACK_BYTES), "aligned_alloc");
	memset(side.memory, 0, LOOPBACK_BYTES);
	side.mr = made(ibv_reg_mr(bare->pd, side.memory, LOOPBACK_BYTES, access | side.flush_right), "ibv_reg_mr");
	return side;
}

static void close_side(struct loopback_side *side)
{
	check(ibv_destroy_qp(side->qp), "ibv_destroy_qp");
	check(ibv_dereg_mr(side->mr), "ibv_dereg_mr");
	check(ibv_destroy_cq(side->cq), "ibv_destroy_cq");
	free(side->memory);
}

struct loopback loopback_open(const struct arguments *arguments, int qp_access, uint8_t rnr_retry)
{
	struct loopback l = {.bare = bare_open(arguments)};
	struct bare_address a, b;

	l.channel = made(ibv_create_comp_channel(l.bare.context), "ibv_create_comp_channel");
	l.a = open_side(&l.bare, NULL);
	l.b = open_side(&l.bare, l.channel);
	a = bare_address_of(&l.bare, l.a.qp, l.a.mr);
	b = bare_address_of(&l.bare, l.b.qp, l.b.mr);
	bare_to_init(l.a.qp, LOOPBACK_ALL);
	bare_to_init(l.b.qp, qp_access | l.b.flush_right);
	bare_to_rtr(&l.bare, l.a.qp, &b);
	bare_to_rtr(&l.bare, l.b.qp, &a);
	bare_to_rts(l.a.qp, &a, rnr_retry);
	bare_to_rts(l.b.qp, &b, rnr_retry);
	return l;
}

void loopback_close(struct loopback *l)
{
	close_side(&l->a);
	close_side(&l->b);
	check(ibv_destroy_comp_channel(l->channel), "ibv_destroy_comp_channel");
	bare_close(&l->bare);
}

void loopback_post_receive(struct loopback *l)
{
	struct ibv_sge sge = {(uintptr_t)l->b.memory, LOOPBACK_BYTES, l->b.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(ibv_post_recv(l->b.qp, &wr, &bad), "ibv_post_recv");
}

void loopback_post(struct loopback *l, struct ibv_send_wr *wr, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)l->a.memory, bytes, l->a.mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = bytes ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	check(ibv_post_send(l->a.qp, wr, &bad), "ibv_post_send");
}

struct ibv_wc loopback_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	if (n < 0)
		die("ibv_poll_cq failed");
	return wc;
}
