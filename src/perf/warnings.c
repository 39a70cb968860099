/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "wire/plural.h"

#define BUSY_PART     0.15 /* of one CPU that others use, from which it is said */
#define STEAL_PART    0.02 /* of all CPUs */
#define FULL_MTU      4096u
#define PREEMPTED_A_S 100u        /* times a second */
#define MIN_NS        200000000.0 /* /proc/stat counts in hundredths of a second */

__attribute__((format(printf, 3, 4))) static void add(struct warnings *w, const char *kind, const char *format, ...)
{
	va_list arguments;

	if (w->count == WARNINGS_MAX)
		return;
	w->list[w->count].kind = kind;
	va_start(arguments, format);
	vsnprintf(w->list[w->count].text, WARNING_CHARS, format, arguments);
	va_end(arguments);
	w->count++;
}

/* How many CPUs others have used. `own_ns`: what belongs to the measurement. */
static double others(const struct perf_look *spent, uint64_t own_ns)
{
	if (spent->busy_ns <= own_ns || (double)spent->wall_ns < MIN_NS)
		return 0;
	return (double)(spent->busy_ns - own_ns) / (double)spent->wall_ns;
}

/* What follows "packet". */
static const char *were(uint64_t count)
{
	return count == 1 ? " was" : "s were";
}

static void judge_cpus(struct warnings *w, const struct perf_facts *facts, uint64_t own_ns, const char *where)
{
	const struct perf_look *s = &facts->spent;
	double busy = others(s, own_ns), steal = (double)s->steal_ns / (double)(s->wall_ns + 1) / facts->cpus;

	if (busy > BUSY_PART)
		add(w, "busy",
		    "%s, other programs kept %.1f of %u CPUs busy: end them, or give the measurement CPUs of its own "
		    "(`taskset`)",
		    where, busy, facts->cpus);
	if (s->preempted * UINT64_C(1000000000) > PREEMPTED_A_S * (s->wall_ns + 1))
		add(w, "preempted",
		    "%s, the measuring thread lost its CPU to others %llu time%s: use fewer polling programs than "
		    "CPUs, "
		    "or --events",
		    where, (unsigned long long)s->preempted, roci_plural(s->preempted));
	if (steal > STEAL_PART)
		add(w, "steal",
		    "%s, the hypervisor gave %.0f %% of the CPU time to other guests: measure on a quieter host, or on "
		    "dedicated CPUs",
		    where, steal * 100);
	if (facts->powersave)
		add(w, "powersave",
		    "%s, the CPUs save power, and are slow at first: `cpupower frequency-set -g performance`", where);
}

static void judge_device(struct warnings *w, const struct perf_look *s, const char *where)
{
	const struct perf_counters *d = &s->device;

	if (d->retransmissions)
		add(w, "retransmissions",
		    "%s, %llu packet%s sent again: packets were lost; look at `ethtool -S` of the interface, and "
		    "at the switch's drops",
		    where, (unsigned long long)d->retransmissions, were(d->retransmissions));
	if (d->out_of_order)
		add(w, "gaps",
		    "%s, %llu packet%s came after a gap: others before them were lost, or were overtaken on the way",
		    where, (unsigned long long)d->out_of_order, roci_plural(d->out_of_order));
	if (d->not_ready)
		add(w, "not-ready",
		    "%s, %llu message%s found no receive at the other end, and waited: use a smaller --depth, or "
		    "--rate",
		    where, (unsigned long long)d->not_ready, roci_plural(d->not_ready));
	if (d->dropped)
		add(w, "dropped",
		    "%s, the device could not send %llu packet%s at once: a longer txqueuelen helps (`ip link`)", where,
		    (unsigned long long)d->dropped, roci_plural(d->dropped));
}

static void judge_sockets(struct warnings *w, const struct perf_order *order, const struct perf_look *s,
			  const char *where)
{
	bool tcp = order->phase == PERF_TCP_BANDWIDTH || order->phase == PERF_TCP_LATENCY;

	if (s->udp_overflow && !tcp)
		add(w, "socket-drops",
		    "%s, %llu datagram%s dropped, because the socket buffer was full: raise `sysctl net.core.rmem_max` "
		    "(say 33554432), or use --rate",
		    where, (unsigned long long)s->udp_overflow, were(s->udp_overflow));
	if (s->tcp_resent && tcp)
		add(w, "tcp-retransmissions",
		    "%s, TCP sent %llu segment%s again: packets were lost, so its figure is not the path's best", where,
		    (unsigned long long)s->tcp_resent, roci_plural(s->tcp_resent));
}

void warnings_judge(struct warnings *w, const struct perf_order *order, const struct perf_facts *near,
		    const struct perf_facts *far, bool same_host)
{
	const char *here = same_host ? "on this machine" : "here", *there = "there";
	uint64_t both_ns = near->spent.cpu_ns + far->spent.cpu_ns;
	uint32_t mtu = far->mtu && far->mtu < near->mtu ? far->mtu : near->mtu;

	*w = (struct warnings){0};
	judge_cpus(w, near, same_host ? both_ns : near->spent.cpu_ns, here);
	if (!same_host)
		judge_cpus(w, far, far->spent.cpu_ns, there);
	if (mtu && mtu < FULL_MTU && order->size > mtu && order->phase == PERF_BANDWIDTH)
		add(w, "mtu",
		    "the path's MTU lets a packet carry %u bytes only; with `ip link set dev NAME mtu 4200` (or 9000) "
		    "at both ends and in between it carries %u",
		    mtu, FULL_MTU);
	judge_device(w, &near->spent, "here");
	judge_device(w, &far->spent, there);
	judge_sockets(w, order, &near->spent, here);
	if (!same_host)
		judge_sockets(w, order, &far->spent, there);
	if (far->clients)
		add(w, "clients",
		    "the far end measured for %u other%s at the same time, and its CPU seconds are of all: try again "
		    "when it is free",
		    far->clients, roci_plural(far->clients));
}
