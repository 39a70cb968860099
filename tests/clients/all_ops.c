/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * all_ops -p PORT [-g GID-INDEX] [-x] [-a] [-f] [-e] [-r ROUNDS] [-m BYTES] [SERVER]: runs every opcode of RC, UC and
 *UD with messages of each shape (empty, one packet, two, more), one at a time. Both sides verify a message before the
 *next one begins. A capture of the run contains every opcode.
 *
 *	-x	Soft-RoCE is at one end: its completion of a send with invalidate lacks the flag, and its guest is slow
 *	-a	without atomic writes: Soft-RoCE before Linux 6.2 has none
 *	-f	without FLUSH: Soft-RoCE before Linux 6.2 and Debian 12's libibverbs have none
 *	-e	without empty READs: Soft-RoCE of Linux 6.12 does not answer a repeated one
 *	-r	the wire loses packets: this many rounds, of RC only
 *	-m	this path MTU, whatever the port says; RC and UC only
 */
#include "pair.h"
#include "verbs/flush.h"

#include <netinet/in.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (64u << 10)
#define QKEY         0x1234567u
#define GRH_BYTES    40u

enum { TYPE_RC = 1, TYPE_UC = 2, TYPE_UD = 4 };

struct step {
	unsigned types;
	enum ibv_wr_opcode opcode;
	uint32_t packets; /* length: this many full packets */
	uint32_t bytes;   /* and this many bytes more */
};

static const struct step steps[] = {
	{TYPE_RC | TYPE_UC | TYPE_UD, IBV_WR_SEND, 0, 0},
	{TYPE_RC | TYPE_UC | TYPE_UD, IBV_WR_SEND, 0, 1},
	{TYPE_RC | TYPE_UC | TYPE_UD, IBV_WR_SEND, 1, 0},
	{TYPE_RC | TYPE_UC, IBV_WR_SEND, 1, 1},
	{TYPE_RC | TYPE_UC, IBV_WR_SEND, 3, 7},
	{TYPE_RC | TYPE_UC | TYPE_UD, IBV_WR_SEND_WITH_IMM, 0, 0},
	{TYPE_RC | TYPE_UC | TYPE_UD, IBV_WR_SEND_WITH_IMM, 0, 10},
	{TYPE_RC | TYPE_UC, IBV_WR_SEND_WITH_IMM, 2, 3},
	{TYPE_RC, IBV_WR_SEND_WITH_INV, 0, 16},
	{TYPE_RC, IBV_WR_SEND_WITH_INV, 2, 6},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE, 0, 0},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE, 0, 5},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE, 2, 0},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE, 3, 5},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 9},
	{TYPE_RC | TYPE_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 1},
	{TYPE_RC, IBV_WR_RDMA_READ, 0, 0},
	{TYPE_RC, IBV_WR_RDMA_READ, 0, 7},
	{TYPE_RC, IBV_WR_RDMA_READ, 2, 0},
	{TYPE_RC, IBV_WR_RDMA_READ, 3, 5},
	{TYPE_RC, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8},
	{TYPE_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8},
	{TYPE_RC, IBV_WR_ATOMIC_WRITE, 0, 8},
	{TYPE_RC, IBV_WR_FLUSH, 0, 5}, /* of data that a WRITE wrote before */
	{TYPE_RC, IBV_WR_FLUSH, 1, 3},
};
#define STEP_COUNT (sizeof(steps) / sizeof(steps[0]))

struct side {
	struct endpoint ep;
	int fd;         /* to the peer */
	bool server;    /* the responder of every step */
	bool soft_roce; /* at one of the ends */
	bool no_atomic_write, no_flush, no_empty_read;
	bool lossy; /* the wire loses packets */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct address peer;
	struct ibv_ah *ah;
	uint32_t packet; /* bytes in a full packet */
};

static uint32_t step_imm(uint32_t i)
{
	return 0xabcd0000u + i;
}

static uint64_t step_before(uint32_t i)
{
	return 0x1122334455667788u * (i + 1);
}

static uint64_t step_operand(uint32_t i)
{
	return 0xfedcba9876543210u ^ i;
}

static bool consumes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* ---- the requester ---- */

static void post(struct side *s, const struct step *step, uint32_t i, uint32_t len, uint32_t invalidate)
{
	/* Longer messages have three SGEs, the middle one of an odd length. */
	uint32_t first = len > 100 ? len / 3 : len, second = len > 100 ? 33 : 0;
	struct ibv_sge sge[3] = {
		{(uintptr_t)s->memory, first, s->mr->lkey},
		{(uintptr_t)s->memory + first, second, s->mr->lkey},
		{(uintptr_t)s->memory + first + second, len - first - second, s->mr->lkey},
	};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = sge,
				 .num_sge = len > 100 ? 3
					    : len     ? 1
						      : 0,
				 .opcode = step->opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (step->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = invalidate;
	else
		wr.imm_data = htonl(step_imm(i));
	if (step->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		bool swap = step->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		wr.wr.atomic.remote_addr = s->peer.addr;
		wr.wr.atomic.rkey = s->peer.rkey;
		wr.wr.atomic.compare_add = swap ? step_before(i) : step_operand(i);
		wr.wr.atomic.swap = swap ? step_operand(i) : 0;
	} else if (s->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = s->peer.addr;
		wr.wr.rdma.rkey = s->peer.rkey;
	}
	errno = ibv_post_send(s->qp, &wr, &bad);
	need(!errno, "ibv_post_send");
}

static void post_atomic_write(struct side *s, struct ibv_qp_ex *qpx, uint32_t i)
{
	uint64_t value = step_operand(i);

	qpx->wr_id = i;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, s->peer.rkey, s->peer.addr, &value);
}

/* A FLUSH of the written data; or, after a short WRITE, of the whole region. */
static void post_flush(struct side *s, struct ibv_qp_ex *qpx, uint32_t i, uint32_t len)
{
	bool whole = len < s->packet;

	qpx->wr_id = i;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qpx, s->peer.rkey, whole ? 0 : s->peer.addr, whole ? 0 : len, IBV_FLUSH_GLOBAL,
		     whole ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
}

/* Operations for which ibv_post_send() has no fields. */
static void post_extended(struct side *s, const struct step *step, uint32_t i, uint32_t len)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);

	need(qpx != NULL, "ibv_qp_to_qp_ex");
	ibv_wr_start(qpx);
	if (step->opcode == IBV_WR_FLUSH)
		post_flush(s, qpx, i, len);
	else
		post_atomic_write(s, qpx, i);
	errno = ibv_wr_complete(qpx);
	need(!errno, "ibv_wr_complete");
}

static void request(struct side *s, const struct step *step, uint32_t i, uint32_t len)
{
	uint32_t invalidate;
	struct ibv_wc wc;
	uint64_t before;

	if (step->opcode == IBV_WR_RDMA_READ)
		memset(s->memory, 0, BUFFER_BYTES);
	else
		pattern_fill(s->memory, len, i);
	tcp_swap(s->fd, &(uint32_t){0}, &invalidate, sizeof(invalidate)); /* the responder is ready */
	if (step->opcode == IBV_WR_FLUSH) {
		post(s, &(struct step){.opcode = IBV_WR_RDMA_WRITE}, i, len, 0);
		cq_expect(s->cq, &wc, i);
	}
	if (step->opcode == IBV_WR_ATOMIC_WRITE || step->opcode == IBV_WR_FLUSH)
		post_extended(s, step, i, len);
	else
		post(s, step, i, len, invalidate);
	cq_expect(s->cq, &wc, i);
	if (step->opcode == IBV_WR_FLUSH && wc.opcode != IBV_WC_FLUSH)
		die("the completion of a FLUSH has opcode %d", wc.opcode);
	if (step->opcode == IBV_WR_RDMA_READ && !pattern_holds(s->memory, len, i))
		die("the data that was read is wrong");
	if (step->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		memcpy(&before, s->memory, sizeof(before));
		if (before != step_before(i))
			die("the atomic operation returned %#llx", (unsigned long long)before);
	}
}

/* ---- the responder ---- */

/* True: this end is Soft-RoCE, whose completion of a SEND with invalidate lacks the flag. */
static bool is_soft_roce(const struct side *s)
{
	return !strncmp(ibv_get_device_name(s->ep.ctx->device), "rxe", 3);
}

static void check_receive(struct side *s, const struct step *step, uint32_t i, uint32_t len, uint32_t window)
{
	uint32_t grh = s->qp->qp_type == IBV_QPT_UD ? GRH_BYTES : 0;
	struct ibv_wc wc;

	cq_expect(s->cq, &wc, i);
	if (wc.byte_len != len + grh)
		die("received %u bytes, not %u", wc.byte_len, len + grh);
	if (wc.opcode != (step->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		die("the receive completion has opcode %d", wc.opcode);
	if (step->opcode == IBV_WR_SEND_WITH_INV) {
		if ((!(wc.wc_flags & IBV_WC_WITH_INV) && !is_soft_roce(s)) || wc.invalidated_rkey != window)
			die("expected rkey %#x to be invalidated, not %#x", window, wc.invalidated_rkey);
	} else if (step->opcode != IBV_WR_SEND) {
		if (!(wc.wc_flags & IBV_WC_WITH_IMM) || wc.imm_data != htonl(step_imm(i)))
			die("immediate data %#x, not %#x", ntohl(wc.imm_data), step_imm(i));
	}
	if (grh && !(wc.wc_flags & IBV_WC_GRH))
		die("a UD completion without IBV_WC_GRH");
}

static void check_memory(struct side *s, const struct step *step, uint32_t i, uint32_t len)
{
	uint32_t offset = s->qp->qp_type == IBV_QPT_UD ? GRH_BYTES : 0;
	time_t end = time(NULL) + PAIR_WAIT_S;
	uint64_t after, expected = 0;

	switch (step->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD: expected = step_before(i); /* fall through */
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_WRITE:
		expected += step_operand(i);
		memcpy(&after, s->memory, sizeof(after));
		if (after != expected)
			die("memory holds %#llx after the operation", (unsigned long long)after);
		break;
	default:
		/* There is no sign that a WRITE on UC has arrived, so wait for the data. */
		while (!pattern_holds(s->memory + offset, len, i) || s->memory[offset + len])
			if (time(NULL) > end)
				die("the received data is wrong");
	}
}

static void respond(struct side *s, const struct step *step, uint32_t i, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, BUFFER_BYTES, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_mw *window = step->opcode == IBV_WR_SEND_WITH_INV ? mw_bind(s->qp, s->mr, 4096) : NULL;
	uint32_t key = window ? window->rkey : 0;

	memset(s->memory, 0, BUFFER_BYTES);
	if (step->opcode == IBV_WR_RDMA_READ)
		pattern_fill(s->memory, len, i);
	else if (step->bytes == 8)
		memcpy(s->memory, &(uint64_t){step_before(i)}, 8);
	if (consumes_receive(step->opcode)) {
		errno = ibv_post_recv(s->qp, &wr, &bad);
		need(!errno, "ibv_post_recv");
	}
	tcp_swap(s->fd, &key, &(uint32_t){0}, sizeof(key));
	if (consumes_receive(step->opcode))
		check_receive(s, step, i, len, key);
	if (s->qp->qp_type == IBV_QPT_RC)
		tcp_swap(s->fd, NULL, NULL, 0); /* the requester has its completion, so the data must have arrived */
	check_memory(s, step, i, len);
	if (window) {
		errno = ibv_dealloc_mw(window);
		need(!errno, "ibv_dealloc_mw");
	}
}

/* ---- both ---- */

static void connect_pair(struct side *s, enum ibv_qp_type type)
{
	struct address mine = {.gid = s->ep.gid, .psn = qp_random_psn(), .mtu = s->ep.mtu_bytes};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct retries retries = pair_retries;

	s->cq = ibv_create_cq(s->ep.ctx, 64, NULL, NULL, 0);
	need(s->cq != NULL, "ibv_create_cq");
	s->qp = qp_make(&s->ep, type, s->cq, NULL, 16, 4);
	mine.qpn = s->qp->qp_num;
	mine.rkey = s->mr->rkey;
	mine.addr = (uintptr_t)s->memory;
	tcp_swap(s->fd, &mine, &s->peer, sizeof(mine));
	s->packet = mine.mtu < s->peer.mtu ? mine.mtu : s->peer.mtu;
	if (s->soft_roce && !s->lossy)
		retries.timeout = 17;
	qp_connect(&s->ep, s->qp, mine.psn, &s->peer, &retries);
	s->ah = NULL;
	if (type == IBV_QPT_UD) {
		ah.grh.dgid = s->peer.gid;
		ah.grh.sgid_index = (uint8_t)s->ep.gid_index;
		ah.grh.hop_limit = 64;
		s->ah = ibv_create_ah(s->ep.pd, &ah);
		need(s->ah != NULL, "ibv_create_ah");
	}
	tcp_swap(s->fd, NULL, NULL, 0);
}

static void disconnect_pair(struct side *s)
{
	tcp_swap(s->fd, NULL, NULL, 0);
	if (s->ah) {
		errno = ibv_destroy_ah(s->ah);
		need(!errno, "ibv_destroy_ah");
	}
	errno = ibv_destroy_qp(s->qp);
	need(!errno, "ibv_destroy_qp");
	errno = ibv_destroy_cq(s->cq);
	need(!errno, "ibv_destroy_cq");
}

static unsigned run_steps(struct side *s, enum ibv_qp_type type, unsigned bit, unsigned rounds)
{
	unsigned count = 0;

	connect_pair(s, type);
	for (uint32_t n = 0; n < rounds * STEP_COUNT; n++) {
		uint32_t i = n % STEP_COUNT;
		uint32_t len = steps[i].packets * s->packet + steps[i].bytes;

		if (!(steps[i].types & bit) || (s->no_atomic_write && steps[i].opcode == IBV_WR_ATOMIC_WRITE) ||
		    (s->no_flush && steps[i].opcode == IBV_WR_FLUSH) ||
		    (s->no_empty_read && steps[i].opcode == IBV_WR_RDMA_READ && !len))
			continue;
		if (s->server) {
			respond(s, &steps[i], i, len);
		} else {
			request(s, &steps[i], i, len);
			if (type == IBV_QPT_RC)
				tcp_swap(s->fd, NULL, NULL, 0);
		}
		tcp_swap(s->fd, NULL, NULL, 0); /* verified on both sides */
		count++;
	}
	disconnect_pair(s);
	return count;
}

int main(int argc, char **argv)
{
	const char *port = "18515";
	struct side s = {0};
	int gid_index = 0, rounds = 0, option;
	uint32_t mtu_bytes = 0;
	unsigned count;

	while ((option = getopt(argc, argv, "p:g:xafer:m:")) != -1) {
		switch (option) {
		case 'p': port = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'x': s.soft_roce = true; break;
		case 'a': s.no_atomic_write = true; break;
		case 'f': s.no_flush = true; break;
		case 'e': s.no_empty_read = true; break;
		case 'm': mtu_bytes = (uint32_t)atoi(optarg); break;
		case 'r': rounds = atoi(optarg); break;
		default:
			die("usage: all_ops -p PORT [-g GID-INDEX] [-x] [-a] [-f] [-e] [-r ROUNDS] [-m BYTES] "
			    "[SERVER]");
		}
	}
	s.server = optind == argc;
	s.lossy = rounds > 0;
	endpoint_open(&s.ep, gid_index);
	if (mtu_bytes) {
		s.ep.mtu_bytes = mtu_bytes;
		s.ep.mtu = (enum ibv_mtu)(__builtin_ctz(mtu_bytes) - 7);
	}
	s.memory = malloc(BUFFER_BYTES);
	need(s.memory != NULL, "malloc");
	s.mr = ibv_reg_mr(s.ep.pd, s.memory, BUFFER_BYTES,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
				  (s.no_flush ? 0 : IBV_ACCESS_FLUSH_GLOBAL));
	need(s.mr != NULL, "ibv_reg_mr");
	s.fd = s.server ? tcp_serve(port) : tcp_connect(argv[optind], port);
	count = run_steps(&s, IBV_QPT_RC, TYPE_RC, rounds > 0 ? (unsigned)rounds : 1);
	if (!rounds) {
		count += run_steps(&s, IBV_QPT_UC, TYPE_UC, 1);
		if (!mtu_bytes)
			count += run_steps(&s, IBV_QPT_UD, TYPE_UD, 1);
	}
	errno = ibv_dereg_mr(s.mr);
	need(!errno, "ibv_dereg_mr");
	free(s.memory);
	endpoint_close(&s.ep);
	close(s.fd);
	printf("%u operations\n", count);
	return 0;
}
