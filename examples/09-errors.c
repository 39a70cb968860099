/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 9: how errors travel.
 *
 *	09-errors         every case
 *	09-errors CASE    one of them: they are listed at the end of this file
 *
 * Each case does one thing wrong and shows what both sides see: the completion of A, which asked, that of B, which had
 *to answer, and the states of both QPs. Then A asks again, to show what becomes of requests behind an error.
 */
#include "loopback.h"

#include <stdio.h>
#include <string.h>

/* What is wrong. Most need only a request that differs from a good WRITE. */
struct error_case {
	const char *name, *what;
	int qp_access; /* what B's QP allows */
	enum ibv_wr_opcode opcode;
	bool receive;         /* B has posted one, of 16 bytes */
	uint32_t bytes;       /* how many A sends; 0 is 16 */
	uint32_t bad_rkey;    /* added to the right one */
	uint64_t bad_address; /* added to the right one */
	bool other_domain;    /* the rkey is that of a region in another PD */
	bool peer_is_gone;    /* B's QP is no longer there to answer */
};

static const char *state(struct ibv_qp *qp)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state <= IBV_QPS_ERR ? names[attr.qp_state] : "?";
}

static void post_receive(struct loopback *l)
{
	struct ibv_sge sge = {(uintptr_t)l->b.memory, 16, l->b.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(ibv_post_recv(l->b.qp, &wr, &bad), "ibv_post_recv");
}

static void show(const char *who, struct ibv_cq *cq)
{
	struct ibv_wc wc = loopback_wait(cq);

	printf("  %-20s %s (%d)\n", who, ibv_wc_status_str(wc.status), wc.status);
}

static void provoke(const struct arguments *arguments, const struct error_case *c)
{
	struct loopback l = loopback_open(arguments, c->qp_access, 1);
	struct ibv_send_wr wr = {.opcode = c->opcode};
	struct ibv_pd *domain = made(ibv_alloc_pd(l.bare.context), "ibv_alloc_pd");
	struct ibv_mr *other =
		made(ibv_reg_mr(domain, l.b.memory, LOOPBACK_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		     "ibv_reg_mr");
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	printf("%s: %s\n", c->name, c->what);
	if (c->receive)
		post_receive(&l);
	if (c->peer_is_gone)
		check(ibv_modify_qp(l.b.qp, &reset, IBV_QP_STATE), "ibv_modify_qp to RESET");
	wr.wr.rdma.remote_addr = (uintptr_t)l.b.memory + c->bad_address;
	wr.wr.rdma.rkey = (c->other_domain ? other->rkey : l.b.mr->rkey) + c->bad_rkey;
	loopback_post(&l, &wr, c->bytes ? c->bytes : 16);
	show("A's request:", l.a.cq);
	if (c->receive)
		show("B's receive:", l.b.cq);
	printf("  %-20s A %s, B %s\n", "states:", state(l.a.qp), state(l.b.qp));
	loopback_post(&l, &wr, 16);
	show("A's next request:", l.a.cq);
	check(ibv_dereg_mr(other), "ibv_dereg_mr");
	check(ibv_dealloc_pd(domain), "ibv_dealloc_pd");
	loopback_close(&l);
}

static const struct error_case cases[] = {
	{.name = "rkey",
	 .what = "WRITE with an rkey that B never gave out",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bad_rkey = 1},
	{.name = "range",
	 .what = "WRITE behind the end of B's region",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_RDMA_WRITE,
	 .bad_address = LOOPBACK_BYTES},
	{.name = "domain",
	 .what = "WRITE with an rkey of a region in another PD than B's QP",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_RDMA_WRITE,
	 .other_domain = true},
	{.name = "right",
	 .what = "WRITE, but the qp_access_flags of B's QP do not allow it",
	 .qp_access = IBV_ACCESS_REMOTE_READ,
	 .opcode = IBV_WR_RDMA_WRITE},
	{.name = "length",
	 .what = "SEND of 100 bytes for a receive of 16",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_SEND,
	 .receive = true,
	 .bytes = 100},
	{.name = "receive",
	 .what = "SEND, but B has no receive posted",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_SEND},
	{.name = "gone",
	 .what = "SEND, but B's QP is not there; A tries for some seconds",
	 .qp_access = LOOPBACK_ALL,
	 .opcode = IBV_WR_SEND,
	 .peer_is_gone = true},
};

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read("dgc1", argc, argv);
	unsigned count = 0;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (arguments.file && strcmp(arguments.file, cases[i].name) != 0)
			continue;
		provoke(&arguments, &cases[i]);
		count++;
	}
	if (!count)
		die("there is no case \"%s\"; without a name all are shown", arguments.file);
	printf("done\n");
	return 0;
}
