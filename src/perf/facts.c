/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tour/clock.h"

static uint64_t time_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

/* The first line of /proc/stat: proc_stat(5). */
static void look_at_cpus(struct perf_look *look)
{
	unsigned long long user = 0, nice = 0, system = 0, idle, iowait, irq = 0, softirq = 0, steal = 0;
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");

	if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait,
			   &irq, &softirq, &steal) == 8) {
		look->busy_ns = (user + nice + system + irq + softirq) * tick_ns;
		look->steal_ns = steal * tick_ns;
	}
	if (file)
		fclose(file);
}

/* Takes a number of /proc/net/snmp or snmp6: a line of names, then one of values. */
static uint64_t snmp(const char *protocol, const char *name)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	char names[2048], values[2048];
	uint64_t found = 0;

	while (file && fgets(names, sizeof(names), file) && fgets(values, sizeof(values), file)) {
		char *next_name, *next_value, *n, *v;
		if (strncmp(names, protocol, strlen(protocol)) != 0)
			continue;
		n = strtok_r(names, " \n", &next_name);
		v = strtok_r(values, " \n", &next_value);
		for (; n && v; n = strtok_r(NULL, " \n", &next_name), v = strtok_r(NULL, " \n", &next_value)) {
			unsigned long long value;
			if (!strcmp(n, name) && sscanf(v, "%llu", &value) == 1)
				found = value;
		}
	}
	if (file)
		fclose(file);
	return found;
}

static uint64_t snmp6(const char *name)
{
	FILE *file = fopen("/proc/net/snmp6", "re");
	char word[64];
	unsigned long long value;
	uint64_t found = 0;

	while (file && fscanf(file, "%63s %llu", word, &value) == 2) {
		if (!strcmp(word, name))
			found = value;
	}
	if (file)
		fclose(file);
	return found;
}

void perf_look(struct perf_look *look, const char *device, perf_counters_fn *counters)
{
	struct rusage process, thread;

	*look = (struct perf_look){0};
	look_at_cpus(look);
	look->udp_overflow = snmp("Udp:", "RcvbufErrors") + snmp6("Udp6RcvbufErrors");
	look->tcp_resent = snmp("Tcp:", "RetransSegs");
	if (counters)
		counters(device, &look->device);
	getrusage(RUSAGE_SELF, &process);
	getrusage(RUSAGE_THREAD, &thread);
	look->cpu_ns = time_ns(process.ru_utime) + time_ns(process.ru_stime);
	look->preempted = (uint64_t)thread.ru_nivcsw;
	look->wall_ns = tour_now_ns();
}

static uint32_t is_powersave(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "re");
	char governor[32] = "";
	uint32_t is = file && fgets(governor, sizeof(governor), file) && !strncmp(governor, "powersave", 9);

	if (file)
		fclose(file);
	return is;
}

void perf_facts_between(struct perf_facts *facts, const struct perf_look *before, const struct perf_look *after)
{
	const struct perf_counters *b = &before->device, *a = &after->device;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*facts = (struct perf_facts){
		.spent = {.wall_ns = after->wall_ns - before->wall_ns,
			  .cpu_ns = after->cpu_ns - before->cpu_ns,
			  .busy_ns = after->busy_ns - before->busy_ns,
			  .steal_ns = after->steal_ns - before->steal_ns,
			  .preempted = after->preempted - before->preempted,
			  .udp_overflow = after->udp_overflow - before->udp_overflow,
			  .tcp_resent = after->tcp_resent - before->tcp_resent,
			  .device = {.retransmissions = a->retransmissions - b->retransmissions,
				     .out_of_order = a->out_of_order - b->out_of_order,
				     .not_ready = a->not_ready - b->not_ready,
				     .dropped = a->dropped - b->dropped}},
		.cpus = cpus > 0 ? (uint32_t)cpus : 1,
		.powersave = is_powersave(),
	};
}
