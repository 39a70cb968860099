/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_qps -p PORT -n QPS [-g GID-INDEX] [-d DEPTH] [-t SECONDS] [-i SECONDS] [ADDRESS]: QPS connected RC queue pairs,
 * with queues of depth DEPTH, between two processes. The one with ADDRESS keeps WRITEs of 4 KiB on all queue pairs for
 * SECONDS of -t, WINDOW of them at a time, and prints their rate. Then both rest for SECONDS of -i and print the
 * processor time that they took meanwhile, and how much memory each queue pair took before the traffic.
 */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define WRITE_BYTES 4096
#define WINDOW      64 /* WRITEs at a time */
#define SWAP        64 /* addresses at a time */
#define CQ_BATCH    16

static struct {
	const char *port;
	int qps, gid_index;
	unsigned depth;
	double seconds, idle_seconds;
} options = {.port = "20996", .qps = 8, .depth = 16};

static struct endpoint ep;
static struct ibv_qp **qps;
static unsigned *outstanding_of; /* WRITEs of each queue pair */
static struct ibv_mr *mr;
static struct address *mine, *theirs;
static uint8_t memory[WRITE_BYTES];

static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	need(f && fscanf(f, "%*d %ld", &pages) == 1, "/proc/self/statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void make(struct ibv_cq *cq)
{
	for (int i = 0; i < options.qps; i++) {
		qps[i] = qp_make(&ep, IBV_QPT_RC, cq, NULL, options.depth, 1);
		mine[i] = (struct address){.gid = ep.gid,
					   .qpn = qps[i]->qp_num,
					   .psn = qp_random_psn(),
					   .mtu = ep.mtu_bytes,
					   .rkey = mr->rkey,
					   .addr = (uintptr_t)memory};
	}
}

static void swap_and_connect(int fd)
{
	for (int i = 0; i < options.qps; i += SWAP) {
		int n = options.qps - i < SWAP ? options.qps - i : SWAP;

		tcp_swap(fd, &mine[i], &theirs[i], (size_t)n * sizeof(*mine));
	}
	for (int i = 0; i < options.qps; i++)
		qp_connect(&ep, qps[i], mine[i].psn, &theirs[i], &pair_retries);
	tcp_swap(fd, NULL, NULL, 0);
}

static void post_write(int number)
{
	struct ibv_sge sge = {(uintptr_t)memory, WRITE_BYTES, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)number,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {theirs[number].addr, theirs[number].rkey}},
			   *bad;

	errno = ibv_post_send(qps[number], &wr, &bad);
	need(!errno, "ibv_post_send");
}

/* The next queue pair in a row that has room: all are used alike. */
static int next_with_room(int next)
{
	do
		next = (next + 1) % options.qps;
	while (outstanding_of[next] == options.depth);
	return next;
}

static void write_all(struct ibv_cq *cq)
{
	double start = clock_seconds(), end = start + options.seconds, now = start;
	unsigned long done = 0;
	int next = 0, outstanding = 0;
	struct ibv_wc wc[CQ_BATCH];

	while (outstanding || now < end) {
		int got;

		while (outstanding < WINDOW && now < end) {
			next = next_with_room(next);
			post_write(next);
			outstanding_of[next]++;
			outstanding++;
		}
		got = ibv_poll_cq(cq, CQ_BATCH, wc);
		need(got >= 0, "ibv_poll_cq");
		for (int i = 0; i < got; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				die("a WRITE failed: %s", ibv_wc_status_str(wc[i].status));
			outstanding_of[wc[i].wr_id]--;
		}
		outstanding -= got;
		done += (unsigned long)got;
		now = clock_seconds();
	}
	printf("%.0f WRITEs/s\n", (double)done / (now - start));
}

/* This thread's own falling asleep and waking is not the device's, and the naps of the device's thread after the last
 * QP was connected belong to the traffic. */
static void idle(void)
{
	double start, cpu;

	usleep(200000);
	start = clock_seconds();
	cpu = clock_cpu_of_others_seconds();
	usleep((useconds_t)(options.idle_seconds * 1e6));
	printf("%.4f %% of a processor while idle\n",
	       (clock_cpu_of_others_seconds() - cpu) * 100 / (clock_seconds() - start));
}

static void parse(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "p:n:g:d:t:i:")) != -1;) {
		switch (opt) {
		case 'p': options.port = optarg; break;
		case 'n': options.qps = atoi(optarg); break;
		case 'g': options.gid_index = atoi(optarg); break;
		case 'd': options.depth = (unsigned)atoi(optarg); break;
		case 't': options.seconds = atof(optarg); break;
		case 'i': options.idle_seconds = atof(optarg); break;
		default: exit(2);
		}
	}
	if (options.qps < 1 || options.depth < 1 || (int)options.depth * options.qps < WINDOW)
		die("-n and -d: there must be room for %d WRITEs", WINDOW);
}

int main(int argc, char **argv)
{
	struct ibv_cq *cq;
	long before;
	int fd;

	parse(argc, argv);
	endpoint_open(&ep, options.gid_index);
	mr = ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(ep.ctx, 2 * WINDOW, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	qps = calloc((size_t)options.qps, sizeof(*qps));
	mine = calloc((size_t)options.qps, sizeof(*mine));
	theirs = calloc((size_t)options.qps, sizeof(*theirs));
	outstanding_of = calloc((size_t)options.qps, sizeof(*outstanding_of));
	need(qps && mine && theirs && outstanding_of, "calloc");
	memset(theirs, 1, (size_t)options.qps * sizeof(*theirs)); /* resident from now on */
	memset(mine, 1, (size_t)options.qps * sizeof(*mine));
	memset(qps, 1, (size_t)options.qps * sizeof(*qps));
	fd = optind < argc ? tcp_connect(argv[optind], options.port) : tcp_serve(options.port);
	before = resident_bytes();
	make(cq);
	swap_and_connect(fd);
	printf("%ld bytes each\n", (resident_bytes() - before) / options.qps);
	if (options.seconds > 0 && optind < argc)
		write_all(cq);
	tcp_swap(fd, NULL, NULL, 0);
	if (options.idle_seconds > 0)
		idle();
	tcp_swap(fd, NULL, NULL, 0);
	return 0;
}
