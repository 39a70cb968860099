/* SPDX-License-Identifier: BSD-2-Clause */
/* roci dump: what its files share. */
#ifndef ROCI_DUMP_H
#define ROCI_DUMP_H

#include "capture/record_meaning.h"
#include "capture/tracker.h"
#include "command.h"

struct dump_choices {
	const char *qp, *host;
	unsigned op; /* index into dump_op_names */
	bool verbose, errors, all, packets, stats, json;
	bool run;
	uint64_t pid;
};

/* ---- dump_filter.c ---- */

extern const char *const dump_op_names[];

struct dump_filter {
	bool by_qp, by_host, errors, all, packets;
	bool steps; /* also what the device does between a post and its completion */
	uint32_t qpn;
	uint8_t gid[16];
	unsigned op;
};

/* Returns 0, or the exit status after a complaint. */
int dump_filter_parse(const struct command *self, const struct dump_choices *choices, struct dump_filter *filter);
bool dump_filter_admits(const struct dump_filter *filter, const struct capture_event *e);
bool dump_filter_admits_record(const struct dump_filter *filter, const struct roci_record *r);

/* ---- dump_line.c: for people ---- */

/* begin_ns: of the capture's first packet. */
void dump_line(const struct capture_event *e, uint64_t begin_ns, bool verbose);
void dump_run(const struct capture_run *run, uint64_t begin_ns, bool verbose);
/* A block that is neither a packet nor a record of ours: what it is, and its bytes. */
void dump_block(const struct capture_record *record, uint64_t begin_ns);
const char *dump_address(const uint8_t gid[16], char text[48]);

/* ---- dump_json.c ---- */

void dump_json(const struct capture_event *e);
void dump_json_record(const struct roci_record *r);
void dump_json_conversation(void *context, const struct capture_conversation *c);

/* ---- dump_live.c ---- */

/* A program whose packets are read while it runs. */
struct dump_live {
	FILE *file; /* the capture */
	long pid;   /* of the program */
};

/* Starts argv[0] on roci0. Returns 0, or the exit status after a complaint. */
int dump_live_run(const struct command *self, char **argv, struct dump_live *live);
/* Closes the capture, and waits for the end of the program. Returns its exit status, as a shell does. */
int dump_live_end(struct dump_live *live);

/* ---- dump_watch.c ---- */

/* Opens *file for the packets of a process that has roci0, from now on. Returns 0, or the exit status after a
 * complaint. */
int dump_watch(const struct command *self, long pid, FILE **file);

/* ---- dump_stats.c ---- */

void dump_conversation(void *context, const struct capture_conversation *c);

#endif
