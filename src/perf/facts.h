/* SPDX-License-Identifier: BSD-2-Clause */
/* What an end observed of itself and of its machine while something was measured. */
#ifndef ROCI_PERF_FACTS_H
#define ROCI_PERF_FACTS_H

#include <stdint.h>

/* Numbers that only grow. What a device does not count stays 0. */
struct perf_counters {
	uint64_t retransmissions; /* packets or requests sent again */
	uint64_t out_of_order;    /* packets that came after a gap */
	uint64_t not_ready;       /* RNR NAKs: a SEND found no receive */
	uint64_t dropped;         /* by the device, before the network */
};

/* Adds what the device called `name` has counted in this process or machine. */
typedef void perf_counters_fn(const char *name, struct perf_counters *counters);

/* One look. */
struct perf_look {
	uint64_t wall_ns;
	uint64_t cpu_ns;       /* of this process, all threads, user and system */
	uint64_t busy_ns;      /* of all CPUs of the machine */
	uint64_t steal_ns;     /* that a hypervisor has taken */
	uint64_t preempted;    /* how often the measuring thread lost its CPU */
	uint64_t udp_overflow; /* datagrams that found a socket's buffer full, in this network namespace */
	uint64_t tcp_resent;   /* segments, in this network namespace */
	struct perf_counters device;
};

/* The difference of two looks, and what does not change. */
struct perf_facts {
	struct perf_look spent;
	uint32_t cpus;
	uint32_t mtu;     /* bytes of the QPs' packets */
	uint32_t clients; /* that this far end served beside; 0 at the near end */
	uint32_t powersave;
};

void perf_look(struct perf_look *look, const char *device, perf_counters_fn *counters);
void perf_facts_between(struct perf_facts *facts, const struct perf_look *before, const struct perf_look *after);

#endif
