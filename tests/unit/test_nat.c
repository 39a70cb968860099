/* SPDX-License-Identifier: BSD-2-Clause */
/* HELLO, CHALLENGE, and the cookie in them. */
#include "test.h"

#include <string.h>

#include "wire/gid.h"
#include "wire/nat.h"

static const struct roci_nat_key key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

static void address(uint8_t gid[16], uint8_t last)
{
	roci_gid_from_ipv4(gid, (uint8_t[]){10, 0, 0, last});
}

static struct roci_hello hello(void)
{
	struct roci_hello h = {.token = 0x0123456789abcdef, .cookie = 0xfedcba9876543210};

	address(h.src, 2);
	address(h.dst, 9);
	return h;
}

static void survives_the_round_trip(void **state)
{
	uint8_t bytes[ROCI_HELLO_BYTES + ROCI_HELLO_MAD_BYTES] = {0};
	struct roci_hello h = hello(), got;
	struct roci_challenge c = {0x12345678, 1, 2, {0}, 4791}, heard;

	roci_hello_build(&h, bytes);
	assert_true(roci_hello_parse(bytes, ROCI_HELLO_BYTES, &got));
	assert_int_equal(got.token, h.token);
	assert_int_equal(got.cookie, h.cookie);
	assert_memory_equal(got.src, h.src, 16);
	assert_memory_equal(got.dst, h.dst, 16);
	assert_null(got.mad);
	assert_true(roci_hello_parse(bytes, sizeof(bytes), &got));
	assert_ptr_equal(got.mad, bytes + ROCI_HELLO_BYTES);

	address(c.seen, 7);
	roci_challenge_build(&c, bytes);
	assert_true(roci_challenge_parse(bytes, ROCI_CHALLENGE_BYTES, &heard));
	assert_int_equal(heard.id, c.id);
	assert_int_equal(heard.token, c.token);
	assert_int_equal(heard.cookie, c.cookie);
	assert_memory_equal(heard.seen, c.seen, 16);
	assert_int_equal(heard.seen_port, 4791);
}

/* Every length but the right ones, other versions, addresses that nobody has. */
static void refuses_what_is_malformed(void **state)
{
	static const uint8_t other_family[16] = {0xfd, 1}, multicast[16] = {0xff, 2}, any[16] = {0};
	uint8_t bytes[ROCI_HELLO_BYTES + ROCI_HELLO_MAD_BYTES + 8] = {0};
	const uint8_t *const wrong[] = {other_family, multicast, any};
	struct roci_hello h = hello(), got;
	struct roci_challenge c;

	roci_hello_build(&h, bytes);
	for (uint32_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(roci_hello_parse(bytes, n, &got), n == 56 || n == 312);
	for (unsigned i = 0; i < 3; i++) {
		memcpy(h.src, wrong[i], 16);
		roci_hello_build(&h, bytes);
		assert_false(roci_hello_parse(bytes, ROCI_HELLO_BYTES, &got));
	}
	bytes[0] = 2;
	assert_false(roci_hello_parse(bytes, ROCI_HELLO_BYTES, &got));
	assert_false(roci_challenge_parse(bytes, ROCI_CHALLENGE_BYTES, &c));
	roci_challenge_build(&(struct roci_challenge){.cookie = 1}, bytes);
	for (uint32_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(roci_challenge_parse(bytes, n, &c), n == ROCI_CHALLENGE_BYTES);
	roci_challenge_build(&(struct roci_challenge){.token = 1}, bytes); /* without a cookie */
	assert_false(roci_challenge_parse(bytes, ROCI_CHALLENGE_BYTES, &c));
}

/* It is for one address and port, for a time, and of one key. */
static void a_cookie_proves_one_place(void **state)
{
	const uint64_t minute = UINT64_C(1) << 36, now = 5 * minute + 12345;
	const struct roci_nat_key other = {{1, 2}};
	uint8_t gid[16], neighbour[16];
	uint64_t cookie;

	address(gid, 2);
	address(neighbour, 3);
	cookie = roci_nat_cookie(&key, now, gid, 4791);
	assert_true(roci_nat_cookie_is(&key, now, gid, 4791, cookie));
	assert_true(roci_nat_cookie_is(&key, now + minute, gid, 4791, cookie));
	assert_false(roci_nat_cookie_is(&key, now + 2 * minute, gid, 4791, cookie));
	assert_false(roci_nat_cookie_is(&key, now, gid, 4792, cookie));
	assert_false(roci_nat_cookie_is(&key, now, neighbour, 4791, cookie));
	assert_false(roci_nat_cookie_is(&other, now, gid, 4791, cookie));
	assert_false(roci_nat_cookie_is(&key, now, gid, 4791, cookie ^ 1));
	assert_false(roci_nat_cookie_is(&key, now, gid, 4791, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_the_round_trip),
		cmocka_unit_test(refuses_what_is_malformed),
		cmocka_unit_test(a_cookie_proves_one_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
