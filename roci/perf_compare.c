/* SPDX-License-Identifier: BSD-2-Clause */
/* roci perf --compare: what changed between two files of `roci perf --json`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_line.h"
#include "perf.h"
#include "perf/change.h"
#include "units.h"

#define LINE_BYTES (4u << 20) /* of a file; a longer line is none of ours */

struct recording {
	json_t *start;   /* an object; NULL: there was none */
	json_t *results; /* an array */
};

static void recording_destroy(struct recording *r)
{
	json_decref(r->start);
	json_decref(r->results);
}

/* Reads the lines that are ours. Complains and returns -EINVAL where there is none. */
static int read_recording(const struct command *command, const char *name, struct recording *r)
{
	FILE *file = fopen(name, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	*r = (struct recording){.results = json_array()};
	if (!file) {
		complain(command, "%s: %s", name, strerror(errno));
		return -EINVAL;
	}
	while ((len = getline(&line, &room, file)) > 0 && (size_t)len < LINE_BYTES) {
		json_t *object = json_loads(line, 0, NULL);
		const char *event = json_string_value(json_object_get(object, "event"));
		if (event && !strcmp(event, "start") && !r->start)
			r->start = json_incref(object);
		if (event && !strcmp(event, "result"))
			json_array_append(r->results, object);
		json_decref(object);
	}
	free(line);
	fclose(file);
	if (r->start && json_array_size(r->results))
		return 0;
	complain(command, "%s has no figures of `roci perf`: make it with `roci perf --json HOST >FILE`", name);
	return -EINVAL;
}

/* Says where the two were not the same measurement. */
static void compare_settings(const struct recording *a, const struct recording *b)
{
	static const char *const names[] = {"op",      "qps",  "cqs",       "depth",         "bidir",
					    "events",  "rate", "time_ms",   "device",        "far_device",
					    "address", "mtu",  "same_host", "shared_memory", "version"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *one = json_object_get(a->start, names[i]), *two = json_object_get(b->start, names[i]);
		char *before = one ? json_dumps(one, JSON_ENCODE_ANY) : NULL;
		char *after = two ? json_dumps(two, JSON_ENCODE_ANY) : NULL;
		if (before && after && strcmp(before, after) != 0)
			printf("! not the same measurement: %s was %s, and is %s\n", names[i], before, after);
		free(before);
		free(after);
	}
}

static json_t *find(const struct recording *r, const json_t *like)
{
	const char *phase = json_string_value(json_object_get(like, "phase"));
	json_t *one;
	size_t i;

	json_array_foreach(r->results, i, one)
	{
		const char *other = json_string_value(json_object_get(one, "phase"));
		if (phase && other && !strcmp(phase, other) &&
		    json_equal(json_object_get(one, "bytes"), json_object_get(like, "bytes")))
			return one;
	}
	return NULL;
}

/* A figure that is compared. */
struct figure {
	const char *title;      /* "bandwidth" */
	const char *percentile; /* of latency: its name in percentiles_ns; NULL: bandwidth */
	const char *part;       /* member of an interval */
	bool more_is_better;
};

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static void sample(const json_t *result, const struct figure *f, double parts[RUN_INTERVALS + 1],
		   struct change_sample *out)
{
	json_t *list = json_object_get(result, "intervals"), *one;
	double before_ns = 0;
	size_t i;

	*out = (struct change_sample){.parts = parts};
	out->figure = f->percentile ? number(json_object_get(result, "percentiles_ns"), f->percentile)
				    : number(result, "bytes_per_s");
	json_array_foreach(list, i, one)
	{
		double ns = number(one, "end_ns") - before_ns;
		before_ns = number(one, "end_ns");
		/* the last part may be very short */
		if (i > RUN_INTERVALS || ns <= 0 || (i && i + 1 == json_array_size(list)))
			continue;
		parts[out->count++] = f->percentile ? number(one, f->part) : number(one, "messages") / ns;
	}
}

static const char *print_figure(char buf[UNITS_CHARS], const struct figure *f, double value)
{
	return f->percentile ? perf_print_time(buf, (uint64_t)value) : units_bits(buf, value);
}

/* Prints a row. Returns whether something has become worse. */
static bool compare_one(const struct figure *f, const json_t *before, const json_t *after, bool json)
{
	static const char *const verdicts[][2] = {{"same", "same"}, {"worse", "better"}, {"better", "worse"}};
	double parts_before[RUN_INTERVALS + 1], parts_after[RUN_INTERVALS + 1];
	struct change_sample b, a;
	struct change c;
	const char *verdict, *phase = json_string_value(json_object_get(before, "phase"));
	uint32_t bytes = (uint32_t)number(before, "bytes");
	char size[UNITS_CHARS], one[UNITS_CHARS], two[UNITS_CHARS];

	sample(before, f, parts_before, &b);
	sample(after, f, parts_after, &a);
	c = change_judge(&b, &a);
	verdict = verdicts[c.verdict][f->more_is_better];
	if (json) {
		json_t *object = json_line("change");
		json_object_set_new(object, "phase", json_string(phase));
		json_object_set_new(object, "figure", json_string(f->title));
		json_object_set_new(object, "bytes", json_integer(bytes));
		json_object_set_new(object, "before", json_real(b.figure));
		json_object_set_new(object, "after", json_real(a.figure));
		json_object_set_new(object, "change", json_real(c.part));
		json_object_set_new(object, "noise", json_real(c.noise));
		json_object_set_new(object, "verdict", json_string(verdict));
		json_line_print(object, stdout);
	} else {
		printf("%10s %-16s %13s %13s %+9.1f %% %9.1f %%  %s\n", perf_print_size(size, bytes), f->title,
		       print_figure(one, f, b.figure), print_figure(two, f, a.figure), c.part * 100, c.noise * 100,
		       verdict);
	}
	return !strcmp(verdict, "worse");
}

/* Returns how many figures both have. *worse: how many of them have become worse. */
static unsigned compare_all(const struct recording *before, const struct recording *after, bool json, unsigned *worse)
{
	static const struct figure figures[] = {
		{"bandwidth", NULL, NULL, true},
		{"median latency", "50", "p50_ns", false},
		{"latency of 99 %", "99", "p99_ns", false},
	};
	unsigned compared = 0;
	json_t *one;
	size_t i;

	json_array_foreach(before->results, i, one)
	{
		json_t *other = find(after, one);
		const char *phase = json_string_value(json_object_get(one, "phase"));
		if (!other || !phase || !strncmp(phase, "tcp-", 4)) /* TCP is a yardstick, and not what changed */
			continue;
		for (size_t f = 0; f < sizeof(figures) / sizeof(figures[0]); f++) {
			if (!figures[f].percentile == !strcmp(phase, "latency"))
				continue;
			*worse += compare_one(&figures[f], one, other, json);
			compared++;
		}
	}
	return compared;
}

int perf_compare(const struct command *command, const struct perf_choices *choices, char *const names[2])
{
	struct recording before = {0}, after = {0};
	int status = PERF_CANNOT;
	unsigned worse = 0, compared;

	if (!read_recording(command, names[0], &before) && !read_recording(command, names[1], &after)) {
		if (!choices->json) {
			compare_settings(&before, &after);
			printf("%10s %-16s %13s %13s %11s %11s\n", "size", "", "before", "after", "change", "noise");
		}
		compared = compare_all(&before, &after, choices->json, &worse);
		if (!compared)
			complain(command, "the two files have no size in common");
		status = !compared ? PERF_CANNOT : worse ? PERF_FAILED : PERF_GOOD;
	}
	recording_destroy(&before);
	recording_destroy(&after);
	return status;
}
