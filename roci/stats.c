/* SPDX-License-Identifier: BSD-2-Clause */
/* roci stats: what the device of another process has counted. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "stats_find.h"
#include "text.h"

#define PIDS_MAX     2048
#define COUNTERS_MAX 128
#define NAME_COLUMN  24
#define INTERVAL_MS  1000

struct stats_choices {
	bool watch, json;
	uint64_t interval_ms; /* 0: not given */
};

static const struct option_row options[] = {
	{.letter = 'w',
	 .name = "watch",
	 .group = "options",
	 .help = "print the counters again and again, with the growth\nof each per second, until the process ends",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct stats_choices, watch)},
	{.name = "interval",
	 .argument = "TIME",
	 .group = "options",
	 .help = "with --watch: the time between two lines or tables",
	 .default_text = "1s",
	 .kind = OPTION_TIME,
	 .offset = offsetof(struct stats_choices, interval_ms),
	 .min = 100,
	 .max = 3600000},
	{.name = "json",
	 .group = "options",
	 .help = "print JSON; with --watch one object a line",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct stats_choices, json)},
	OPTION_HELP_ROW,
};

/* What a process had counted when it was looked at. */
struct look {
	struct roci_stats_file file;
	bool alive;
	struct timespec at;
};

/* ---- printing ---- */

static void print_program(const struct look *look)
{
	text_print(stdout, look->file.program, strlen(look->file.program));
}

static void print_head(const struct look *look)
{
	time_t began = (time_t)look->file.began_s;
	struct tm tm;
	char text[32] = "";

	if (localtime_r(&began, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("process %" PRIu64 " (", look->file.pid);
	print_program(look);
	printf("), %s; roci0 was opened at %s\n", look->alive ? "running" : "has ended", text);
}

/* A table, and the one before it. */
struct table {
	uint64_t before[COUNTERS_MAX];
	double seconds; /* since then; 0: there is none before */
	unsigned row;
	bool empty;
};

static void print_counter(void *context, const char *name, uint64_t value)
{
	struct table *t = context;
	unsigned row = t->row++;

	if (row >= COUNTERS_MAX)
		return;
	if (value) {
		t->empty = false;
		printf("  %-*s %14" PRIu64, NAME_COLUMN, name, value);
		if (t->seconds > 0 && value > t->before[row])
			printf(" %14.0f/s", (double)(value - t->before[row]) / t->seconds);
		putchar('\n');
	}
	t->before[row] = value;
}

static void print_table(const struct look *look, struct table *t)
{
	print_head(look);
	t->row = 0;
	t->empty = true;
	roci_device_stats_each(&look->file.device, &look->file.engine, print_counter, t);
	if (t->empty)
		puts("  nothing was counted yet");
}

static void add_counter(void *context, const char *name, uint64_t value)
{
	json_object_set_new(context, name, json_integer((json_int_t)value));
}

static void print_object(const struct look *look)
{
	json_t *counters = json_object(), *object;

	roci_device_stats_each(&look->file.device, &look->file.engine, add_counter, counters);
	object = json_pack("{s:I, s:s%, s:b, s:I, s:o}", "pid", (json_int_t)look->file.pid, "program",
			   look->file.program, strlen(look->file.program), "running", look->alive, "opened",
			   (json_int_t)look->file.began_s, "counters", counters);
	if (object)
		json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

/* ---- looking ---- */

static int look_at(const struct command *self, long pid, struct look *look)
{
	char why[STATS_WHY_CHARS];

	if (stats_find(pid, &look->file, &look->alive, why)) {
		complain(self, "%s", why);
		return EXIT_FAILURE;
	}
	clock_gettime(CLOCK_MONOTONIC, &look->at);
	return 0;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

/* The file of a process that closes the device is gone: that ends the watch, too. */
static int watch(const struct command *self, long pid, const struct stats_choices *choices)
{
	uint64_t interval_ms = choices->interval_ms ? choices->interval_ms : INTERVAL_MS;
	const struct timespec pause = {.tv_sec = (time_t)(interval_ms / 1000),
				       .tv_nsec = (long)(interval_ms % 1000) * 1000000};
	bool terminal = isatty(STDOUT_FILENO);
	char why[STATS_WHY_CHARS];
	struct table table = {.seconds = 0};
	struct look look, last;
	int status = look_at(self, pid, &look);

	while (!status) {
		if (choices->json) {
			print_object(&look);
		} else {
			fputs(terminal ? "\033[H\033[J" : "", stdout);
			print_table(&look, &table);
		}
		if (fflush(stdout) || !look.alive)
			break;
		nanosleep(&pause, NULL);
		last = look;
		if (stats_find(pid, &look.file, &look.alive, why)) {
			fprintf(stderr, "roci stats: process %ld has ended, or has closed roci0\n", pid);
			break;
		}
		clock_gettime(CLOCK_MONOTONIC, &look.at);
		table.seconds = seconds_between(&last.at, &look.at);
	}
	return status;
}

/* Those that run, or those that do not. Returns how many. */
static size_t list_some(const struct stats_choices *choices, const long *pids, size_t count, bool alive)
{
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		char why[STATS_WHY_CHARS];
		struct look look;

		if (stats_find(pids[i], &look.file, &look.alive, why) || look.alive != alive)
			continue;
		shown++;
		if (choices->json)
			print_object(&look);
		else
			print_head(&look);
	}
	return shown;
}

static int list(const struct stats_choices *choices)
{
	long *pids = calloc(PIDS_MAX, sizeof(*pids));
	size_t count = pids ? stats_list(pids, PIDS_MAX) : 0;
	size_t shown = list_some(choices, pids, count, true);

	shown += list_some(choices, pids, count, false);
	free(pids);
	if (!shown && !choices->json)
		puts("no process of this user has roci0; `roci run -- PROGRAM` gives it to a program");
	return 0;
}

static int show(const struct command *self, const struct stats_choices *choices, const struct operands *operands)
{
	struct table table = {.seconds = 0};
	struct look look;
	char *end;
	long pid;
	int status;

	if (choices->interval_ms && !choices->watch)
		return complain(self, "--interval goes with --watch; add --watch, or remove --interval");
	if (!operands->count)
		return choices->watch ? complain(self, "--watch needs a PID; `roci stats` lists them") : list(choices);
	if (operands->count > 1)
		return complain(self, "give one PID; usage: roci stats %s", self->usage);
	errno = 0;
	pid = strtol(operands->list[0], &end, 10);
	if (errno || *end || pid <= 0)
		return complain(self, "'%s' is not a process id; `roci stats` lists them", operands->list[0]);
	if (choices->watch)
		return watch(self, pid, choices);
	status = look_at(self, pid, &look);
	if (status)
		return status;
	if (choices->json)
		print_object(&look);
	else
		print_table(&look, &table);
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct stats_choices choices = {.watch = false};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	status = show(self, &choices, &operands);
	free(operands.list);
	return status;
}

const struct command stats_command = {
	.name = "stats",
	.summary = "show what roci0 has counted in a process",
	.usage = "[OPTION]... [PID]",
	.examples = "  roci stats                    list the processes that have roci0\n"
		    "  roci stats 4711               the counters of process 4711, also after it was killed\n"
		    "  roci stats --watch 4711       live\n",
	.about = "Counters that are zero are left out; `man roci-stats` says what each means. Only processes of the\n"
		 "same user can be read.\n\n"
		 "exit status: 0; 1 if there are no counters of PID, 2 if an option is wrong.\n",
	.manual = "roci-stats",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_NONE,
	.run = run,
};
