/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "wire/gid.h"

static const uint8_t ipv6[16] = {0xfd, [15] = 1}, any[16], any_ipv4[16] = {[10] = 0xff, [11] = 0xff};

static void the_prefix_makes_an_ipv4_address(void **state)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

	assert_true(roci_gid_is_ipv4(gid));
	for (unsigned i = 0; i < ROCI_GID_IPV4_AT; i++) {
		gid[i] ^= 1;
		assert_false(roci_gid_is_ipv4(gid));
		gid[i] ^= 1;
	}
	assert_false(roci_gid_is_ipv4(ipv6));
}

static void an_ipv4_address_survives_the_mapping(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 33}, ipv4[4] = {192, 0, 2, 33};
	uint8_t gid[16], back[4];

	memset(gid, 0x5a, sizeof(gid));
	roci_gid_from_ipv4(gid, ipv4);
	assert_memory_equal(gid, mapped, sizeof(gid));
	roci_gid_to_ipv4(gid, back);
	assert_memory_equal(back, ipv4, sizeof(back));
}

static void each_family_has_its_wildcard(void **state)
{
	assert_true(roci_gid_is_any(any));
	assert_false(roci_gid_is_any(any_ipv4));
	assert_false(roci_gid_is_any(ipv6));
	assert_true(roci_gid_is_any_ipv4(any_ipv4));
	assert_false(roci_gid_is_any_ipv4(any));
	assert_false(roci_gid_is_any_ipv4(ipv6));
}

static void check_multicast(const uint8_t gid[16], const uint8_t expected[6])
{
	uint8_t mac[6] = {0};

	assert_true(roci_gid_is_multicast(gid));
	assert_true(roci_gid_multicast_mac(gid, mac));
	assert_memory_equal(mac, expected, sizeof(mac));
}

static void multicast_has_an_ethernet_address(void **state)
{
	/* RFC 1112 s.6.4: the low 23 bits. RFC 2464 s.7: the last four bytes. */
	check_multicast((uint8_t[16]){[10] = 0xff, 0xff, 239, 129, 2, 3}, (uint8_t[6]){0x01, 0x00, 0x5e, 1, 2, 3});
	check_multicast((uint8_t[16]){0xff, 0x0e, [12] = 1, 2, 3, 4}, (uint8_t[6]){0x33, 0x33, 1, 2, 3, 4});
}

static void unicast_has_none(void **state)
{
	static const uint8_t gids[][16] = {{[10] = 0xff, 0xff, 223, 255, 255, 255},
					   {[10] = 0xff, 0xff, 240, 0, 0, 0},
					   {0xfe, 0x80, [15] = 1},
					   {0}};
	uint8_t mac[6];

	for (unsigned i = 0; i < sizeof(gids) / sizeof(gids[0]); i++) {
		assert_false(roci_gid_is_multicast(gids[i]));
		assert_false(roci_gid_multicast_mac(gids[i], mac));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_prefix_makes_an_ipv4_address),
		cmocka_unit_test(an_ipv4_address_survives_the_mapping),
		cmocka_unit_test(each_family_has_its_wildcard),
		cmocka_unit_test(multicast_has_an_ethernet_address),
		cmocka_unit_test(unicast_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
