/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/explain.h"

#include <stdio.h>
#include <string.h>

#include "explain/table.h"

static const struct {
	const char *name, *prefix;
	const struct explain_table *table;
} kinds[EXPLAIN_KINDS] = {
	[EXPLAIN_WC_STATUS] = {"completion status", "IBV_WC_", &explain_wc_statuses},
	[EXPLAIN_NAK] = {"AETH syndrome", "", &explain_naks},
	[EXPLAIN_CM_REJECT] = {"CM reject reason", "IB_CM_REJ_", &explain_cm_rejects},
	[EXPLAIN_CM_EVENT] = {"rdma_cm event", "RDMA_CM_EVENT_", &explain_cm_events},
	[EXPLAIN_ASYNC] = {"asynchronous event", "IBV_EVENT_", &explain_asyncs},
	[EXPLAIN_CALL] = {"errno of a call", "", &explain_calls},
	[EXPLAIN_ERRNO] = {"errno", "", &explain_errnos},
	[EXPLAIN_QP_STATE] = {"QP state", "IBV_QPS_", &explain_qp_states},
};

const char *explain_kind_name(enum explain_kind kind)
{
	return kind < EXPLAIN_KINDS ? kinds[kind].name : "unknown";
}

const struct explanation *explain_rows(enum explain_kind kind, size_t *count)
{
	*count = kind < EXPLAIN_KINDS ? kinds[kind].table->count : 0;
	return *count ? kinds[kind].table->rows : NULL;
}

const struct explanation *explain_code(enum explain_kind kind, int code)
{
	size_t count;
	const struct explanation *rows = explain_rows(kind, &count);

	for (size_t i = 0; i < count; i++) {
		if (rows[i].code == code)
			return &rows[i];
	}
	return NULL;
}

const char *explain_word(const struct explanation *e, char word[EXPLAIN_WORD_CHARS])
{
	size_t prefix = strlen(kinds[e->kind].prefix);

	if (e->kind == EXPLAIN_CM_REJECT)
		snprintf(word, EXPLAIN_WORD_CHARS, "REJ %d", e->code);
	else
		snprintf(word, EXPLAIN_WORD_CHARS, "%s",
			 strncmp(e->name, kinds[e->kind].prefix, prefix) ? e->name : e->name + prefix);
	return word;
}

const char *explain_number(const struct explanation *e, char text[EXPLAIN_WORD_CHARS])
{
	const char *kind = explain_kind_name(e->kind == EXPLAIN_CALL ? EXPLAIN_ERRNO : e->kind);

	if (e->kind == EXPLAIN_NAK && e->code < 0x40) /* its low five bits are a value */
		snprintf(text, EXPLAIN_WORD_CHARS, "%s 0x%02x to 0x%02x", kind, e->code & 0x20u, e->code | 0x1fu);
	else if (e->kind == EXPLAIN_NAK)
		snprintf(text, EXPLAIN_WORD_CHARS, "%s 0x%02x", kind, (unsigned)e->code);
	else
		snprintf(text, EXPLAIN_WORD_CHARS, "%s %d", kind, e->code);
	return text;
}

void explain_range(enum explain_kind kind, int *least, int *most)
{
	size_t count;
	const struct explanation *rows = explain_rows(kind, &count);

	if (kind == EXPLAIN_NAK) { /* rows stand for several */
		*least = 0;
		*most = EXPLAIN_SYNDROME_MAX;
		return;
	}
	*least = *most = count ? rows[0].code : 0;
	for (size_t i = 1; i < count; i++) {
		*least = rows[i].code < *least ? rows[i].code : *least;
		*most = rows[i].code > *most ? rows[i].code : *most;
	}
}
