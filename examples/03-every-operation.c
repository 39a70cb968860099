/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 3: every operation of a reliable connection, in one process.
 *
 *	03-every-operation
 *
 * QP A asks, QP B answers. The packets go through the device as they would between two machines. How A and B are
 *connected is lesson 4. ATOMIC WRITE and FLUSH are younger than the others; a device may lack them.
 */
#include "loopback.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Where in B's memory a one-sided request works: at its beginning. */
static void target(struct loopback *l, struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = (uintptr_t)l->b.memory;
	wr->wr.rdma.rkey = l->b.mr->rkey;
}

/* Two-sided: B must have posted a receive, and its completion tells B. */
static void send_to_receive(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_wc wc;

	loopback_post_receive(l);
	strcpy(l->a.memory, "a message");
	loopback_post(l, &wr, 10);
	wait_completion(l->a.cq, "SEND");
	wc = wait_completion(l->b.cq, "B's receive");
	printf("SEND          B's receive has %u bytes: \"%s\"\n", wc.byte_len, l->b.memory);
}

/* Immediate data: 32 bits that do not go to memory but into B's completion. */
static void send_with_immediate(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(42)};
	struct ibv_wc wc;

	loopback_post_receive(l);
	loopback_post(l, &wr, 0);
	wait_completion(l->a.cq, "SEND with immediate data");
	wc = wait_completion(l->b.cq, "B's receive");
	if (!(wc.wc_flags & IBV_WC_WITH_IMM))
		die("B's completion has no immediate data");
	printf("SEND_IMM      B's completion has the number %u, and %u bytes\n", ntohl(wc.imm_data), wc.byte_len);
}

/* Invalidate: the message takes a key from B that B gave out before. So B need not do it, and nobody can use it later.
 * Here the key is that of a memory window: a part of a region, opened for a while. */
static void send_with_invalidate(struct loopback *l)
{
	struct ibv_mw *window = made(ibv_alloc_mw(l->bare.pd, IBV_MW_TYPE_2), "ibv_alloc_mw");
	struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV};

	bind.bind_mw.mw = window;
	bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = l->b.mr,
							   .addr = (uintptr_t)l->b.memory,
							   .length = 64,
							   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	check(ibv_post_send(l->b.qp, &bind, &bad), "ibv_post_send of BIND_MW");
	wait_completion(l->b.cq, "BIND_MW");

	loopback_post_receive(l);
	wr.invalidate_rkey = bind.bind_mw.rkey;
	loopback_post(l, &wr, 0);
	wait_completion(l->a.cq, "SEND with invalidate");
	wait_completion(l->b.cq, "B's receive");
	printf("SEND_INV      B's window is closed: nobody can use its rkey any more\n");
	check(ibv_dealloc_mw(window), "ibv_dealloc_mw");
}

/* One-sided: B posts nothing and gets no completion. */
static void rdma_write(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;

	target(l, &wr);
	strcpy(l->a.memory, "written by A");
	loopback_post(l, &wr, 13);
	wait_completion(l->a.cq, "RDMA WRITE");
	printf("WRITE         B's memory: \"%s\"; completions at B: %d\n", l->b.memory, ibv_poll_cq(l->b.cq, 1, &wc));
}

/* The WRITE that tells: it takes a receive of B for its completion. Of the receive's memory it uses nothing. */
static void rdma_write_with_immediate(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(7)};
	struct ibv_wc wc;

	loopback_post_receive(l);
	target(l, &wr);
	strcpy(l->a.memory, "written and announced");
	loopback_post(l, &wr, 22);
	wait_completion(l->a.cq, "RDMA WRITE with immediate data");
	wc = wait_completion(l->b.cq, "B's receive");
	printf("WRITE_IMM     B's memory: \"%s\"; B's completion has the number %u\n", l->b.memory, ntohl(wc.imm_data));
}

static void rdma_read(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	target(l, &wr);
	strcpy(l->b.memory, "this was B's");
	loopback_post(l, &wr, 13);
	wait_completion(l->a.cq, "RDMA READ");
	printf("READ          A has fetched \"%s\"\n", l->a.memory);
}

/* Atomics change eight bytes of B, at an address that eight divides, and bring what was there before. Nothing comes
 * between. */
static void atomic(struct loopback *l, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = {.opcode = opcode};
	uint64_t *there = (uint64_t *)l->b.memory, *before = (uint64_t *)l->a.memory;

	wr.wr.atomic.remote_addr = (uintptr_t)there;
	wr.wr.atomic.rkey = l->b.mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	loopback_post(l, &wr, sizeof(uint64_t));
	wait_completion(l->a.cq, "atomic");
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		printf("FETCH_ADD     add %" PRIu64, compare_add);
	else
		printf("CMP_SWAP      %" PRIu64 " if it is %" PRIu64, swap, compare_add);
	printf(": it was %" PRIu64 ", it is %" PRIu64 "\n", *before, *there);
}

/* These two have no fields in struct ibv_send_wr: they came later, with functions of their own. */
static void begin(struct ibv_qp_ex *qp)
{
	ibv_wr_start(qp);
	qp->wr_id = 0;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

/* Eight bytes at once, after all that was written before: a flag that says "the data is there". */
static void atomic_write(struct loopback *l, struct ibv_qp_ex *qp)
{
	uint64_t value = 99;

	if (!qp || !qp->wr_atomic_write) {
		printf("ATOMIC_WRITE  this device does not have it\n");
		return;
	}
	begin(qp);
	ibv_wr_atomic_write(qp, l->b.mr->rkey, (uintptr_t)l->b.memory, &value);
	check(ibv_wr_complete(qp), "ibv_wr_complete");
	wait_completion(l->a.cq, "ATOMIC WRITE");
	printf("ATOMIC_WRITE  it is %" PRIu64 "\n", *(uint64_t *)l->b.memory);
}

/* An acknowledged WRITE has reached B's device. A completed FLUSH says that it can be seen in B's memory. */
static void flush(struct loopback *l, struct ibv_qp_ex *qp)
{
	if (!l->a.flush_right) {
		printf("FLUSH         this %s does not have it\n",
		       LOOPBACK_CAN_FLUSH ? "device" : "version of libibverbs");
		return;
	}
	begin(qp);
#ifdef HAVE_IBV_WR_FLUSH
	ibv_wr_flush(qp, l->b.mr->rkey, (uintptr_t)l->b.memory, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
#endif
	check(ibv_wr_complete(qp), "ibv_wr_complete");
	wait_completion(l->a.cq, "FLUSH");
	printf("FLUSH         what was written before can be seen by everybody\n");
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read("dg1", argc, argv);
	struct loopback l = loopback_open(&arguments, LOOPBACK_ALL, 7);

	send_to_receive(&l);
	send_with_immediate(&l);
	send_with_invalidate(&l);
	rdma_write(&l);
	rdma_write_with_immediate(&l);
	rdma_read(&l);
	*(uint64_t *)l.b.memory = 5;
	atomic(&l, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6); /* does it */
	atomic(&l, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 7); /* does not: 5 is no longer there */
	atomic(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, 10, 0);
	atomic_write(&l, ibv_qp_to_qp_ex(l.a.qp));
	flush(&l, ibv_qp_to_qp_ex(l.a.qp));
	loopback_close(&l);
	printf("done\n");
	return 0;
}
