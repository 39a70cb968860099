/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_wr_*: batches, inline data, and mistakes that ibv_wr_complete() reports. */
#include "api.h"

#define OPS                                                                                                            \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_FLUSH)

static void next(struct ibv_qp_ex *qp, uint64_t wr_id, unsigned flags)
{
	qp->wr_id = wr_id;
	qp->wr_flags = flags;
}

void test_builder_sends(void)
{
	struct pair p;
	pair_open(&p, OPS);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.qp[0]);
	struct ibv_sge to = {(uintptr_t)p.buf + 4096, 4096, p.mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 50, .sg_list = &to, .num_sge = 1}, *bad;
	struct ibv_wc wc;
	CHECK(!ibv_post_recv(p.qp[1], &recv, &bad));

	/* A batch of five: inline write from two buffers, write, read, add, and a send at the end. */
	uint64_t counter = 41;
	struct ibv_data_buf bufs[] = {{"hello ", 6}, {NULL, 0}, {"world", 6}};
	struct ibv_sge halves[] = {{(uintptr_t)p.buf, 4, p.mr->lkey}, {(uintptr_t)p.buf + 8, 4, p.mr->lkey}};
	memcpy(p.buf, "abcd----efgh", 12);
	memcpy(p.buf + 1024, &counter, sizeof(counter));
	ibv_wr_start(qp);
	next(qp, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qp, p.mr->rkey, (uintptr_t)p.buf + 256);
	ibv_wr_set_inline_data_list(qp, 3, bufs);
	next(qp, 2, 0);
	ibv_wr_rdma_write(qp, p.mr->rkey, (uintptr_t)p.buf + 512);
	ibv_wr_set_sge_list(qp, 2, halves);
	next(qp, 3, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(qp, p.mr->rkey, (uintptr_t)p.buf + 256);
	ibv_wr_set_sge(qp, p.mr->lkey, (uintptr_t)p.buf + 768, 12);
	next(qp, 4, IBV_SEND_SIGNALED);
	ibv_wr_atomic_fetch_add(qp, p.mr->rkey, (uintptr_t)p.buf + 1024, 1);
	ibv_wr_set_sge(qp, p.mr->lkey, (uintptr_t)p.buf + 1032, 8);
	next(qp, 5, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(qp, 0x01020304);
	ibv_wr_set_inline_data(qp, "end", 4);
	CHECK(!ibv_wr_complete(qp));
	for (uint64_t id = 1; id <= 5; id++) {
		if (id != 2)
			CHECK(cq_wait(p.cq[0], &wc) && wc.wr_id == id && wc.status == IBV_WC_SUCCESS);
	}
	CHECK(cq_wait(p.cq[1], &wc) && wc.wr_id == 50 && wc.byte_len == 4 && (wc.wc_flags & IBV_WC_WITH_IMM));
	CHECK(wc.imm_data == 0x01020304 && !strcmp(p.buf + 4096, "end"));
	CHECK(!strcmp(p.buf + 256, "hello world") && !memcmp(p.buf + 512, "abcdefgh", 8));
	CHECK(!strcmp(p.buf + 768, "hello world"));
	memcpy(&counter, p.buf + 1024, sizeof(counter));
	CHECK(counter == 42);

	/* An empty batch, and an aborted one. */
	ibv_wr_start(qp);
	CHECK(!ibv_wr_complete(qp));
	ibv_wr_start(qp);
	next(qp, 6, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qp, p.mr->rkey, (uintptr_t)p.buf);
	ibv_wr_abort(qp);
	CHECK(cq_quiet(p.cq[0]));
	pair_close(&p);
}

static enum ibv_wc_status flush(struct pair *p, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->qp[0]);
	struct ibv_wc wc;
	ibv_wr_start(qp);
	next(qp, 1, IBV_SEND_SIGNALED);
	ibv_wr_flush(qp, p->mr->rkey, (uintptr_t)p->buf, len, type, level);
	CHECK(!ibv_wr_complete(qp));
	CHECK(cq_wait(p->cq[0], &wc) && wc.wr_id == 1);
	CHECK(wc.status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_FLUSH);
	return wc.status;
}

void test_builder_flush(void)
{
	struct ibv_device_attr_ex attr;
	struct pair p;
	CHECK(!ibv_query_device_ex(api_ctx, NULL, &attr) && (attr.device_cap_flags_ex & VB_DEVICE_FLUSH_GLOBAL));
	pair_open(&p, OPS);
	CHECK(flush(&p, 100, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_SUCCESS);
	CHECK(flush(&p, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR) == IBV_WC_SUCCESS);
	CHECK(flush(&p, API_BUFFER_SIZE + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
	/* Valid, but this device does not have it. */
	pair_open(&p, OPS);
	CHECK(flush(&p, 100, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE) == IBV_WC_REM_INV_REQ_ERR);
	pair_close(&p);
}

/* After a good request and `mistake`, ibv_wr_complete() fails with EINVAL, and posts nothing. */
static void check_mistake(struct pair *p, void (*mistake)(struct pair *, struct ibv_qp_ex *), int line)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->qp[0]);
	ibv_wr_start(qp);
	next(qp, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qp, p->mr->rkey, (uintptr_t)p->buf);
	ibv_wr_set_sge(qp, p->mr->lkey, (uintptr_t)p->buf, 8);
	next(qp, 2, IBV_SEND_SIGNALED);
	mistake(p, qp);
	check_at(ibv_wr_complete(qp) == EINVAL, __FILE__, line, "the mistake is reported");
	check_at(cq_quiet(p->cq[0]), __FILE__, line, "nothing is posted");
}

static void not_asked_for(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_send_inv(qp, 1);
}

static void too_much_inline(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, p->buf, 32768);
}

static void too_many_sges(struct pair *p, struct ibv_qp_ex *qp)
{
	struct ibv_sge sges[40] = {{0}};
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 40, sges);
}

static void address_on_rc(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, NULL, 1, 1);
}

static void unknown_flag(struct pair *p, struct ibv_qp_ex *qp)
{
	next(qp, 2, IBV_SEND_IP_CSUM);
	ibv_wr_send(qp);
}

static void odd_atomic(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_atomic_fetch_add(qp, p->mr->rkey, (uintptr_t)p->buf + 4, 1);
	ibv_wr_set_sge(qp, p->mr->lkey, (uintptr_t)p->buf, 8);
}

static void inline_read(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_rdma_read(qp, p->mr->rkey, (uintptr_t)p->buf);
	ibv_wr_set_inline_data(qp, p->buf, 8);
}

static void flush_of_no_kind(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_flush(qp, p->mr->rkey, (uintptr_t)p->buf, 8, 0, IBV_FLUSH_RANGE);
}

static void flush_of_unknown_level(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_flush(qp, p->mr->rkey, (uintptr_t)p->buf, 8, IBV_FLUSH_GLOBAL, 2);
}

static void flush_too_long(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_flush(qp, p->mr->rkey, (uintptr_t)p->buf, (size_t)1 << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

static void flush_with_data(struct pair *p, struct ibv_qp_ex *qp)
{
	ibv_wr_flush(qp, p->mr->rkey, (uintptr_t)p->buf, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(qp, p->mr->lkey, (uintptr_t)p->buf, 8);
}

void test_builder_mistakes(void)
{
	struct pair p;
	pair_open(&p, OPS);
	check_mistake(&p, not_asked_for, __LINE__);
	check_mistake(&p, too_much_inline, __LINE__);
	check_mistake(&p, too_many_sges, __LINE__);
	check_mistake(&p, address_on_rc, __LINE__);
	check_mistake(&p, unknown_flag, __LINE__);
	check_mistake(&p, odd_atomic, __LINE__);
	check_mistake(&p, inline_read, __LINE__);
	check_mistake(&p, flush_of_no_kind, __LINE__);
	check_mistake(&p, flush_of_unknown_level, __LINE__);
	check_mistake(&p, flush_too_long, __LINE__);
	check_mistake(&p, flush_with_data, __LINE__);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.qp[0]);
	ibv_wr_start(qp);
	ibv_wr_set_sge(qp, p.mr->lkey, (uintptr_t)p.buf, 8); /* there is no request */
	CHECK(ibv_wr_complete(qp) == EINVAL);
	pair_close(&p);
}

/* A batch that does not fit is refused as a whole (ibv_wr_post(3)), whether the queue is too small or full at the
 * moment. No request is lost or posted twice. */
void test_builder_full(void)
{
	struct pair p;
	struct ibv_wc wc;
	struct ibv_qp_attr attr, error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	pair_open(&p, OPS);
	CHECK(!ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init));
	unsigned room = init.cap.max_send_wr;
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p.qp[0]);
	const struct {
		unsigned first, count;
		int result;
	} batches[] = {
		{1000, room + 1, ENOMEM}, {0, room - 1, 0}, {2000, 2, ENOMEM}, {room - 1, 1, 0}, {3000, 1, ENOMEM}};
	for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
		ibv_wr_start(qp);
		for (unsigned i = 0; i < batches[b].count; i++) {
			next(qp, batches[b].first + i, IBV_SEND_SIGNALED);
			ibv_wr_send(qp); /* no receive is posted yet */
			ibv_wr_set_inline_data(qp, "x", 1);
		}
		CHECK(ibv_wr_complete(qp) == batches[b].result);
	}
	CHECK(!ibv_modify_qp(p.qp[0], &error, IBV_QP_STATE));
	for (unsigned i = 0; i < room; i++)
		CHECK(cq_wait(p.cq[0], &wc) && wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(cq_quiet(p.cq[0]));
	pair_close(&p);
}
