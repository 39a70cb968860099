/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#include <pthread.h>
#include <unistd.h>

#include "api.h"

static const struct ibv_qp_cap small = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};

void test_cq_create(void)
{
	struct ibv_device_attr attr;
	CHECK(!ibv_query_device(api_ctx, &attr));
	struct ibv_comp_channel *foreign = ibv_create_comp_channel(api_other);
	CHECK_ERRNO(!ibv_create_cq(NULL, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, -1, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, 1, NULL, NULL, -1), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, 1, NULL, NULL, api_ctx->num_comp_vectors), EINVAL);
	CHECK_ERRNO(!ibv_create_cq(api_ctx, 1, NULL, foreign, 0), EINVAL);
	CHECK(!ibv_destroy_comp_channel(foreign));
	CHECK(ibv_destroy_cq(NULL) == EINVAL);

	int context;
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 5, &context, NULL, 0);
	CHECK(cq && cq->cqe >= 5 && cq->cq_context == &context && cq->context == api_ctx && !cq->channel);
	struct ibv_wc wc;
	CHECK(ibv_poll_cq(cq, 0, NULL) == 0);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	CHECK(ibv_poll_cq(cq, -1, &wc) < 0);
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	CHECK(ibv_modify_cq(cq, &moderate) == EOPNOTSUPP);
	CHECK(!ibv_destroy_cq(cq));
}

void test_cq_in_use(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(api_ctx);
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 8, NULL, channel, 0);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, NULL, &small);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(ibv_destroy_comp_channel(NULL) == EINVAL);
}

void test_cq_resize(void)
{
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 8, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_send_wr = 8, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, NULL, &cap);
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_wc wc;
	CHECK(ibv_resize_cq(cq, 0) == EINVAL && ibv_resize_cq(NULL, 1) == EINVAL);
	CHECK(!ibv_resize_cq(cq, 100) && cq->cqe >= 100);
	/* 64 completions: flushed receives. */
	CHECK(!qp_to_init(qp));
	for (wr.wr_id = 0; wr.wr_id < 64; wr.wr_id++)
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(ibv_resize_cq(cq, 10) == EINVAL && cq->cqe >= 100);
	CHECK(!ibv_resize_cq(cq, 200) && cq->cqe >= 200);
	for (uint64_t i = 0; i < 64; i++)
		CHECK(cq_wait(cq, &wc) && wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR && wc.qp_num == qp->qp_num);
	CHECK(cq_quiet(cq));
	CHECK(!ibv_resize_cq(cq, 1) && cq->cqe >= 1);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void flush_one(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;
	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

void test_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_CVLAN};
	CHECK_ERRNO(!ibv_create_cq_ex(api_ctx, &attr), EOPNOTSUPP);
	attr.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	attr.cqe = 0;
	CHECK_ERRNO(!ibv_create_cq_ex(api_ctx, &attr), EINVAL);
	attr.cqe = UINT32_MAX;
	CHECK_ERRNO(!ibv_create_cq_ex(api_ctx, &attr), EINVAL);
	attr.cqe = 8;
	attr.comp_mask = 1 << 7;
	CHECK_ERRNO(!ibv_create_cq_ex(api_ctx, &attr), EINVAL);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	CHECK_ERRNO(!ibv_create_cq_ex(api_ctx, &attr), EOPNOTSUPP);
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct ibv_cq_ex *cq = ibv_create_cq_ex(api_ctx, &attr);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL, &small);

	struct ibv_poll_cq_attr poll = {0}, unknown = {.comp_mask = 1};
	CHECK(ibv_start_poll(cq, &unknown) == EINVAL);
	CHECK(ibv_start_poll(cq, &poll) == ENOENT);
	ibv_end_poll(cq); /* not needed, but harmless */
	CHECK(ibv_start_poll(cq, &poll) == ENOENT);

	CHECK(!qp_to_init(qp));
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	flush_one(qp, 11);
	flush_one(qp, 12);
	flush_one(qp, 13);
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(!ibv_start_poll(cq, &poll));
	CHECK(cq->wr_id == 11 && cq->status == IBV_WC_WR_FLUSH_ERR && ibv_wc_read_qp_num(cq) == qp->qp_num);
	CHECK(ibv_wc_read_vendor_err(cq) == 0 && ibv_wc_read_completion_ts(cq) != 0);
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) > 1600000000ull * 1000000000);
	CHECK(!ibv_next_poll(cq) && cq->wr_id == 12);
	ibv_end_poll(cq);
	/* ibv_poll_cq() gets the rest. */
	struct ibv_wc wc;
	CHECK(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1 && wc.wr_id == 13);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* A program may reset or destroy a QP because of a completion that it is just reading, and resize the CQ. What the QP
 * had completed is gone then, but for what is being read. */
void test_cq_ex_destroys(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(api_ctx, &attr);
	struct ibv_cq *plain = ibv_cq_ex_to_cq(cq);
	struct ibv_qp *first = qp_new(IBV_QPT_RC, plain, NULL, &small),
		      *second = qp_new(IBV_QPT_RC, plain, NULL, &small);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_poll_cq_attr poll = {0};
	CHECK(!qp_to_init(first) && !qp_to_init(second));
	CHECK(!ibv_modify_qp(first, &error, IBV_QP_STATE) && !ibv_modify_qp(second, &error, IBV_QP_STATE));
	for (uint64_t i = 0; i < 3; i++) {
		flush_one(first, i);
		flush_one(second, 10 + i);
	}
	CHECK(!ibv_start_poll(cq, &poll) && cq->wr_id == 0);
	CHECK(!ibv_modify_qp(first, &reset, IBV_QP_STATE));
	CHECK(cq->wr_id == 0 && ibv_wc_read_qp_num(cq) == first->qp_num);
	CHECK(!ibv_next_poll(cq) && cq->wr_id == 10);
	CHECK(!ibv_resize_cq(plain, 16));
	CHECK(!ibv_next_poll(cq) && cq->wr_id == 11);
	CHECK(!ibv_destroy_qp(first) && !ibv_destroy_qp(second));
	CHECK(cq->wr_id == 11 && ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	CHECK(ibv_start_poll(cq, &poll) == ENOENT);
	CHECK(!ibv_destroy_cq(plain));
}

static void *destroy_qp(void *qp)
{
	CHECK(!ibv_destroy_qp(qp));
	return NULL;
}

/* While another thread destroys a QP with the same two CQs, and waits for the end of that poll. */
static void destroys_beside_another(struct ibv_cq *polled, struct ibv_cq *other)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = other, .recv_cq = polled, .cap = small};
	struct ibv_qp *mine = ibv_create_qp(api_pd, &init), *theirs = ibv_create_qp(api_pd, &init);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)polled;
	pthread_t thread;
	CHECK(!qp_to_init(mine) && !ibv_modify_qp(mine, &error, IBV_QP_STATE));
	flush_one(mine, 5);
	CHECK(!ibv_start_poll(cq, &poll) && cq->wr_id == 5);
	CHECK(!pthread_create(&thread, NULL, destroy_qp, theirs));
	usleep(20000); /* it mostly waits by then; the result is the same if it does not */
	CHECK(!ibv_destroy_qp(mine));
	ibv_end_poll(cq);
	CHECK(!pthread_join(thread, NULL));
}

void test_cq_ex_destroys_beside_another(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq *a = ibv_cq_ex_to_cq(ibv_create_cq_ex(api_ctx, &attr));
	struct ibv_cq *b = ibv_cq_ex_to_cq(ibv_create_cq_ex(api_ctx, &attr));
	destroys_beside_another(a, b);
	destroys_beside_another(b, a);
	CHECK(!ibv_destroy_cq(a) && !ibv_destroy_cq(b));
}

/* The times of 16,000 completions never go back: not the device's, and not the wall clock's. */
void test_cq_timestamps(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(api_ctx, &attr);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL, &small);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_poll_cq_attr poll = {0};
	uint64_t ts = 0, wall = 0;
	unsigned seen = 0, back = 0;
	CHECK(!qp_to_init(qp) && !ibv_modify_qp(qp, &error, IBV_QP_STATE));
	for (int round = 0; round < 4000; round++) {
		for (uint64_t i = 0; i < 4; i++)
			flush_one(qp, i);
		int err = ibv_start_poll(cq, &poll);
		for (; !err; err = ibv_next_poll(cq), seen++) {
			uint64_t this_ts = ibv_wc_read_completion_ts(cq);
			uint64_t this_wall = ibv_wc_read_completion_wallclock_ns(cq);
			back += this_ts < ts || this_wall < wall;
			ts = this_ts;
			wall = this_wall;
		}
		ibv_end_poll(cq);
	}
	CHECK(seen == 16000);
	CHECK(back == 0);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Overrun of a CQ: the event CQ_ERR; the entries before it can be polled; later polls fail. */
void test_cq_overrun(void)
{
	static const struct ibv_qp_cap deep = {.max_recv_wr = 64, .max_recv_sge = 1};
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 4, NULL, NULL, 0);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, NULL, &deep);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct ibv_wc wc;
	bool reported = false;
	CHECK(!qp_to_init(qp) && cq->cqe < 64);
	for (uint64_t i = 0; i < 64; i++)
		flush_one(qp, i);
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	while (!reported && !ibv_get_async_event(api_ctx, &event)) {
		reported = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
		ibv_ack_async_event(&event);
	}
	CHECK(reported);
	for (int i = 0; i < cq->cqe; i++)
		CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == (uint64_t)i && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_poll_cq(cq, 1, &wc) < 0);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}
