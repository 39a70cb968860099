/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * footprint [-g GID-INDEX]: prints the resident memory of the open device, and of an idle connected RC queue pair with
 * the smallest queues. Fails above the limits below.
 */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QP_COUNT       1000
#define MAX_DEVICE_KIB (16 << 10)
#define MAX_QP_BYTES   (8 << 10)

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	need(f != NULL, "/proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kib = atol(line + 6);
	fclose(f);
	need(kib >= 0, "VmRSS");
	return kib;
}

int main(int argc, char **argv)
{
	static struct ibv_qp *qp[QP_COUNT];
	static struct address address[QP_COUNT];
	long before = resident_kib(), device_kib, qp_bytes;
	struct timespec start, end;
	struct endpoint ep;
	struct ibv_cq *cq;

	clock_gettime(CLOCK_MONOTONIC, &start);
	endpoint_open(&ep, argc == 3 ? atoi(argv[2]) : 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	device_kib = resident_kib() - before;
	cq = ibv_create_cq(ep.ctx, 16, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");

	before = resident_kib();
	for (int i = 0; i < QP_COUNT; i++) {
		qp[i] = qp_make(&ep, IBV_QPT_RC, cq, NULL, 1, 1);
		address[i] = (struct address){
			.gid = ep.gid, .qpn = qp[i]->qp_num, .psn = qp_random_psn(), .mtu = ep.mtu_bytes};
	}
	for (int i = 0; i < QP_COUNT; i++)
		qp_connect(&ep, qp[i], address[i].psn, &address[i ^ 1], &pair_retries);
	qp_bytes = (resident_kib() - before) * 1024 / QP_COUNT;

	printf("device: %ld KiB, opened in %ld us; RC queue pair: %ld bytes\n", device_kib,
	       (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000, qp_bytes);
	if (device_kib >= MAX_DEVICE_KIB)
		die("the open device takes more than %d KiB", MAX_DEVICE_KIB);
	if (qp_bytes >= MAX_QP_BYTES)
		die("an RC queue pair takes more than %d bytes", MAX_QP_BYTES);
	return 0;
}
