/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api.h"

struct ibv_device *api_device;
struct ibv_context *api_ctx, *api_other;
struct ibv_pd *api_pd;

static int failures;

void check_at(bool ok, const char *file, int line, const char *text)
{
	if (ok)
		return;
	printf("# %s:%d: %s (errno %s)\n", file, line, text, strerrorname_np(errno));
	failures++;
}

/* ---- shared by the tests ---- */

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + 10000;
	int n;
	while (!(n = ibv_poll_cq(cq, 1, wc)) && now_ms() < end)
		;
	return n == 1;
}

bool cq_quiet(struct ibv_cq *cq)
{
	uint64_t end = now_ms() + 100;
	struct ibv_wc wc;
	int n;
	while (!(n = ibv_poll_cq(cq, 1, &wc)) && now_ms() < end)
		;
	return n == 0;
}

void ah_self(struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.sgid_index = 0, .hop_limit = 64}};
	CHECK(!ibv_query_gid(api_ctx, 1, 0, &attr->grh.dgid));
}

struct ibv_qp *qp_new(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {.qp_type = type, .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = *cap};
	return ibv_create_qp(api_pd, &init);
}

int qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x1234,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_FLUSH_GLOBAL,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	return ibv_modify_qp(qp, &attr, mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int qp_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = dest_qpn,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12};
	int mask = IBV_QP_STATE;
	ah_self(&attr.ah_attr);
	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

static struct ibv_qp *pair_qp(struct ibv_cq *cq, uint64_t ops)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
	if (!ops)
		return qp_new(IBV_QPT_RC, cq, NULL, &cap);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = api_pd,
		.send_ops_flags = ops,
	};
	return ibv_create_qp_ex(api_ctx, &init);
}

void pair_open(struct pair *p, uint64_t ops)
{
	p->buf = calloc(1, API_BUFFER_SIZE);
	p->mr = ibv_reg_mr(api_pd, p->buf, API_BUFFER_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL);
	for (int i = 0; i < 2; i++) {
		p->cq[i] = ibv_create_cq(api_ctx, 128, NULL, NULL, 0);
		p->qp[i] = p->cq[i] ? pair_qp(p->cq[i], ops) : NULL;
	}
	if (!p->mr || !p->qp[0] || !p->qp[1]) {
		printf("Bail out! no pair of queue pairs: %s\n", strerror(errno));
		exit(1);
	}
	for (int i = 0; i < 2; i++) {
		CHECK(!qp_to_init(p->qp[i]));
		CHECK(!qp_to_rtr(p->qp[i], p->qp[!i]->qp_num));
		CHECK(!qp_to_rts(p->qp[i]));
	}
}

void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_destroy_qp(p->qp[i]));
		CHECK(!ibv_destroy_cq(p->cq[i]));
	}
	CHECK(!ibv_dereg_mr(p->mr));
	free(p->buf);
}

/* ---- running them ---- */

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"device list", test_device_list},
	{"a thread cancelled in reading the device list", test_device_list_cancel},
	{"contexts", test_device_contexts},
	{"device queries", test_device_queries},
	{"port, GIDs, P_Key", test_port_tables},
	{"sysfs", test_sysfs},
	{"what is not supported", test_unsupported},
	{"protection domains", test_pd},
	{"regions: ranges", test_mr_ranges},
	{"regions: empty", test_mr_empty},
	{"regions: access", test_mr_access},
	{"regions: registering again", test_mr_rereg},
	{"regions: advice", test_mr_advise},
	{"memory windows", test_mw},
	{"keys of memory windows", test_mw_rkey},
	{"CQ: creating", test_cq_create},
	{"CQ: in use", test_cq_in_use},
	{"CQ: resizing", test_cq_resize},
	{"CQ: field by field", test_cq_ex},
	{"CQ: what is destroyed while it is read", test_cq_ex_destroys},
	{"CQ: what two threads destroy while one reads", test_cq_ex_destroys_beside_another},
	{"CQ: timestamps", test_cq_timestamps},
	{"CQ: overrun", test_cq_overrun},
	{"SRQ", test_srq},
	{"SRQ: full", test_srq_full},
	{"QP: creating", test_qp_create},
	{"QP: modifying", test_qp_modify},
	{"QP: querying", test_qp_query},
	{"QP: destroying takes its completions", test_qp_destroy_purges},
	{"multicast", test_mcast},
	{"post_send: bad requests", test_post_send_errors},
	{"post_send: full queue", test_post_send_full},
	{"post_recv: full queue", test_post_recv_full},
	{"posting in the wrong state", test_post_states},
	{"ibv_wr_*: sending", test_builder_sends},
	{"ibv_wr_*: FLUSH", test_builder_flush},
	{"ibv_wr_*: mistakes", test_builder_mistakes},
	{"ibv_wr_*: full queue", test_builder_full},
	{"completion events", test_channel_events},
	{"completion events that were not fetched", test_channel_purge},
	{"completion events on both sides of fork()", test_channel_forked},
	{"fork() while another thread is in the middle", test_forked_in_the_middle},
	{"fork() while another thread is in a channel", test_forked_in_a_channel},
	{"a channel that becomes non-blocking", test_channel_becomes_nonblocking},
	{"a cancelled waiter", test_channel_cancel},
	{"a cancelled destroyer", test_destroy_cancel},
	{"signals and completion events", test_channel_signals},
	{"signals and async events", test_async_signals},
	{"destroying waits for acknowledgements", test_channel_acks},
	{"async events", test_async_events},
	{"posts right before exit(), _exit(), quick_exit()", test_exit_sends},
	{"objects of a closed context", test_closed_context},
	{"address handles", test_ah},
	{"address handles from completions", test_ah_from_wc},
};
#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

int main(void)
{
	int failed = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct ibv_device **list = ibv_get_device_list(NULL);
	api_device = list ? list[0] : NULL;
	api_ctx = api_device ? ibv_open_device(api_device) : NULL;
	api_other = api_ctx ? ibv_open_device(api_device) : NULL;
	api_pd = api_other ? ibv_alloc_pd(api_ctx) : NULL;
	if (!api_pd) {
		printf("Bail out! no device: %s\n", strerror(errno));
		return 1;
	}
	ibv_free_device_list(list);
	printf("1..%zu\n", TEST_COUNT);
	for (size_t i = 0; i < TEST_COUNT; i++) {
		failures = 0;
		tests[i].run();
		failed |= failures;
		printf("%sok %zu %s\n", failures ? "not " : "", i + 1, tests[i].name);
	}
	CHECK(!ibv_dealloc_pd(api_pd)); /* fails if a test has left an object */
	CHECK(!ibv_close_device(api_other));
	CHECK(!ibv_close_device(api_ctx));
	return failed || failures;
}
