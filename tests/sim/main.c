/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim [SEED [COUNT]] [-v] [--jobs N] [--named [FILE]] [--rings] [--attack] [--memory] [--clocks] [--longer] [--covered]
 *
 * Runs COUNT programs (ROCI_SIM_COUNT in the environment overrides it), of seeds SEED, SEED + 1, ... Exit status 0 if
 * all passed. Each program runs in a worker process, so a crash of the engine is a failed program like any other,
 * and its seed is printed. --attack prints what a blind forgery costs in these programs. With --rings
 * RC QPs take the local path. With --memory allocations fail, with --clocks the clocks leap and
 * stand. With --longer packets are longer than the path MTU. --covered prints what the programs came across, and fails
 * where something did not occur.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define MAX_JOBS     64
#define MAX_NAMED    256
#define MAX_FAILURES 20 /* of a worker: enough to see what is wrong */
#define MAX_SECONDS  60 /* of a program */

/* Shared with the workers. */
struct worker {
	uint64_t seed; /* under way */
	uint64_t next; /* to be run next */
	uint64_t crashed;
	pid_t pid;
	struct sim_stats stats;
};

static struct sim sim;

/* How to see the program again. */
static void print_replay(const struct sim *s, uint64_t seed)
{
	printf("    replay: sim %llu 1 -v%s%s%s%s%s\n", (unsigned long long)seed, s->rings ? " --rings" : "",
	       s->attacked ? " --attack" : "", s->memory ? " --memory" : "", s->clocks ? " --clocks" : "",
	       s->longer ? " --longer" : "");
}

_Noreturn void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
	sim_trace(s, "FAILED: %s", s->reason);
	printf("FAILED seed %llu at %llu us: %s\n", (unsigned long long)s->seed, (unsigned long long)(s->now / US),
	       s->reason);
	print_replay(s, s->seed);
	fflush(stdout);
	longjmp(s->fail, 1);
}

void sim_trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	printf("%12.3f ", (double)(s->now - 1000000 * MS) / US);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void work(struct worker *w, uint64_t end, unsigned stride)
{
	sim.stats = w->stats;
	while (w->next < end && w->stats.failed < MAX_FAILURES) {
		w->seed = w->next;
		w->next += stride;
		alarm(MAX_SECONDS);
		sim_run(&sim, w->seed);
		w->stats = sim.stats;
	}
	exit(0);
}

static void start(struct worker *w, uint64_t end, unsigned stride)
{
	fflush(stdout);
	w->pid = fork();
	if (w->pid == 0)
		work(w, end, stride);
	if (w->pid < 0) {
		perror("fork");
		exit(2);
	}
}

/* Waits for a worker. One that crashed is started again with the next seed. Returns false when none is left. */
static bool reap(struct worker *workers, unsigned jobs, uint64_t end)
{
	int status;
	pid_t pid = wait(&status);

	if (pid < 0)
		return false;
	for (unsigned i = 0; i < jobs; i++) {
		struct worker *w = &workers[i];

		if (w->pid != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		printf("FAILED seed %llu: %s %d\n", (unsigned long long)w->seed,
		       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		print_replay(&sim, w->seed);
		w->stats.failed++;
		w->stats.programs++;
		if (++w->crashed < MAX_FAILURES)
			start(w, end, jobs);
	}
	return true;
}

static void add_stats(struct sim_stats *sum, const struct sim_stats *part)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)part;

	for (unsigned i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static void run_many(uint64_t seed, uint64_t count, unsigned jobs, struct sim_stats *sum)
{
	struct worker *workers =
		mmap(NULL, jobs * sizeof(*workers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (workers == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	for (unsigned i = 0; i < jobs; i++) {
		workers[i].next = seed + i;
		start(&workers[i], seed + count, jobs);
	}
	while (reap(workers, jobs, seed + count))
		;
	for (unsigned i = 0; i < jobs; i++)
		add_stats(sum, &workers[i].stats);
	munmap(workers, jobs * sizeof(*workers));
}

struct named {
	char name[64];
	unsigned long long seed;
	char rest[256]; /* flags first */
};

/* --rings and the like: what the programs are like. */
static bool take_flag(struct sim *s, const char *arg)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {{"--rings", &s->rings},
		     {"--attack", &s->attacked},
		     {"--memory", &s->memory},
		     {"--clocks", &s->clocks},
		     {"--longer", &s->longer}};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (strcmp(arg, flags[i].name))
			continue;
		*flags[i].flag = true;
		return true;
	}
	return false;
}

/* seeds.txt: a name, a seed with its flags, and why, one to a line; '#' starts a comment. Returns how many, or -1. */
static int read_named(const char *path, struct named *list, int max)
{
	char line[512];
	int n = 0;
	FILE *f = fopen(path, "r");

	if (!f) {
		fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (n < max && fgets(line, sizeof(line), f))
		if (line[0] != '#' &&
		    sscanf(line, "%63s %llu %255[^\n]", list[n].name, &list[n].seed, list[n].rest) >= 2)
			n++;
	fclose(f);
	return n;
}

static int run_named(const char *path, struct sim_stats *sum)
{
	static struct named list[MAX_NAMED];
	int n = read_named(path, list, MAX_NAMED);

	for (int i = 0; i < n; i++) {
		uint64_t before = sum->failed;

		sim.rings = sim.attacked = sim.memory = sim.clocks = sim.longer = false;
		for (char *word = strtok(list[i].rest, " "); word && take_flag(&sim, word); word = strtok(NULL, " "))
			;
		run_many(list[i].seed, 1, 1, sum);
		printf("[%s] %s\n", sum->failed == before ? "  OK  " : "FAILED", list[i].name);
	}
	sim.attacked = false; /* so few tries measure nothing */
	return n < 0;
}

static void report(const struct sim_stats *s, double seconds)
{
	printf("%llu work requests (%llu MB), %llu receives; %llu packets: %llu lost, %llu twice, %llu late, %llu "
	       "damaged, %llu marked\n",
	       (unsigned long long)s->work_requests, (unsigned long long)(s->bytes >> 20),
	       (unsigned long long)s->receives, (unsigned long long)s->packets, (unsigned long long)s->lost,
	       (unsigned long long)s->duplicated, (unsigned long long)s->reordered, (unsigned long long)s->damaged,
	       (unsigned long long)s->marked);
	printf("%llu retransmitted, %llu timeouts, %llu RNR NAKs, %llu NAKs; %llu mistakes made, %llu QPs failed\n",
	       (unsigned long long)s->retransmits, (unsigned long long)s->timeouts, (unsigned long long)s->rnr,
	       (unsigned long long)s->naks, (unsigned long long)s->faults, (unsigned long long)s->errors);
	printf("%llu passed, %llu failed, %.1f s, %.0f programs/s\n", (unsigned long long)(s->programs - s->failed),
	       (unsigned long long)s->failed, seconds, (double)s->programs / seconds);
}

static double clock_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t numbers[2] = {1, 1000};
	unsigned jobs = 1, num_numbers = 0;
	const char *named = NULL;
	bool covered = false, all = true;
	struct sim_stats sum = {0};
	double began = clock_seconds();
	const char *count = getenv("ROCI_SIM_COUNT");

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v")) {
			sim.verbose = true;
		} else if (!strcmp(argv[i], "--jobs") && i + 1 < argc) {
			jobs = strtoul(argv[++i], NULL, 0);
		} else if (take_flag(&sim, argv[i])) {
			continue;
		} else if (!strcmp(argv[i], "--covered")) {
			covered = true;
		} else if (!strcmp(argv[i], "--named")) {
			named = i + 1 < argc ? argv[++i] : SIM_SEEDS;
		} else if (argv[i][0] != '-' && num_numbers < 2) {
			numbers[num_numbers++] = strtoull(argv[i], NULL, 0);
		} else {
			fprintf(stderr,
				"usage: sim [SEED [COUNT]] [-v] [--jobs N] [--named [FILE]] [--rings] [--attack] "
				"[--memory] [--clocks] [--longer] [--covered]\n");
			return 2;
		}
	}
	if (count && numbers[1] != 1)
		numbers[1] = strtoull(count, NULL, 0);
	if (jobs < 1 || jobs > MAX_JOBS)
		jobs = 1;
	if (named) {
		if (run_named(named, &sum))
			return 2;
	} else if (numbers[1] == 1) {
		sim_run(&sim, numbers[0]); /* in this process, for the debugger */
		sum = sim.stats;
	} else {
		run_many(numbers[0], numbers[1], jobs, &sum);
	}
	if (covered)
		all = sim_cover_report(&sum.covered);
	report(&sum, clock_seconds() - began);
	if (sim.attacked && !sim_attack_report(&sum))
		return 1;
	if (!all)
		printf("something did not occur that can: see the lines that begin with 0\n");
	return sum.failed || !sum.programs || !all;
}
