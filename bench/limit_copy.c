/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_copy -l LEN [-t SECONDS]: process_vm_writev() of LEN bytes from malloc() memory into that of another process,
 * again and again. Prints the median time of a call and the throughput. The other process is a child, which Yama
 * allows.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "pair.h"

#define SAMPLES 100000

static double took[SAMPLES];

int main(int argc, char **argv)
{
	unsigned long len = 8, copies = 0;
	double seconds = 1, start, end, before, now;
	char *here, *there;
	struct iovec from, to;
	pid_t child;

	for (int opt; (opt = getopt(argc, argv, "l:t:")) != -1;) {
		switch (opt) {
		case 'l': len = strtoul(optarg, NULL, 0); break;
		case 't': seconds = atof(optarg); break;
		default: return 2;
		}
	}
	here = malloc(len);
	there = malloc(len);
	need(here && there, "malloc");
	memset(here, 1, len);
	memset(there, 2, len);
	child = fork();
	need(child >= 0, "fork");
	if (!child) {
		memset(there, 3, len); /* its own pages */
		for (;;)
			pause();
	}
	from = (struct iovec){here, len};
	to = (struct iovec){there, len};
	start = before = clock_seconds();
	end = start + seconds;
	do {
		ssize_t copied = process_vm_writev(child, &from, 1, &to, 1, 0);

		need(copied == (ssize_t)len, "process_vm_writev");
		now = clock_seconds();
		took[copies++ % SAMPLES] = now - before;
		before = now;
	} while (now < end);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("%.3f us %.3f GB/s\n", clock_median(took, copies < SAMPLES ? (int)copies : SAMPLES) * 1e6,
	       (double)len * (double)copies / 1e9 / (now - start));
	return 0;
}
