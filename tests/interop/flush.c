/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flush -p PORT [-g GID-INDEX] [SERVER]: cases of FLUSH (IBTA A19) that tests/clients/all_ops.c lacks. The client is
 * the requester: many in a row, more than the responder has resources for; one of a whole region; and one of a region
 * without the right.
 */
#include "pair.h"
#include "verbs/flush.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROW          40u
#define FLUSHES      1000u /* the number of the first; WRITEs begin at 0 */
#define PIECE_BYTES  64u
#define BUFFER_BYTES (ROW * PIECE_BYTES)
#define RIGHTS       (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct side {
	struct endpoint ep;
	int fd; /* to the peer */
	bool server;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct address peer;
};

/* `count` WRITEs of one piece each, to adjacent places, in one call. */
static void post_writes(struct side *s, uint32_t count)
{
	struct ibv_sge sge[ROW];
	struct ibv_send_wr wr[ROW], *bad;

	for (uint32_t i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)s->memory + i * PIECE_BYTES, PIECE_BYTES, s->mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i + 1 < count ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SIGNALED};
		wr[i].wr.rdma.remote_addr = s->peer.addr + i * PIECE_BYTES;
		wr[i].wr.rdma.rkey = s->peer.rkey;
	}
	errno = ibv_post_send(s->qp, wr, &bad);
	need(!errno, "ibv_post_send");
}

/* `count` FLUSHes of `len` bytes, the first at `offset`, each one piece after the last. In one call, so that all are
 * queued before the first is answered. Their numbers begin at FLUSHES. */
static void post_flushes(struct side *s, uint32_t count, uint32_t offset, uint32_t len, uint8_t level)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);

	need(qpx != NULL, "ibv_qp_to_qp_ex");
	ibv_wr_start(qpx);
	for (uint32_t i = 0; i < count; i++) {
		qpx->wr_id = FLUSHES + i;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_flush(qpx, s->peer.rkey, s->peer.addr + offset + i * PIECE_BYTES, len, IBV_FLUSH_GLOBAL, level);
	}
	errno = ibv_wr_complete(qpx);
	need(!errno, "ibv_wr_complete");
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	cq_next(s->cq, &wc);
	if (wc.wr_id != wr_id || wc.status != status || (status == IBV_WC_SUCCESS && wc.opcode != opcode))
		die("request %llu completed with %s, opcode %d; expected request %llu with %s, opcode %d",
		    (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.opcode, (unsigned long long)wr_id,
		    ibv_wc_status_str(status), opcode);
}

static void expect_writes(struct side *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		expect(s, i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

static void request_row(struct side *s)
{
	post_writes(s, ROW);
	post_flushes(s, ROW, 0, PIECE_BYTES, IBV_FLUSH_RANGE);
	expect_writes(s, ROW);
	for (uint32_t i = 0; i < ROW; i++)
		expect(s, FLUSHES + i, IBV_WC_SUCCESS, IBV_WC_FLUSH);
}

/* Address and length are ignored. */
static void request_whole(struct side *s)
{
	post_writes(s, 1);
	post_flushes(s, 1, 2 * BUFFER_BYTES, 0, IBV_FLUSH_MR);
	expect_writes(s, 1);
	expect(s, FLUSHES, IBV_WC_SUCCESS, IBV_WC_FLUSH);
}

static void request_forbidden(struct side *s)
{
	post_writes(s, 1);
	post_flushes(s, 2, 0, PIECE_BYTES, IBV_FLUSH_RANGE);
	expect_writes(s, 1);
	expect(s, FLUSHES, IBV_WC_REM_ACCESS_ERR, 0);
	expect(s, FLUSHES + 1, IBV_WC_WR_FLUSH_ERR, 0);
}

static const struct part {
	void (*request)(struct side *s);
	uint32_t bytes; /* that must have arrived */
	int rights;     /* of the responder's region */
	enum ibv_qp_state state;
} parts[] = {
	{request_row, BUFFER_BYTES, RIGHTS | IBV_ACCESS_FLUSH_GLOBAL, IBV_QPS_RTS},
	{request_whole, PIECE_BYTES, RIGHTS | IBV_ACCESS_FLUSH_GLOBAL, IBV_QPS_RTS},
	{request_forbidden, PIECE_BYTES, RIGHTS, IBV_QPS_ERR},
};

static void check_state(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init);
	need(!errno, "ibv_query_qp");
	if (attr.qp_state != state)
		die("the queue pair is in state %d, not %d", attr.qp_state, state);
}

static void run(struct side *s, const struct part *part, uint32_t seed)
{
	struct address mine = {.gid = s->ep.gid, .psn = qp_random_psn(), .mtu = s->ep.mtu_bytes};
	/* Half a second for each answer: the guest is slow. */
	struct retries retries = {.timeout = 17, .retry_cnt = 6, .rnr_retry = 6, .min_rnr_timer = 12};

	s->cq = ibv_create_cq(s->ep.ctx, 4 * ROW, NULL, NULL, 0);
	need(s->cq != NULL, "ibv_create_cq");
	s->qp = qp_make(&s->ep, IBV_QPT_RC, s->cq, NULL, 2 * ROW, 1);
	s->mr = ibv_reg_mr(s->ep.pd, s->memory, BUFFER_BYTES, s->server ? part->rights : IBV_ACCESS_LOCAL_WRITE);
	need(s->mr != NULL, "ibv_reg_mr");
	if (s->server)
		memset(s->memory, 0, BUFFER_BYTES);
	else
		pattern_fill(s->memory, BUFFER_BYTES, seed);
	mine.qpn = s->qp->qp_num;
	mine.rkey = s->mr->rkey;
	mine.addr = (uintptr_t)s->memory;
	tcp_swap(s->fd, &mine, &s->peer, sizeof(mine));
	qp_connect(&s->ep, s->qp, mine.psn, &s->peer, &retries);
	tcp_swap(s->fd, NULL, NULL, 0);
	if (!s->server)
		part->request(s);
	tcp_swap(s->fd, NULL, NULL, 0);
	if (s->server && !pattern_holds(s->memory, part->bytes, seed))
		die("data are missing after the FLUSH");
	check_state(s, part->state);
	tcp_swap(s->fd, NULL, NULL, 0);
	errno = ibv_destroy_qp(s->qp);
	need(!errno, "ibv_destroy_qp");
	errno = ibv_destroy_cq(s->cq);
	need(!errno, "ibv_destroy_cq");
	errno = ibv_dereg_mr(s->mr);
	need(!errno, "ibv_dereg_mr");
}

int main(int argc, char **argv)
{
	const char *port = "18515";
	struct side s = {0};
	int gid_index = 0, option;

	while ((option = getopt(argc, argv, "p:g:")) != -1) {
		switch (option) {
		case 'p': port = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		default: die("usage: flush -p PORT [-g GID-INDEX] [SERVER]");
		}
	}
	s.server = optind == argc;
	endpoint_open(&s.ep, gid_index);
	s.memory = aligned_alloc(4096, BUFFER_BYTES);
	need(s.memory != NULL, "aligned_alloc");
	s.fd = s.server ? tcp_serve(port) : tcp_connect(argv[optind], port);
	for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		run(&s, &parts[i], i);
	free(s.memory);
	endpoint_close(&s.ep);
	close(s.fd);
	return 0;
}
