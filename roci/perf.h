/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `roci perf`: what it was asked for, what it found, and what it prints. */
#ifndef ROCI_PERF_COMMAND_H
#define ROCI_PERF_COMMAND_H

#include <jansson.h>

#include "bar.h"
#include "command.h"
#include "device.h"
#include "perf/near.h"
#include "perf/run.h"
#include "perf/warnings.h"
#include "units.h"

#define PERF_MAX_SIZES 32u
#define PERF_NOT_GIVEN UINT32_MAX

struct perf_choices {
	unsigned op, only; /* or PERF_NOT_GIVEN */
	const char *size, *device, *histogram, *plot;
	uint64_t qps, cqs, depth, time_ms, rate, port;
	bool bidir, events, tcp, compare, json, quiet;
};

/* One figure: of a phase and a size. */
struct perf_row {
	struct perf_order order;
	struct run_result result;
};

struct perf {
	const struct command *command;
	const struct perf_choices *choices;
	struct perf_plan plan;
	struct device_choice device;
	struct dial_target target;
	struct perf_near near;
	uint32_t sizes[PERF_MAX_SIZES];
	unsigned size_count;
	struct perf_row *rows; /* so far */
	unsigned row_count, rows_planned;
	struct perf_order order; /* what is measured now */
	struct bar bar;
	bool heading[PERF_PHASES]; /* printed */
	struct warnings warned;    /* kinds that were printed already */
};

/* As `roci ping`: all was measured; something failed, or ^C; nothing could be tried. */
enum { PERF_GOOD = 0, PERF_FAILED = 1, PERF_CANNOT = 2 };

/* Bytes/s, of both directions where there are two. */
double perf_bandwidth(const struct perf *perf, const struct perf_row *row);
/* CPU seconds for each GB (10^9 bytes) that was moved. */
double perf_cpu_per_gb(const struct perf_row *row, const struct perf_facts *facts);
/* The row of the same size and another phase, or NULL. */
const struct perf_row *perf_other(const struct perf *perf, const struct perf_row *row, enum perf_phase phase);
/* Whether latency is half of a round trip, and how to say it. */
const char *perf_latency_text(const struct perf *perf);

/* Lines for people, or what is below with --json. */
void perf_show_start(struct perf *perf);
void perf_show_row(struct perf *perf, const struct perf_row *row);
void perf_show_progress(struct perf *perf, const struct run_result *so_far, uint64_t elapsed_ns);
void perf_show_warnings(struct perf *perf, const struct warnings *warnings);
void perf_show_failure(struct perf *perf, const struct failure *failure);

/* Bytes of the QPs' packets. */
uint32_t perf_mtu(const struct perf *perf);

/* Whether the path of roci0 to the far end is memory that both ends share. Known when they are connected. */
bool perf_has_no_packets(const struct perf *perf);

#define PERF_PACKETS_CHARS 64
/* "packets of 4096 bytes" */
const char *perf_print_packets(char buf[PERF_PACKETS_CHARS], const struct perf *perf);

/* "85.3 us", "64 KiB". */
const char *perf_print_time(char buf[UNITS_CHARS], uint64_t ns);
const char *perf_print_size(char buf[UNITS_CHARS], uint32_t size);

/* --compare: prints what changed between two files of --json. PERF_FAILED: something is worse. */
int perf_compare(const struct command *command, const struct perf_choices *choices, char *const names[2]);

/* Whether --plot knows a file by its end; and writes it. Complains and returns a negative errno where it cannot. */
bool perf_plot_can(const char *name);
int perf_write_plot(const struct perf *perf);
/* Writes --histogram's file. Complains and returns -EIO where it cannot. */
int perf_write_histogram(const struct perf *perf);

/* Objects of JSON. */
void perf_json_start(const struct perf *perf);
/* A figure as an object. */
json_t *perf_json_result(const struct perf *perf, const struct perf_row *row);
void perf_json_row(const struct perf *perf, const struct perf_row *row);
void perf_json_progress(const struct perf *perf, const struct run_result *so_far, uint64_t elapsed_ns);
void perf_json_warnings(const struct perf *perf, const struct warnings *warnings);
void perf_json_failure(const struct failure *failure);
void perf_json_end(bool complete);

#endif
