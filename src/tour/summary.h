/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the times of operations for the summary at the end. */
#ifndef ROCI_TOUR_SUMMARY_H
#define ROCI_TOUR_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

/* Times that are kept. Of more, an even share is kept: every second one, then every fourth. min and max are of all. */
#define SUMMARY_KEPT (1u << 16)

struct summary {
	uint64_t tried, failed;
	uint64_t min_ns, max_ns;
	uint64_t skip; /* how many to leave out for each that is kept, less one */
	uint64_t seen;
	size_t count;
	uint64_t *kept;
};

struct summary_times {
	uint64_t min_ns, median_ns, p99_ns, max_ns;
};

/* 0 or -ENOMEM. */
int summary_init(struct summary *s);
void summary_destroy(struct summary *s);
void summary_add(struct summary *s, uint64_t ns);
void summary_add_failure(struct summary *s);
/* All 0 if no operation succeeded. The percentiles are those of the nearest rank. */
struct summary_times summary_times(const struct summary *s);

#endif
