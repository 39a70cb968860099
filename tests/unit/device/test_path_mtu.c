/* SPDX-License-Identifier: BSD-2-Clause */
/* What is remembered of paths: a virtual clock. */
#include "../test.h"

#include "device/path_mtu.h"
#include "wire/gid.h"
#include "wire/mtu.h"

#define NOW UINT64_C(5000000000)

static const uint8_t here[16] = {1}, elsewhere[16] = {2};

static const uint8_t *host(uint8_t n)
{
	static uint8_t gid[16];

	roci_gid_from_ipv4(gid, (uint8_t[]){10, 0, 0, n});
	return gid;
}

/* The path MTU that is known, as enum ibv_mtu. */
static uint8_t found(const struct roci_path_mtus *m, uint64_t now, const uint8_t *gid)
{
	uint32_t carries = roci_path_mtu_carries(m, now, here, gid);

	for (uint8_t mtu = ROCI_MTU_CODE_MIN; mtu <= ROCI_MTU_CODE_MAX; mtu++)
		if (roci_mtu_datagram_bytes(mtu) == carries)
			return mtu;
	assert_int_equal(carries, 0);
	return 0;
}

static void for_ten_minutes(void **state)
{
	struct roci_path_mtus m = {0};

	assert_int_equal(found(&m, NOW, host(1)), 0);
	roci_path_mtu_learn(&m, NOW, here, host(1), 3);
	assert_int_equal(found(&m, NOW, host(1)), 3);
	assert_int_equal(found(&m, NOW, host(2)), 0);
	assert_int_equal(found(&m, NOW + ROCI_PATH_MTU_NS - 1, host(1)), 3);
	assert_int_equal(found(&m, NOW + ROCI_PATH_MTU_NS, host(1)), 0);
}

static void the_last_one_counts(void **state)
{
	struct roci_path_mtus m = {0};

	roci_path_mtu_learn(&m, NOW, here, host(1), 3);
	roci_path_mtu_learn(&m, NOW + 1, here, host(1), 5);
	assert_int_equal(found(&m, NOW + ROCI_PATH_MTU_NS, host(1)), 5);
}

/* A host with two interfaces may reach another one on two ways. */
static void ways_differ(void **state)
{
	struct roci_path_mtus m = {0};

	roci_path_mtu_learn(&m, NOW, here, host(1), 3);
	assert_int_equal(roci_path_mtu_carries(&m, NOW, elsewhere, host(1)), 0);
	assert_int_equal(found(&m, NOW, host(1)), 3);
}

/* That nobody is there says nothing about the path. */
static void nobody_is_no_path_mtu(void **state)
{
	struct roci_path_mtus m = {0};

	roci_path_mtu_learn(&m, NOW, here, host(1), 3);
	roci_path_mtu_nobody(&m, NOW, host(1));
	roci_path_mtu_nobody(&m, NOW, host(2));
	assert_int_equal(found(&m, NOW, host(1)), 3);
	assert_int_equal(found(&m, NOW, host(2)), 0);
}

/* More hosts than places: what is found is never another host's. */
static void hosts_share_places(void **state)
{
	struct roci_path_mtus m = {0};
	unsigned known = 0;

	for (unsigned i = 1; i < 200; i++)
		roci_path_mtu_learn(&m, NOW, here, host((uint8_t)i), (uint8_t)(1 + i % 5));
	for (unsigned i = 1; i < 200; i++) {
		uint8_t mtu = found(&m, NOW, host((uint8_t)i));

		assert_true(!mtu || mtu == 1 + i % 5);
		known += mtu != 0;
	}
	assert_in_range(known, 1, ROCI_PATH_MTU_PLACES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(for_ten_minutes),    cmocka_unit_test(the_last_one_counts),
		cmocka_unit_test(ways_differ),        cmocka_unit_test(nobody_is_no_path_mtu),
		cmocka_unit_test(hosts_share_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
