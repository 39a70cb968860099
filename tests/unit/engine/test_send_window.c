/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/send_window.h"

#define FIRST 0xfffffe /* PSNs wrap behind the second packet */

/* Three packets of 100 bytes, sent. */
static struct roci_send_window three_sent(void)
{
	struct roci_send_window w;

	roci_send_window_init(&w, FIRST);
	for (uint64_t i = 1; i <= 3; i++)
		roci_send_window_sent(&w, 1, 100 * i);
	return w;
}

static void what_is_sent_is_outstanding(void **state)
{
	struct roci_send_window w;

	roci_send_window_init(&w, FIRST);
	assert_int_equal(roci_send_window_packets(&w), 0);
	assert_true(roci_send_window_is_new(&w));
	w = three_sent();
	assert_int_equal(w.next, 1);
	assert_int_equal(roci_send_window_packets(&w), 3);
	assert_int_equal(roci_send_window_bytes(&w), 300);
	assert_true(roci_send_window_is_new(&w));
}

static void a_read_request_stands_for_many_psns(void **state)
{
	struct roci_send_window w;

	roci_send_window_init(&w, FIRST);
	roci_send_window_sent(&w, 16, 5000);
	assert_int_equal(roci_send_window_packets(&w), 16);
	assert_int_equal(w.next, 14);
}

static void what_is_acknowledged_is_not(void **state)
{
	struct roci_send_window w = three_sent();

	assert_int_equal(roci_send_window_advance(&w, 0, 200), 200);
	assert_int_equal(w.una, 0);
	assert_int_equal(w.acked, 0);
	assert_int_equal(roci_send_window_packets(&w), 1);
	assert_int_equal(roci_send_window_bytes(&w), 100);
}

/* An acknowledgement behind a missing response: una waits for the response. */
static void an_acknowledgement_is_remembered(void **state)
{
	struct roci_send_window w = three_sent();

	roci_send_window_acknowledge(&w, 1);
	roci_send_window_acknowledge(&w, 0xffffff); /* an older one says nothing */
	assert_int_equal(w.acked, 1);
	assert_int_equal(w.una, FIRST);
	roci_send_window_advance(&w, 0xffffff, 100);
	assert_int_equal(w.acked, 1);
}

static void packets_are_sent_again(void **state)
{
	struct roci_send_window w = three_sent();

	roci_send_window_seek(&w, w.una, w.una_bytes);
	assert_int_equal(roci_send_window_packets(&w), 0);
	assert_int_equal(roci_send_window_bytes(&w), 0);
	assert_false(roci_send_window_is_new(&w));
	roci_send_window_sent(&w, 1, 100);
	assert_int_equal(w.max, 1);
	roci_send_window_sent(&w, 1, 200);
	roci_send_window_sent(&w, 1, 300);
	assert_true(roci_send_window_is_new(&w));
}

static void what_nobody_acknowledges_is_forgotten(void **state)
{
	struct roci_send_window w = three_sent();

	roci_send_window_forget(&w);
	assert_int_equal(roci_send_window_packets(&w), 0);
	assert_int_equal(roci_send_window_bytes(&w), 0);
	assert_int_equal(w.next, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_is_outstanding), cmocka_unit_test(a_read_request_stands_for_many_psns),
		cmocka_unit_test(what_is_acknowledged_is_not), cmocka_unit_test(an_acknowledgement_is_remembered),
		cmocka_unit_test(packets_are_sent_again),      cmocka_unit_test(what_nobody_acknowledges_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
