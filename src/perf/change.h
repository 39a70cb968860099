/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether two measurements of the same thing differ by more than their noise. */
#ifndef ROCI_PERF_CHANGE_H
#define ROCI_PERF_CHANGE_H

#include <stddef.h>

/* Of a measurement: its figure, and that of each part of its time. */
struct change_sample {
	double figure;
	const double *parts;
	size_t count;
};

struct change {
	double part;  /* by how much the second differs: 0.1 is a tenth more. 0 if the first is 0 */
	double noise; /* how much of that may be chance: what two runs of the same would differ by at most, nearly
			 always */
	enum { CHANGE_NONE, CHANGE_MORE, CHANGE_LESS } verdict;
};

/* The noise is twice the standard error of the difference, taken from how the parts vary, and no less than
 * CHANGE_FLOOR: parts of one run know nothing of what differs between runs. With fewer than CHANGE_PARTS parts it is
 * not known, and is 1. */
#define CHANGE_FLOOR 0.02
#define CHANGE_PARTS 5u

struct change change_judge(const struct change_sample *before, const struct change_sample *after);

#endif
