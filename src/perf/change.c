/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/change.h"

#include <math.h>

/* The standard error of the mean, as a part of it. 1: not known. */
static double relative_error(const struct change_sample *s)
{
	double sum = 0, squares = 0, mean;

	if (s->count < CHANGE_PARTS)
		return 1;
	for (size_t i = 0; i < s->count; i++)
		sum += s->parts[i];
	mean = sum / (double)s->count;
	for (size_t i = 0; i < s->count; i++)
		squares += (s->parts[i] - mean) * (s->parts[i] - mean);
	if (mean <= 0)
		return 1;
	return sqrt(squares / (double)(s->count - 1) / (double)s->count) / mean;
}

struct change change_judge(const struct change_sample *before, const struct change_sample *after)
{
	double b = relative_error(before), a = relative_error(after);
	struct change c = {.noise = 2 * sqrt(a * a + b * b)};

	c.noise = c.noise < CHANGE_FLOOR ? CHANGE_FLOOR : c.noise > 1 ? 1 : c.noise;
	if (before->figure > 0)
		c.part = after->figure / before->figure - 1;
	if (fabs(c.part) > c.noise)
		c.verdict = c.part > 0 ? CHANGE_MORE : CHANGE_LESS;
	return c;
}
