/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packet was lost, and where. */
#include "drawn.h"

static void lose(uint32_t pid, bool before, uint8_t opcode, uint32_t psn)
{
	struct roci_record r = record_of(ROCI_RECORD_FAULT, pid);

	r.status = ROCI_RECORD_LOST;
	r.flags = before;
	r.opcode = opcode;
	r.qpn = before ? (pid == 1 ? 0x22 : 0x11) : (pid == 1 ? 0x11 : 0x22);
	r.imm = psn;
	r.length = 100;
	tell(&r);
}

static const struct ladder_packet *lost_one(void)
{
	const struct ladder_packet *found = NULL;

	for (size_t i = 0; i < d.l->packet_count; i++)
		if (d.l->packets[i].flags & LADDER_LOST) {
			assert_null(found);
			found = &d.l->packets[i];
		}
	assert_non_null(found);
	return found;
}

/* It left twice and arrived once. */
static void test_between(void **state)
{
	begin();
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 6), 1);
	see(CAPTURE_INBOUND, ask(ROCI_OP_SEND_ONLY, 6), 2);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_INBOUND, ask(ROCI_OP_SEND_ONLY, 5), 2);
	finish();
	assert_int_equal(lost_one()->flags & LADDER_LOST, LADDER_LOST_BETWEEN);
	assert_int_equal(lost_one()->psn, 5);
	assert_int_equal(lost_one()->number, 1);
}

/* Nobody captured what arrives at the other end: nothing is known to be lost. */
static void test_one_end(void **state)
{
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 0);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 0);
	finish();
	for (size_t i = 0; i < d.l->packet_count; i++)
		assert_false(d.l->packets[i].flags & LADDER_LOST);
	assert_true(d.l->packets[1].flags & LADDER_AGAIN);
}

/* --fault took it before the capture: it is drawn where it would have left, and the next copy is sent again. */
static void test_before(void **state)
{
	begin();
	lose(1, true, ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY, 6);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 6), 1);
	finish();
	assert_int_equal(d.l->packet_count, 3);
	assert_int_equal(d.l->packets[0].psn, 5);
	assert_int_equal(d.l->packets[1].flags & LADDER_LOST, LADDER_LOST_BEFORE);
	assert_int_equal(d.l->packets[1].psn, 6);
	assert_true(d.l->packets[2].flags & LADDER_AGAIN);
	assert_int_equal(d.l->packets[1].message, d.l->packets[2].message);
}

static void test_ack_after(void **state)
{
	begin();
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_OUTBOUND, answer(5, 0x1f), 2);
	see(CAPTURE_INBOUND, answer(5, 0x1f), 1);
	lose(1, false, ROCI_TRANSPORT_RC | ROCI_OP_ACKNOWLEDGE, 5);
	finish();
	assert_int_equal(lost_one()->flags & LADDER_LOST, LADDER_LOST_AFTER);
	assert_true(lost_one()->flags & LADDER_ACK);
}

/* What was lost after the capture was no packet for its receiver, so the next copy is no duplicate; the one behind is.
 */
static void test_no_duplicate(void **state)
{
	begin();
	for (unsigned copy = 0; copy < 3; copy++) {
		see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
		see(CAPTURE_INBOUND, ask(ROCI_OP_SEND_ONLY, 5), 2);
		if (!copy)
			lose(2, false, ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY, 5);
	}
	finish();
	assert_int_equal(d.l->packet_count, 3);
	assert_int_equal(lost_one()->number, 1);
	assert_int_equal(d.l->packets[1].flags & (LADDER_AGAIN | LADDER_DUPLICATE), LADDER_AGAIN);
	assert_true(d.l->packets[2].flags & LADDER_DUPLICATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_between), TEST(test_one_end), TEST(test_before),
					   TEST(test_ack_after), TEST(test_no_duplicate)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
