/* SPDX-License-Identifier: BSD-2-Clause */
#include "ladder/rows.h"

#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
	const struct ladder_row *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

struct ladder_row *ladder_rows(const struct ladder *l, bool arrivals, size_t *count)
{
	struct ladder_row *rows = calloc(2 * l->packet_count + l->event_count + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return NULL;
	for (size_t i = 0; i < l->packet_count; i++) {
		const struct ladder_packet *p = &l->packets[i];

		rows[n++] = (struct ladder_row){p->sent_ns, LADDER_ROW_LEAVES, i};
		if (arrivals && p->arrived_ns != LADDER_NEVER)
			rows[n++] = (struct ladder_row){p->arrived_ns, LADDER_ROW_ARRIVES, i};
	}
	for (size_t i = 0; i < l->event_count; i++)
		rows[n++] = (struct ladder_row){l->events[i].record.time_ns, LADDER_ROW_EVENT, i};
	qsort(rows, n, sizeof(*rows), by_time);
	*count = n;
	return rows;
}

const char *ladder_remark(const struct ladder_packet *p, char text[LADDER_REMARK_CHARS])
{
	static const struct {
		unsigned flag;
		const char *words;
	} remarks[] = {
		{LADDER_LOST_BEFORE, "lost on purpose, before it was sent"},
		{LADDER_LOST_AFTER, "lost on purpose, as it arrived"},
		{LADDER_LOST_BETWEEN, "lost on its way"},
		{LADDER_AGAIN, "sent again"},
		{LADDER_DUPLICATE, "duplicate"},
		{LADDER_OUT_OF_ORDER, "out of order"},
		{LADDER_BAD_ICRC, "damaged"},
		{LADDER_CONGESTED, "congestion"},
	};
	int len = p->flags & (LADDER_ACK | LADDER_CM) ? 0 : snprintf(text, LADDER_REMARK_CHARS, "PSN %u", p->psn);

	text[len] = 0;
	for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
		if (p->flags & remarks[i].flag)
			len += snprintf(text + len, LADDER_REMARK_CHARS - (size_t)len, "%s%s", len ? ", " : "",
					remarks[i].words);
	return text;
}
