/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "cm/msg.h"

/* IBTA table 111 numbers the reasons 1 to 33, and 35. */
static void every_reason_has_a_name(void **state)
{
	for (unsigned reason = 1; reason <= 35; reason++)
		if (reason != 34)
			assert_string_not_equal(roci_cm_reason_str(reason), "unknown reason");
	assert_string_equal(roci_cm_reason_str(0), "unknown reason");
	assert_string_equal(roci_cm_reason_str(34), "unknown reason");
	assert_string_equal(roci_cm_reason_str(36), "unknown reason");
	assert_string_equal(roci_cm_reason_str(0xffff), "unknown reason");
	assert_string_equal(roci_cm_reason_str(ROCI_REJ_CONSUMER_DEFINED), "consumer reject");
}

static void every_kind_and_state_has_a_name(void **state)
{
	for (unsigned kind = 0; kind < ROCI_CM_EVENT_KINDS; kind++)
		assert_string_not_equal(roci_cm_event_str(kind), "unknown event");
	assert_string_equal(roci_cm_event_str(ROCI_CM_EVENT_KINDS), "unknown event");
	for (unsigned s = 0; s < ROCI_CONN_STATES; s++)
		assert_string_not_equal(roci_conn_state_str(s), "unknown state");
	assert_string_equal(roci_conn_state_str(ROCI_CONN_STATES), "unknown state");
	for (unsigned s = 0; s <= ROCI_SIDR_UNSUPPORTED_VERSION; s++)
		assert_string_not_equal(roci_cm_sidr_status_str(s), "unknown status");
	assert_string_equal(roci_cm_sidr_status_str(99), "unknown status");
	assert_string_equal(roci_cm_attribute_str(0x10), "REQ");
	assert_string_equal(roci_cm_attribute_str(0x1b), "unknown CM attribute");
	assert_int_equal(roci_cm_private_room(0x1b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_a_name),
		cmocka_unit_test(every_kind_and_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
