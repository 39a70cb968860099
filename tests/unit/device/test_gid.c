/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <net/if.h>
#include <string.h>

#include "wire/gid.h"

static struct roci_gid_entry table[ROCI_MAX_GIDS];
static int count;

static int load(void **state)
{
	count = roci_gid_table(table, ROCI_MAX_GIDS);
	return count < 0 ? -1 : 0;
}

/* IPv4, global IPv6, link-local, IPv4 loopback, IPv6 loopback. */
static int class_of(const uint8_t gid[16])
{
	if (roci_gid_is_ipv4(gid))
		return gid[12] == 127 ? 3 : 0;
	if (IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)gid))
		return 4;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? 2 : 1;
}

static void most_useful_first(void **state)
{
	assert_in_range(count, 1, ROCI_MAX_GIDS);
	for (int i = 1; i < count; i++)
		assert_true(class_of(table[i - 1].gid) <= class_of(table[i].gid));
}

static void loopback_is_there(void **state)
{
	uint8_t gid[16];
	int found = 0;

	gid_of("127.0.0.1", gid);
	for (int i = 0; i < count; i++)
		found += !memcmp(table[i].gid, gid, 16);
	assert_int_equal(found, 1);
}

/* The largest IB MTU that leaves room for 96 bytes of headers. */
static void path_mtu_follows_the_interface(void **state)
{
	for (int i = 0; i < count; i++) {
		uint32_t mtu = table[i].path_mtu;

		assert_true(mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096);
		assert_true(mtu + 96 <= table[i].if_mtu || mtu == 256);
		assert_true(mtu == 4096 || 2 * mtu + 96 > table[i].if_mtu);
	}
}

static void interfaces_are_named(void **state)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(if_nametoindex(table[i].ifname), table[i].ifindex);
}

static void no_gid_twice(void **state)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			assert_true(memcmp(table[i].gid, table[k].gid, 16) || table[i].ifindex != table[k].ifindex);
}

static void a_short_table_is_the_beginning(void **state)
{
	struct roci_gid_entry one;

	assert_int_equal(roci_gid_table(&one, 1), 1);
	assert_memory_equal(&one, &table[0], sizeof(one));
}

static void an_address_is_found_on_its_interface(void **state)
{
	struct roci_gids gids = {.count = 3};
	uint8_t other[16];

	gid_of("10.0.0.1", gids.entries[0].gid);
	gid_of("fe80::1", gids.entries[1].gid);
	gid_of("fe80::1", gids.entries[2].gid);
	for (int i = 0; i < 3; i++)
		gids.entries[i].state = ROCI_GID_READY;
	gid_of("10.0.0.2", other);
	for (uint32_t i = 0; i < 3; i++)
		gids.entries[i].ifindex = 5 + i;
	assert_int_equal(roci_gids_find(&gids, gids.entries[0].gid, 0), 0);
	assert_int_equal(roci_gids_find(&gids, gids.entries[0].gid, 6), -1);
	assert_int_equal(roci_gids_find(&gids, gids.entries[2].gid, 0), 1);
	assert_int_equal(roci_gids_find(&gids, gids.entries[2].gid, 7), 2);
	assert_int_equal(roci_gids_find(&gids, other, 0), -1);
}

static void the_guid_is_of_the_first_hardware_address(void **state)
{
	static const uint8_t expected[8] = {0x52, 0x54, 0, 0xff, 0xfe, 1, 2, 3};
	struct roci_gid_entry entries[2] = {{.mac = {0}}, {.mac = {0x50, 0x54, 0, 1, 2, 3}}};
	uint8_t guid[8], none[8], zero[8] = {0};

	roci_gid_guid(entries, 2, guid);
	assert_memory_equal(guid, expected, 8);
	roci_gid_guid(entries, 1, none);
	assert_memory_not_equal(none, zero, 8);
	roci_gid_guid(entries, 0, guid);
	assert_memory_equal(guid, none, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_useful_first),
		cmocka_unit_test(loopback_is_there),
		cmocka_unit_test(path_mtu_follows_the_interface),
		cmocka_unit_test(interfaces_are_named),
		cmocka_unit_test(no_gid_twice),
		cmocka_unit_test(a_short_table_is_the_beginning),
		cmocka_unit_test(an_address_is_found_on_its_interface),
		cmocka_unit_test(the_guid_is_of_the_first_hardware_address),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
