/* SPDX-License-Identifier: BSD-2-Clause */
/* Which requests the short cut takes: those that the target's QP and region allow. */
#include "../test.h"

#include <stdlib.h>

#include "device/local/table.h"

#define ALL (ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_WRITE)

static struct roci_local_shared *s;
static const struct roci_mr_attr region = {
	.pd = 3, .key = 0x12345678, .base = (void *)0x10000, .iova = 0x500, .len = 0x1000, .access = ALL};

static struct roci_direct request(void)
{
	return (struct roci_direct){
		.qpn = 0x111, .dest_qpn = 0x40222, .rkey = 0x12345678, .remote_addr = 0x600, .len = 0x100};
}

static int make(void **state)
{
	s = calloc(1, sizeof(*s));
	s->qps[0x222] = (struct roci_local_qp){.state = ROCI_PUBLISHED | ALL, .peer_qpn = 0x111, .pd = 3};
	roci_local_publish_region(s, &region);
	return 0;
}

static int drop(void **state)
{
	free(s);
	return 0;
}

static void leads_to_the_memory(void **state)
{
	struct roci_direct d = request();

	assert_int_equal(roci_local_find_region(s, &d), 0x10100);
	d.remote_addr = 0x500;
	d.len = 0x1000;
	assert_int_equal(roci_local_find_region(s, &d), 0x10000);
}

static void range_is_checked(void **state)
{
	struct roci_direct d = request();

	d.remote_addr = 0x4ff;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.remote_addr = 0x1500;
	d.len = 1;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.remote_addr = UINT64_MAX;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.remote_addr = 0x501;
	d.len = UINT64_MAX;
	assert_int_equal(roci_local_find_region(s, &d), 0);
}

static void rights_and_pd_are_checked(void **state)
{
	struct roci_direct d = request();
	struct roci_mr_attr read_only = region;

	d.read = true;
	s->qps[0x222].state = ROCI_PUBLISHED | ROCI_ACCESS_REMOTE_WRITE;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.read = false;
	assert_int_not_equal(roci_local_find_region(s, &d), 0);
	s->qps[0x222].pd = 4;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	s->qps[0x222].pd = 3;
	read_only.key = d.rkey = 0x9900;
	read_only.access = ROCI_ACCESS_REMOTE_READ;
	roci_local_publish_region(s, &read_only);
	assert_int_equal(roci_local_find_region(s, &d), 0);
}

static void qp_is_checked(void **state)
{
	struct roci_direct d = request();

	d.qpn = 0x112;
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.qpn = 0x111;
	s->qps[0x222].state = 0;
	assert_int_equal(roci_local_find_region(s, &d), 0);
}

static void revoked_regions_are_not_found(void **state)
{
	struct roci_direct d = request();

	roci_local_revoke_region(s, region.key);
	assert_int_equal(roci_local_find_region(s, &d), 0);
	d.rkey = 0;
	assert_int_equal(roci_local_find_region(s, &d), 0);
}

/* More regions than there are places: those that are found are right, the others are just not published. */
static void a_full_table_publishes_no_more(void **state)
{
	struct roci_direct d = request();
	struct roci_mr_attr attr = region;
	unsigned found = 0;

	for (uint32_t i = 1; i <= 2 * ROCI_LOCAL_REGIONS; i++) {
		attr.key = i << 8;
		attr.base = (void *)(uintptr_t)(i * 0x10000);
		roci_local_publish_region(s, &attr);
	}
	for (uint32_t i = 1; i <= 2 * ROCI_LOCAL_REGIONS; i++) {
		uint64_t at;

		d.rkey = i << 8;
		at = roci_local_find_region(s, &d);
		assert_true(!at || at == i * UINT64_C(0x10000) + 0x100);
		found += at != 0;
	}
	assert_in_range(found, ROCI_LOCAL_REGIONS / 2, ROCI_LOCAL_REGIONS);
	for (uint32_t i = 1; i <= 2 * ROCI_LOCAL_REGIONS; i++)
		roci_local_revoke_region(s, i << 8);
	d.rkey = region.key;
	assert_int_not_equal(roci_local_find_region(s, &d), 0);
}

static void the_first_request_is_known(void **state)
{
	assert_false(roci_local_is_first(s, 0x40222));
	s->qps[0x222].state |= ROCI_PUBLISHED_NEW;
	assert_true(roci_local_is_first(s, 0x40222));
	assert_false(roci_local_is_first(s, 0x40222));
	assert_int_equal(s->qps[0x222].state, ROCI_PUBLISHED | ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leads_to_the_memory, make, drop),
		cmocka_unit_test_setup_teardown(range_is_checked, make, drop),
		cmocka_unit_test_setup_teardown(rights_and_pd_are_checked, make, drop),
		cmocka_unit_test_setup_teardown(qp_is_checked, make, drop),
		cmocka_unit_test_setup_teardown(revoked_regions_are_not_found, make, drop),
		cmocka_unit_test_setup_teardown(a_full_table_publishes_no_more, make, drop),
		cmocka_unit_test_setup_teardown(the_first_request_is_known, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
