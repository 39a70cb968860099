/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live_memory [-g GID-INDEX]: READs and WRITEs of memory that a thread writes to all the time, as in programs that read
 * counters of a peer. They may transfer any of the values, but they must complete.
 */
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM 65536u
#define OPS  200

static struct endpoint ep;
static atomic_bool stop;
static _Atomic uint64_t laps;
static _Alignas(4096) struct {
	_Atomic uint64_t live[ROOM / 8];
	uint8_t copy[ROOM];
} memory;

static void *write_on(void *arg)
{
	while (!stop) {
		uint64_t lap = ++laps;

		/* the first word most often, so that it changes between any two reads */
		for (unsigned i = 0; i < ROOM / 8; i++) {
			atomic_store_explicit(&memory.live[i], lap, memory_order_relaxed);
			atomic_store_explicit(&memory.live[0], lap + i, memory_order_relaxed);
		}
	}
	return NULL;
}

static void move(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr, enum ibv_wr_opcode opcode, uint32_t len)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = {(uintptr_t)(read ? (void *)memory.copy : (void *)memory.live), len, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = len,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)(read ? (void *)memory.live : (void *)memory.copy), mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send");
	cq_expect(cq, &wc, len);
}

int main(int argc, char **argv)
{
	static const uint32_t lengths[] = {8, 256, 4096, 4097, ROOM};
	struct address address[2];
	struct ibv_qp *qp[2];
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	pthread_t writer;

	endpoint_open(&ep, argc > 2 ? atoi(argv[2]) : 0);
	cq = ibv_create_cq(ep.ctx, 16, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	mr = ibv_reg_mr(ep.pd, &memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	need(mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < 2; i++) {
		qp[i] = qp_make(&ep, IBV_QPT_RC, cq, NULL, 4, 1);
		address[i] = (struct address){
			.gid = ep.gid, .qpn = qp[i]->qp_num, .psn = qp_random_psn(), .mtu = ep.mtu_bytes};
	}
	for (int i = 0; i < 2; i++)
		qp_connect(&ep, qp[i], address[i].psn, &address[!i], &pair_retries);
	errno = pthread_create(&writer, NULL, write_on, NULL);
	need(!errno, "pthread_create");
	while (!laps)
		usleep(100);

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (int n = 0; n < OPS; n++) {
			move(qp[0], cq, mr, IBV_WR_RDMA_READ, lengths[i]);
			move(qp[0], cq, mr, IBV_WR_RDMA_WRITE, lengths[i]);
		}
	}

	stop = true;
	pthread_join(writer, NULL);
	for (int i = 0; i < 2; i++) {
		errno = ibv_destroy_qp(qp[i]);
		need(!errno, "ibv_destroy_qp");
	}
	errno = ibv_dereg_mr(mr);
	need(!errno, "ibv_dereg_mr");
	errno = ibv_destroy_cq(cq);
	need(!errno, "ibv_destroy_cq");
	endpoint_close(&ep);
	puts("live_memory: passed");
	return 0;
}
