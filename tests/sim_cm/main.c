/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_cm [SEED [COUNT]] [-v] [--covered]: runs COUNT programs with the seeds SEED, SEED + 1, ... Exit status 0: all
 * passed. ROCI_SIM_CM_COUNT in the environment overrides COUNT. -v prints what happens, --covered what the programs
 * came across: it fails where something that can occur did not.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_cm.h"

#define MAX_FAILURES 20
#define QUIET_AFTER  (1200 * SECOND) /* every exchange has ended */

struct sim sim;
static jmp_buf failed;

_Noreturn void sim_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("FAILED seed %llu at %.6f s: ", (unsigned long long)sim.seed, (double)sim.now / 1e9);
	vprintf(fmt, ap);
	printf("\n    replay: sim_cm %llu 1 -v\n", (unsigned long long)sim.seed);
	va_end(ap);
	longjmp(failed, 1);
}

void sim_trace(const char *fmt, ...)
{
	va_list ap;

	if (!sim.verbose)
		return;
	va_start(ap, fmt);
	printf("%12.6f ", (double)sim.now / 1e9);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

unsigned sim_below(unsigned limit)
{
	return limit ? (unsigned)random_below(&sim.rng, limit) : 0;
}

bool sim_chance(unsigned per_thousand)
{
	return sim_below(1000) < per_thousand;
}

uint64_t sim_think_time(void)
{
	static const unsigned longest[] = {1, 10, 100, 1000, 6000, 25000}; /* ms */

	return sim_below(1000 * longest[sim_below(6)]) * US;
}

/* Also a crash prints its seed. */
static void crashed(int signal_number)
{
	printf("CRASHED seed %llu\n    replay: sim_cm %llu 1 -v\n", (unsigned long long)sim.seed,
	       (unsigned long long)sim.seed);
	fflush(stdout);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Servers that close a listener and open the next one, mostly soon after. */
static void schedule_listeners(void)
{
	static const unsigned gaps[] = {20, 200, 400, 20000}; /* ms */

	for (unsigned n = sim_below(12); n--;) {
		unsigned host = sim_below(HOSTS), service = sim_below(SERVICES);
		struct event *ev = sim_schedule(EV_CLOSE, sim.now + sim_below(sim_chance(500) ? 20 : 20000) * MS);

		ev->host = host;
		ev->service = service;
		ev = sim_schedule(EV_LISTEN, ev->at + sim_below(1000 * gaps[sim_below(4)]) * US);
		ev->host = host;
		ev->service = service;
	}
}

static void set_up(uint64_t seed, bool verbose)
{
	static const unsigned losses[] = {0, 0, 10, 100, 300};

	sim.seed = seed;
	sim.rng = seed * 0x9e3779b97f4a7c15 + 1;
	sim.now = 1000 * SECOND;
	sim.order = sim.event_count = sim.free_count = sim.end_count = 0;
	sim.verbose = verbose;
	sim.hostile = sim_chance(120);
	sim.loss = losses[sim_below(5)];
	sim.duplicate = sim_chance(500) ? sim_below(200) : 0;
	sim.delay_max = (1 + sim_below(200)) * MS;
	sim.blackout_from = sim.blackout_to = 0;
	if (sim_chance(200)) {
		sim.blackout_from = sim.now + sim_below(20000) * MS;
		sim.blackout_to = sim.blackout_from + sim_below(150000) * MS;
	}
	sim.budget = 1 + sim_below(16);
	for (unsigned h = 0; h < HOSTS; h++) {
		sim.hosts[h] = (struct host){.gid = {[10] = 0xff, [11] = 0xff, 10, 0, 0, (uint8_t)(h + 1)}};
		app_host_boot(h);
	}
	if (sim_chance(150)) {
		uint64_t at = sim.now + sim_below(30000) * MS;
		unsigned victim = sim_below(HOSTS);

		sim_schedule(EV_KILL, at)->host = victim;
		if (sim_chance(700))
			sim_schedule(EV_BOOT, at + sim_below(20000) * MS)->host = victim;
	}
	if (sim_chance(400))
		schedule_listeners();
}

static void handle(struct event *ev)
{
	switch (ev->kind) {
	case EV_MAD:
		for (unsigned h = 0; h < HOSTS; h++)
			if (sim.hosts[h].cm && !memcmp(sim.hosts[h].gid, ev->tx.dgid, 16))
				roci_cm_rx(sim.hosts[h].cm, sim.now, ev->tx.mad, ev->tx.sgid, ev->tx.dgid, 1);
		break;
	case EV_ACT:
		if (ev->end)
			app_act(ev->end);
		else
			app_connect(ev->host);
		break;
	case EV_KILL: app_host_killed(ev->host); break;
	case EV_BOOT: app_host_boot(ev->host); break;
	case EV_CLOSE: app_close(ev->host, ev->service); break;
	case EV_LISTEN: app_listen(ev->host, ev->service); break;
	}
}

/* Runs everything that happens up to `end`. */
static void run_until(uint64_t end)
{
	for (;;) {
		uint64_t next = sim.event_count ? sim.events[sim.heap[0]].at : ROCI_CM_NEVER;
		struct event ev;

		for (unsigned h = 0; h < HOSTS; h++) {
			uint64_t deadline = sim.hosts[h].cm ? roci_cm_deadline(sim.hosts[h].cm) : ROCI_CM_NEVER;

			next = deadline < next ? deadline : next;
		}
		if (next > end)
			break;
		sim.now = next > sim.now ? next : sim.now;
		for (unsigned h = 0; h < HOSTS; h++) {
			if (sim.hosts[h].cm)
				roci_cm_timers(sim.hosts[h].cm, sim.now);
			net_settle(h);
		}
		if (sim_next(&ev, sim.now)) {
			handle(&ev);
			for (unsigned h = 0; h < HOSTS; h++)
				net_settle(h);
		}
		model_check_timeouts();
	}
	sim.now = end;
}

static void schedule_connects(void)
{
	for (unsigned i = 0; i < sim.budget; i++) {
		struct event *ev = sim_schedule(EV_ACT, sim.now + sim_below(sim_chance(500) ? 10 : 20000) * MS);

		ev->end = NULL;
		ev->host = sim_below(HOSTS);
	}
}

static void tear_down(void)
{
	for (unsigned i = 0; i < sim.end_count; i++)
		if (sim.hosts[sim.ends[i].host].cm)
			app_destroy(&sim.ends[i]);
	for (unsigned h = 0; h < HOSTS; h++) {
		if (!sim.hosts[h].cm)
			continue;
		for (unsigned i = 0; i < SERVICES; i++)
			app_close(h, i);
		net_settle(h);
	}
	run_until(sim.now + QUIET_AFTER);
	for (unsigned h = 0; h < HOSTS; h++) {
		if (!sim.hosts[h].cm)
			continue;
		if (cm_object_count(sim.hosts[h].cm))
			sim_fail("host %u has %u objects left", h, cm_object_count(sim.hosts[h].cm));
		if (roci_cm_deadline(sim.hosts[h].cm) != ROCI_CM_NEVER)
			sim_fail("host %u waits for nothing", h);
	}
}

static bool run(uint64_t seed, bool verbose)
{
	if (setjmp(failed)) {
		for (unsigned h = 0; h < HOSTS; h++)
			if (sim.hosts[h].cm)
				roci_cm_destroy(sim.hosts[h].cm);
		return false;
	}
	set_up(seed, verbose);
	schedule_connects();
	run_until(sim.now + QUIET_AFTER);
	if (!sim.hostile)
		model_check_agreement();
	tear_down();
	for (unsigned h = 0; h < HOSTS; h++)
		if (sim.hosts[h].cm)
			roci_cm_destroy(sim.hosts[h].cm);
	return true;
}

int main(int argc, char **argv)
{
	const char *override = getenv("ROCI_SIM_CM_COUNT");
	uint64_t numbers[2] = {1, 1000};
	unsigned failures = 0, n = 0;
	struct timespec t0, t1;
	bool verbose = false, covered = false, all = true;
	double seconds;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else if (!strcmp(argv[i], "--covered"))
			covered = true;
		else if (n < 2)
			numbers[n++] = strtoull(argv[i], NULL, 0);
	}
	if (override && n == 2 && numbers[1] > 1)
		numbers[1] = strtoull(override, NULL, 0);
	signal(SIGABRT, crashed);
	signal(SIGSEGV, crashed);
	signal(SIGALRM, crashed);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (uint64_t i = 0; i < numbers[1] && failures < MAX_FAILURES; i++) {
		alarm(60);
		failures += !run(numbers[0] + i, verbose);
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	seconds = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
	if (covered)
		all = cover_report();
	printf("%llu programs, %u failed, %llu MADs, %llu events, %llu half-open, %.0f programs/s\n",
	       (unsigned long long)numbers[1], failures, (unsigned long long)sim.mads,
	       (unsigned long long)sim.events_seen, (unsigned long long)sim.half_open, (double)numbers[1] / seconds);
	if (!all)
		printf("something did not occur that can: see the lines that begin with 0\n");
	return failures != 0 || !all;
}
