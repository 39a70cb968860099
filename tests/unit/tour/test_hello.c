/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two ends tell each other. Each reader gets what a stranger may send: anything. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "random.h"
#include "tour/hello.h"

#define ROUNDS 200000

static const struct hello_request request = {
	.op = TOUR_WRITE_IMM,
	.qp = TOUR_UC,
	.verify = true,
	.steps = true,
	.size = 70000,
	.seed = 0x01020304,
	.caps = TOUR_CAPS_ALL,
	.host = 0xfedcba98,
	.mtu = 5,
	.lid = 0xabcd,
	.qpn = 0xfffffe,
	.psn = 0x123456,
	.gid = {0xfe, 0x80, [15] = 7},
};

static const struct hello_offer offer = {
	.status = HELLO_OK,
	.caps = TOUR_CAP_RC,
	.size_max = TOUR_MAX_BYTES,
	.host = 1,
	.addr = UINT64_C(0x7f0011223344),
	.rkey = 0xdeadbeef,
	.embedded = true,
	.device = "roci0",
	.mtu = 3,
	.lid = 2,
	.qpn = 3,
	.psn = 4,
	.qkey = 5,
	.gid = {[15] = 1},
	.gid_type = 3,
	.prefix = 128,
	.network_mtu = 5,
};

static void requests_return(void **state)
{
	uint8_t bytes[HELLO_REQUEST_BYTES], again[sizeof(bytes)];
	struct hello_request r;

	hello_put_request(bytes, &request);
	assert_int_equal(hello_get_request(bytes, sizeof(bytes), &r), HELLO_OK);
	assert_true(r.op == TOUR_WRITE_IMM && r.qp == TOUR_UC && r.size == 70000 && r.gid[15] == 7);
	hello_put_request(again, &r);
	assert_memory_equal(again, bytes, sizeof(bytes));
	for (size_t len = 0; len < 50; len++) {
		assert_int_equal(hello_get_request(bytes, len, &r), HELLO_BAD_REQUEST);
		assert_true(hello_is_incomplete(bytes, len));
	}
	assert_false(hello_is_incomplete(bytes, sizeof(bytes)));
	assert_false(hello_is_incomplete("GET ", 4));
	assert_false(hello_is_incomplete("ROT1\x63", 5));
}

static void offers_return(void **state)
{
	uint8_t bytes[HELLO_OFFER_BYTES], again[sizeof(bytes)];
	struct hello_offer o;

	hello_put_offer(bytes, &offer);
	assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), 0);
	assert_true(o.addr == offer.addr && o.rkey == offer.rkey && o.qkey == 5 && o.embedded);
	hello_put_offer(again, &o);
	assert_memory_equal(again, bytes, sizeof(bytes));
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_int_equal(hello_get_offer(bytes, len, &o), -EPROTO);
}

/* The last two bytes are younger than the rest: builds before them leave zeros there. */
static void offers_of_older_builds(void **state)
{
	uint8_t bytes[HELLO_OFFER_BYTES];
	struct hello_offer o;

	hello_put_offer(bytes, &offer);
	bytes[86] = bytes[87] = 0;
	assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), 0);
	assert_true(!o.gid_type && !o.prefix && !o.network_mtu && o.gid[15] == 1);
	bytes[86] = 4; /* no type of a GID */
	assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), -EPROTO);
	bytes[86] = 6 << 4; /* no MTU */
	assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), -EPROTO);
	bytes[86] = 0;
	bytes[87] = 129; /* no prefix */
	assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), -EPROTO);
}

static void answers_return(void **state)
{
	struct answer a = {CONTROL_TELL, VERDICT_WRONG_IMM, 1, 2, 3, 4, true, {5, 6, 7, 8, 9, 10, 11, 12, 13}}, got;
	uint8_t bytes[HELLO_ANSWER_BYTES], again[sizeof(bytes)];

	hello_put_answer(bytes, &a);
	assert_int_equal(hello_get_answer(bytes, sizeof(bytes), &got), 0);
	assert_true(got.to == CONTROL_TELL && got.verdict == VERDICT_WRONG_IMM && got.times[FAR_CQE] == 13);
	hello_put_answer(again, &got);
	assert_memory_equal(again, bytes, sizeof(bytes));
	for (size_t len = 0; len < 80; len++)
		assert_int_equal(hello_get_answer(bytes, len, &got), -EPROTO);
}

/* Content is no control: its number is below, or the seed is another. */
static void controls_are_told_from_content(void **state)
{
	struct control c = {CONTROL_CHECK, 0x01020304, 77}, got;
	uint8_t bytes[HELLO_CONTROL_BYTES];

	hello_put_control(bytes, &c);
	assert_true(hello_get_control(bytes, sizeof(bytes), 0x01020304, &got));
	assert_int_equal(got.kind, CONTROL_CHECK);
	assert_int_equal(got.seq, 77);
	assert_false(hello_get_control(bytes, sizeof(bytes), 0x01020305, &got));
	assert_false(hello_get_control(bytes, sizeof(bytes) - 1, 0x01020304, &got));
	bytes[15] = CONTROL_KINDS;
	assert_false(hello_get_control(bytes, sizeof(bytes), 0x01020304, &got));
	memset(bytes, 0, 4);
	assert_false(hello_get_control(bytes, sizeof(bytes), 0x01020304, &got));
}

static void other_versions_are_named(void **state)
{
	uint8_t r[HELLO_REQUEST_BYTES], o[HELLO_OFFER_BYTES];
	struct hello_request got_request;
	struct hello_offer got_offer;

	hello_put_request(r, &request);
	r[4]++;
	assert_int_equal(hello_get_request(r, sizeof(r), &got_request), HELLO_BAD_VERSION);
	hello_put_offer(o, &offer);
	o[4]++;
	assert_int_equal(hello_get_offer(o, sizeof(o), &got_offer), -EPROTONOSUPPORT);
}

static void bounds(void **state)
{
	struct hello_request wrong[] = {request, request, request, request, request};
	uint8_t bytes[HELLO_REQUEST_BYTES];
	struct hello_request r;

	wrong[0].size = TOUR_MAX_BYTES + 1;
	wrong[1].qpn = 1 << 24;
	wrong[2].psn = 1 << 24;
	wrong[3].mtu = 6;
	wrong[4].op = TOUR_FAA; /* of 70000 bytes */
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		hello_put_request(bytes, &wrong[i]);
		assert_int_equal(hello_get_request(bytes, sizeof(bytes), &r), HELLO_BAD_REQUEST);
	}
	wrong[0].size = TOUR_MAX_BYTES;
	hello_put_request(bytes, &wrong[0]);
	assert_int_equal(hello_get_request(bytes, sizeof(bytes), &r), HELLO_OK);
}

/* A far end could name its device so that the terminal obeys. */
static void device_names_are_harmless(void **state)
{
	static const char *const names[] = {"", "a b", "\033[2J", "d\xc3\xa9", "\n"};
	uint8_t bytes[HELLO_OFFER_BYTES];
	struct hello_offer o;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct hello_offer wrong = offer;
		memset(wrong.device, 0, sizeof(wrong.device));
		strcpy(wrong.device, names[i]);
		hello_put_offer(bytes, &wrong);
		assert_int_equal(hello_get_offer(bytes, sizeof(bytes), &o), -EPROTO);
	}
}

/* Whatever is accepted is within its bounds. */
static void any_bytes(void **state)
{
	uint64_t seed = 13;
	unsigned accepted = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t bytes[HELLO_ANSWER_BYTES];
		size_t len = random_below(&seed, sizeof(bytes) + 1);
		struct hello_request r;
		struct hello_offer o;
		struct answer a;
		struct control c;

		random_fill(&seed, bytes, sizeof(bytes));
		if (i % 2) { /* a good one with some bytes changed */
			(i % 4 == 1 ? (void)hello_put_request(bytes, &request) : (void)hello_put_offer(bytes, &offer));
			for (unsigned n = (unsigned)random_below(&seed, 4); n; n--)
				bytes[random_below(&seed, 60)] = (uint8_t)random_next(&seed);
			len = sizeof(bytes);
		}
		if (hello_get_request(bytes, len, &r) == HELLO_OK) {
			accepted++;
			assert_true((unsigned)r.op < TOUR_OPS && (unsigned)r.qp < TOUR_QPS && r.mtu <= 5);
			assert_true(r.size <= TOUR_MAX_BYTES && !((r.qpn | r.psn) >> 24));
		}
		if (!hello_get_offer(bytes, len, &o)) {
			accepted++;
			assert_true((unsigned)o.status < HELLO_STATUSES && o.mtu <= 5 && !((o.qpn | o.psn) >> 24));
			assert_true(strlen(o.device) < sizeof(o.device));
		}
		if (!hello_get_answer(bytes, len, &a))
			assert_true((unsigned)a.to < CONTROL_KINDS && (unsigned)a.verdict < VERDICTS);
		if (hello_get_control(bytes, len, 1, &c))
			assert_true((unsigned)c.kind < CONTROL_KINDS);
	}
	assert_true(accepted > ROUNDS / 20);
}

static void all_have_words(void **state)
{
	for (unsigned i = 0; i < HELLO_STATUSES; i++)
		assert_true(strlen(hello_status_str((enum hello_status)i)) > 3);
	for (unsigned i = 0; i < VERDICTS; i++)
		assert_true(strlen(hello_verdict_str((enum verdict)i)) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_return),
		cmocka_unit_test(offers_return),
		cmocka_unit_test(offers_of_older_builds),
		cmocka_unit_test(answers_return),
		cmocka_unit_test(controls_are_told_from_content),
		cmocka_unit_test(other_versions_are_named),
		cmocka_unit_test(bounds),
		cmocka_unit_test(device_names_are_harmless),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(all_have_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
