/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int summary_init(struct summary *s)
{
	*s = (struct summary){.min_ns = UINT64_MAX};
	s->kept = malloc(SUMMARY_KEPT * sizeof(*s->kept));
	return s->kept ? 0 : -ENOMEM;
}

void summary_destroy(struct summary *s)
{
	free(s->kept);
	s->kept = NULL;
}

void summary_add(struct summary *s, uint64_t ns)
{
	s->tried++;
	if (ns < s->min_ns)
		s->min_ns = ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	if (s->seen++ & s->skip)
		return;
	s->kept[s->count++] = ns;
	if (s->count < SUMMARY_KEPT)
		return;
	for (size_t i = 0; i < SUMMARY_KEPT / 2; i++)
		s->kept[i] = s->kept[2 * i];
	s->count = SUMMARY_KEPT / 2;
	s->skip = s->skip * 2 + 1;
}

void summary_add_failure(struct summary *s)
{
	s->tried++;
	s->failed++;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

struct summary_times summary_times(const struct summary *s)
{
	uint64_t *sorted;
	struct summary_times t = {0};

	if (!s->count)
		return t;
	t = (struct summary_times){s->min_ns, s->kept[0], s->max_ns, s->max_ns};
	sorted = malloc(s->count * sizeof(*sorted));
	if (!sorted)
		return t;
	memcpy(sorted, s->kept, s->count * sizeof(*sorted));
	qsort(sorted, s->count, sizeof(*sorted), compare);
	t.median_ns = sorted[(s->count - 1) / 2] + (sorted[s->count / 2] - sorted[(s->count - 1) / 2]) / 2;
	t.p99_ns = sorted[(s->count * 99 + 99) / 100 - 1];
	free(sorted);
	return t;
}
