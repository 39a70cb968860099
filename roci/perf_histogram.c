/* SPDX-License-Identifier: BSD-2-Clause */
/* roci perf --histogram: an HdrHistogram log. Each phase and size has a tag, and each part of its time a line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perf.h"
#include "perf/hdr_text.h"

static void write_row(FILE *out, const struct perf *perf, const struct perf_row *row, uint64_t start_ms)
{
	const struct run_result *r = &row->result;
	uint64_t before_ns = 0;
	char tag[48];

	snprintf(tag, sizeof(tag), "%s-%u", row->order.phase == PERF_LATENCY ? tour_op_names[perf->plan.op] : "tcp",
		 row->order.size);
	for (unsigned i = 0; i < r->interval_count; i++) {
		const struct run_interval *part = &r->intervals[i];
		if (part->histogram)
			hdr_log_line(out, tag, r->began_ms - start_ms + before_ns / 1000000u,
				     (part->end_ns - before_ns) / 1000000u, part->max_ns, part->histogram);
		before_ns = part->end_ns;
	}
}

int perf_write_histogram(const struct perf *perf)
{
	const char *name = perf->choices->histogram;
	uint64_t start_ms = perf->row_count ? perf->rows[0].result.began_ms : 0;
	FILE *out = fopen(name, "we");
	bool bad;

	if (!out) {
		complain(perf->command, "%s: %s", name, strerror(errno));
		return -EIO;
	}
	hdr_log_begin(out, "roci perf " ROCI_VERSION, start_ms);
	for (unsigned i = 0; i < perf->row_count; i++)
		write_row(out, perf, &perf->rows[i], start_ms);
	bad = ferror(out);
	if (!fclose(out) && !bad)
		return 0;
	complain(perf->command, "%s: %s", name, strerror(errno));
	return -EIO;
}
