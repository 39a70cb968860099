/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of explanations: complete, in order, and readable. */
#include "test.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "explain/explain.h"

/* Every row of every table. */
static void each(void (*visit)(const struct explanation *row))
{
	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t count;
		const struct explanation *rows = explain_rows((enum explain_kind)kind, &count);

		assert_true(count > 0);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(rows[i].kind, kind);
			visit(&rows[i]);
		}
	}
}

static void check_text(const char *text)
{
	size_t len = strlen(text);

	assert_true(len > 0);
	assert_true(text[0] != ' ' && text[len - 1] != ' ');
	assert_null(strchr(text, '\n'));
	assert_null(strchr(text, '\t'));
	assert_null(strstr(text, "  "));
}

static void check_row(const struct explanation *row)
{
	char word[EXPLAIN_WORD_CHARS];

	check_text(row->name);
	check_text(row->title);
	check_text(row->meaning);
	check_text(row->look);
	assert_true(row->title[strlen(row->title) - 1] != '.');
	assert_true(strlen(explain_word(row, word)) < EXPLAIN_WORD_CHARS - 1);
	for (size_t i = 0; row->causes[i]; i++)
		check_text(row->causes[i]);
	for (size_t i = 0; row->steps[i]; i++)
		check_text(row->steps[i]);
	assert_null(row->causes[EXPLAIN_LINES - 1]);
	assert_null(row->steps[EXPLAIN_LINES - 1]);
	for (const char *p = row->phrases; p && *p; p++) /* as words_normalise() makes them */
		assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789 |", *p));
}

static void rows(void **state)
{
	each(check_row);
}

/* Each row is found by its own name and by its short word, and is read first. */
static void check_found(const struct explanation *row)
{
	struct explain_found found;
	char word[EXPLAIN_WORD_CHARS];

	explain_find(row->name, &found);
	if (!found.count || found.rows[0] != row)
		fail_msg("%s finds %s", row->name, found.count ? found.rows[0]->name : "nothing");
	explain_find(explain_word(row, word), &found);
	if (!found.count || found.rows[0] != row)
		fail_msg("%s finds %s", word, found.count ? found.rows[0]->name : "nothing");
}

static void names(void **state)
{
	each(check_found);
}

static void phrases(void **state)
{
	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t count;
		const struct explanation *all = explain_rows((enum explain_kind)kind, &count);

		for (size_t i = 0; i < count; i++) {
			char copy[512], *save = NULL;

			snprintf(copy, sizeof(copy), "%s", all[i].phrases ? all[i].phrases : "");
			for (char *p = strtok_r(copy, "|", &save); p; p = strtok_r(NULL, "|", &save)) {
				struct explain_found found;

				explain_find(p, &found);
				if (!found.count || found.rows[0] != &all[i])
					fail_msg("'%s' finds %s", p, found.count ? found.rows[0]->name : "nothing");
			}
		}
	}
}

/* What libibverbs and librdmacm print for a code finds the code's row. */
static void strings_of_the_libraries(void **state)
{
	struct explain_found found;

	for (int s = IBV_WC_LOC_LEN_ERR; s <= IBV_WC_RESP_TIMEOUT_ERR; s++) {
		if (s == IBV_WC_FATAL_ERR)
			continue; /* "fatal error": common words */
		explain_find(ibv_wc_status_str((enum ibv_wc_status)s), &found);
		if (!found.count || found.rows[0] != explain_wc_status(s))
			fail_msg("%s", ibv_wc_status_str((enum ibv_wc_status)s));
	}
	for (int e = IBV_EVENT_CQ_ERR; e <= IBV_EVENT_WQ_FATAL; e++) {
		explain_find(ibv_event_type_str((enum ibv_event_type)e), &found);
		if (!found.count || found.rows[0] != explain_code(EXPLAIN_ASYNC, e))
			fail_msg("%s", ibv_event_type_str((enum ibv_event_type)e));
	}
	for (int e = RDMA_CM_EVENT_ADDR_RESOLVED; e <= RDMA_CM_EVENT_TIMEWAIT_EXIT; e++) {
		explain_find(rdma_event_str((enum rdma_cm_event_type)e), &found);
		if (!found.count || found.rows[0] != explain_code(EXPLAIN_CM_EVENT, e))
			fail_msg("%s", rdma_event_str((enum rdma_cm_event_type)e));
	}
}

static void complete(void **state)
{
	for (int s = 0; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++)
		assert_non_null(explain_wc_status(s));
	for (int s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++)
		assert_non_null(explain_code(EXPLAIN_QP_STATE, s));
	for (int r = 1; r <= 33; r++)
		assert_non_null(explain_code(EXPLAIN_CM_REJECT, r));
	assert_non_null(explain_code(EXPLAIN_CM_REJECT, 35)); /* vendor option; 34 is reserved */
	for (int e = RDMA_CM_EVENT_ADDR_RESOLVED; e <= RDMA_CM_EVENT_TIMEWAIT_EXIT; e++)
		assert_non_null(explain_code(EXPLAIN_CM_EVENT, e));
	for (int e = IBV_EVENT_CQ_ERR; e <= IBV_EVENT_WQ_FATAL; e++)
		assert_non_null(explain_code(EXPLAIN_ASYNC, e));
	for (int s = 0x60; s <= 0x64; s++)
		assert_non_null(explain_code(EXPLAIN_NAK, s));
	assert_null(explain_wc_status(-1));
	assert_null(explain_wc_status(1000));
	assert_string_equal(explain_kind_name(EXPLAIN_NAK), "AETH syndrome");
}

/* The packet of a WRITE is longer than the path MTU: 60 bytes of headers over IPv4, of which ping has 28. */
static void ping_is_as_long_as_a_packet(void **state)
{
	const struct explanation *row = explain_wc_status(IBV_WC_RETRY_EXC_ERR);
	bool doctor = false, ping = false;

	for (size_t i = 0; row->steps[i]; i++) {
		doctor |= strstr(row->steps[i], "`roci doctor HOST`") != NULL;
		ping |= strstr(row->steps[i], "-s 4128`") && strstr(row->steps[i], "`-s 1056`");
		assert_null(strstr(row->steps[i], "-s 4096"));
	}
	assert_true(doctor && ping);
}

/* Of a number there is one row in each kind, except that several calls have the same errno. */
static void check_unique(const struct explanation *row)
{
	if (row->kind != EXPLAIN_CALL)
		assert_ptr_equal(explain_code(row->kind, row->code), row);
}

static void codes(void **state)
{
	each(check_unique);
	assert_string_equal(explain_kind_name(EXPLAIN_KINDS), "unknown");
}

static void numbers(void **state)
{
	char text[EXPLAIN_WORD_CHARS];
	struct explain_found found;

	assert_string_equal(explain_number(explain_wc_status(12), text), "completion status 12");
	assert_string_equal(explain_number(explain_code(EXPLAIN_NAK, 0x62), text), "AETH syndrome 0x62");
	assert_string_equal(explain_number(explain_code(EXPLAIN_NAK, 0x20), text), "AETH syndrome 0x20 to 0x3f");
	assert_string_equal(explain_number(explain_code(EXPLAIN_NAK, 0x1f), text), "AETH syndrome 0x00 to 0x1f");
	explain_find("ibv_modify_qp EINVAL", &found);
	assert_int_equal(found.rows[0]->kind, EXPLAIN_CALL);
	assert_string_equal(explain_number(found.rows[0], text), "errno 22");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),     cmocka_unit_test(names),
		cmocka_unit_test(phrases),  cmocka_unit_test(strings_of_the_libraries),
		cmocka_unit_test(complete), cmocka_unit_test(ping_is_as_long_as_a_packet),
		cmocka_unit_test(numbers),  cmocka_unit_test(codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
