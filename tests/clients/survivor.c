/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * survivor -p PORT [-g GID-INDEX] [SERVER]: the client sends without end, and the server receives, until the server is
 * killed. Then the client's oldest request must fail with RETRY_EXC_ERR, and all others must be flushed, each exactly
 * once and in order. It prints "running" when data flows.
 */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#define DEPTH         16u
#define MESSAGE_BYTES 3000u

static struct ibv_mr *mr;
static uint8_t memory[DEPTH * MESSAGE_BYTES];

static void post(struct ibv_qp *qp, uint64_t wr_id, bool server)
{
	post_message(qp, mr, memory + wr_id % DEPTH * MESSAGE_BYTES, MESSAGE_BYTES, wr_id, server);
}

/* Keeps DEPTH requests posted. Returns the first request that failed. */
static uint64_t stream(struct ibv_qp *qp, struct ibv_cq *cq, bool server, struct ibv_wc *wc)
{
	for (uint64_t next = DEPTH;; next++) {
		cq_next(cq, wc);
		if (wc->wr_id != next - DEPTH)
			die("request %llu completed, expected %llu", (unsigned long long)wc->wr_id,
			    (unsigned long long)(next - DEPTH));
		if (wc->status != IBV_WC_SUCCESS)
			return wc->wr_id;
		if (!server && next == 100) {
			puts("running");
			fflush(stdout);
		}
		post(qp, next, server);
	}
}

static void expect_end(struct ibv_cq *cq, uint64_t failed, const struct ibv_wc *first)
{
	struct ibv_wc wc;

	if (first->status != IBV_WC_RETRY_EXC_ERR)
		die("request %llu: %s", (unsigned long long)failed, ibv_wc_status_str(first->status));
	for (uint64_t i = failed + 1; i < failed + DEPTH; i++) {
		cq_next(cq, &wc);
		if (wc.wr_id != i || wc.status != IBV_WC_WR_FLUSH_ERR)
			die("request %llu: %s; expected request %llu flushed", (unsigned long long)wc.wr_id,
			    ibv_wc_status_str(wc.status), (unsigned long long)i);
	}
	if (ibv_poll_cq(cq, 1, &wc))
		die("too many completions");
}

int main(int argc, char **argv)
{
	const struct retries retries = {.timeout = 15, .retry_cnt = 3, .rnr_retry = 7, .min_rnr_timer = 1};
	struct address mine = {.psn = qp_random_psn()}, peer;
	const char *port = "18515";
	int gid_index = 0, option, fd;
	struct endpoint ep;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint64_t failed;
	bool server;

	while ((option = getopt(argc, argv, "p:g:")) != -1) {
		switch (option) {
		case 'p': port = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		default: die("usage: survivor -p PORT [-g GID-INDEX] [SERVER]");
		}
	}
	server = optind == argc;
	endpoint_open(&ep, gid_index);
	mr = ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(ep.ctx, DEPTH, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	qp = qp_make(&ep, IBV_QPT_RC, cq, NULL, DEPTH, 1);
	mine.gid = ep.gid;
	mine.mtu = ep.mtu_bytes;
	mine.qpn = qp->qp_num;
	fd = server ? tcp_serve(port) : tcp_connect(argv[optind], port);
	tcp_swap(fd, &mine, &peer, sizeof(mine));
	qp_connect(&ep, qp, mine.psn, &peer, &retries);
	if (server)
		for (uint64_t i = 0; i < DEPTH; i++)
			post(qp, i, server);
	tcp_swap(fd, NULL, NULL, 0);
	if (!server)
		for (uint64_t i = 0; i < DEPTH; i++)
			post(qp, i, server);
	failed = stream(qp, cq, server, &wc);
	if (server)
		die("the server ended by itself");
	expect_end(cq, failed, &wc);
	printf("%s after %llu messages\n", ibv_wc_status_str(wc.status), (unsigned long long)failed);
	return 0;
}
