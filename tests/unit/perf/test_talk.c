/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "perf/talk.h"

static const struct talk_hello hello = {
	.plan = {.op = TOUR_SEND_IMM, .bidir = true, .qps = 4, .cqs = 2, .depth = 128, .size_max = 65536},
	.caps = 0x1ff,
	.host = 0x12345678,
	.mtu = 5,
	.rd_atomic = 16,
	.lid = 7,
	.gid = {0xfe, 0x80, [15] = 1},
};

static void hello_round_trip(void **state)
{
	uint8_t bytes[TALK_HELLO_BYTES];
	struct talk_hello back;

	talk_put_hello(bytes, &hello);
	assert_true(talk_is_hello(bytes, sizeof(bytes)));
	assert_int_equal(talk_get_hello(bytes, &back), 0);
	assert_int_equal(back.plan.op, TOUR_SEND_IMM);
	assert_true(back.plan.bidir && !back.plan.events);
	assert_int_equal(back.plan.qps, 4);
	assert_int_equal(back.plan.cqs, 2);
	assert_int_equal(back.plan.depth, 128);
	assert_int_equal(back.plan.size_max, 65536);
	assert_int_equal(back.host, 0x12345678);
	assert_int_equal(back.mtu, 5);
	assert_int_equal(back.rd_atomic, 16);
	assert_int_equal(back.lid, 7);
	assert_memory_equal(back.gid, hello.gid, 16);
}

/* The tour's own requests begin with the same two letters. */
static void what_a_hello_is(void **state)
{
	assert_false(talk_is_hello("R", 1));
	assert_false(talk_is_hello("RO", 2));
	assert_true(talk_is_hello("ROP", 3));
	assert_true(talk_is_hello("ROP1", 4));
	assert_false(talk_is_hello("ROT1", 4));
	assert_false(talk_is_hello("ROP2", 4));
}

static void expect_refused(struct perf_plan plan)
{
	struct talk_hello h = hello, back;
	uint8_t bytes[TALK_HELLO_BYTES];

	h.plan = plan;
	talk_put_hello(bytes, &h);
	assert_int_equal(talk_get_hello(bytes, &back), -EPROTO);
}

/* A stranger's plan cannot make an end allocate without bound. */
static void hostile_plans(void **state)
{
	const struct perf_plan good = hello.plan;
	struct perf_plan p;

	p = good, p.op = TOUR_FLUSH, expect_refused(p);
	p = good, p.op = (enum tour_op)200, expect_refused(p);
	p = good, p.qps = 0, p.cqs = 0, expect_refused(p);
	p = good, p.qps = PERF_MAX_QPS + 1, p.size_max = 1, expect_refused(p);
	p = good, p.cqs = 5, expect_refused(p);
	p = good, p.cqs = 0, expect_refused(p);
	p = good, p.depth = 0, expect_refused(p);
	p = good, p.depth = PERF_MAX_DEPTH + 1, expect_refused(p);
	p = good, p.qps = 5, p.depth = PERF_MAX_DEPTH, p.size_max = 1, expect_refused(p); /* too many requests */
	p = good, p.size_max = 0, expect_refused(p);
	p = good, p.size_max = PERF_MAX_BYTES + 1, p.qps = p.cqs = 1, expect_refused(p);
	p = good, p.size_max = PERF_MAX_BYTES, p.qps = 3, expect_refused(p); /* too much memory */
	p = good, p.op = TOUR_CAS, expect_refused(p);                        /* not of 8 bytes */
}

static void another_version(void **state)
{
	uint8_t bytes[TALK_OFFER_BYTES];
	struct talk_hello h;
	struct talk_offer offer = {.mtu = 3, .device = "roci0"}, back;

	talk_put_hello(bytes, &hello);
	bytes[4]++;
	assert_int_equal(talk_get_hello(bytes, &h), -EPROTONOSUPPORT);
	talk_put_offer(bytes, &offer);
	assert_int_equal(talk_get_offer(bytes, &back), 0);
	assert_string_equal(back.device, "roci0");
	bytes[4]++;
	assert_int_equal(talk_get_offer(bytes, &back), -EPROTONOSUPPORT);
}

/* Texts of a stranger reach a terminal only if they are printable and end. */
static void hostile_texts(void **state)
{
	uint8_t bytes[TALK_REPORT_BYTES];
	struct talk_offer offer = {.mtu = 3, .device = "roci0", .text = "no \033[31m"}, o;
	struct talk_report report = {.text = "a\nb"}, r;

	talk_put_offer(bytes, &offer);
	assert_int_equal(talk_get_offer(bytes, &o), -EPROTO);
	talk_put_report(bytes, &report);
	assert_int_equal(talk_get_report(bytes, &r), -EPROTO);
	report.text[0] = '\0';
	talk_put_report(bytes, &report);
	assert_int_equal(talk_get_report(bytes, &r), 0);
	memset(bytes + 4 + 15 * 8 + 16, 'x', TALK_TEXT);
	assert_int_equal(talk_get_report(bytes, &r), -EPROTO);
}

static void report_round_trip(void **state)
{
	uint8_t bytes[TALK_REPORT_BYTES];
	struct talk_report r = {.sent = 1,
				.received = 2,
				.measured = 3,
				.measured_ns = 4,
				.facts = {.spent = {.wall_ns = 5,
						    .cpu_ns = 6,
						    .device = {.retransmissions = 7, .dropped = 8}},
					  .cpus = 9,
					  .mtu = 10,
					  .clients = 11}},
			   back;

	talk_put_report(bytes, &r);
	assert_int_equal(talk_get_report(bytes, &back), 0);
	assert_memory_equal(&back, &r, sizeof(r));
	bytes[4] = 0xff; /* a number that no end counts to */
	assert_int_equal(talk_get_report(bytes, &back), -EPROTO);
}

static void orders(void **state)
{
	uint8_t bytes[TALK_ORDER_BYTES];
	struct perf_order o = {.phase = PERF_TCP_LATENCY, .size = 64, .time_ms = 1000, .rate = 5}, back;

	talk_put_order(bytes, &o);
	assert_int_equal(talk_get_order(bytes, 64, &back), 0);
	assert_memory_equal(&back, &o, sizeof(o));
	assert_int_equal(talk_get_order(bytes, 63, &back), -EPROTO); /* beyond the memory */
	o.size = 0;
	talk_put_order(bytes, &o);
	assert_int_equal(talk_get_order(bytes, 64, &back), -EPROTO);
	o.size = 64;
	o.phase = PERF_PHASES;
	talk_put_order(bytes, &o);
	assert_int_equal(talk_get_order(bytes, 64, &back), -EPROTO);
	o.phase = PERF_LATENCY;
	o.time_ms = PERF_MAX_TIME_MS + 1;
	talk_put_order(bytes, &o);
	assert_int_equal(talk_get_order(bytes, 64, &back), -EPROTO);
}

static void qps_and_stops(void **state)
{
	uint8_t bytes[TALK_QP_BYTES];
	struct talk_qp q = {.qpn = 0x123456, .psn = 0xffffff, .addr = UINT64_C(0x7f0000001000), .rkey = 9}, back;
	uint64_t sent;

	talk_put_qp(bytes, &q);
	assert_int_equal(talk_get_qp(bytes, &back), 0);
	assert_true(back.qpn == q.qpn && back.psn == q.psn && back.addr == q.addr && back.rkey == q.rkey);
	assert_int_equal(talk_get_stop(bytes, &sent), -EPROTO);
	bytes[4] = 1; /* more than 24 bits */
	assert_int_equal(talk_get_qp(bytes, &back), -EPROTO);
	talk_put_stop(bytes, 77);
	assert_int_equal(talk_get_stop(bytes, &sent), 0);
	assert_int_equal(sent, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_round_trip), cmocka_unit_test(what_a_hello_is),
		cmocka_unit_test(hostile_plans),    cmocka_unit_test(another_version),
		cmocka_unit_test(hostile_texts),    cmocka_unit_test(report_round_trip),
		cmocka_unit_test(orders),           cmocka_unit_test(qps_and_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
