/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci doctor HOST` says of two ends. */
#include "test.h"

#include <string.h>

#include "doctor/ends.h"

static const struct end here = {"10.0.0.1", "RoCE v2", 24, 1024, 1024}, there = {"10.0.0.2", "RoCE v2", 24, 1024, 1024};
static struct findings findings;

static void compare(struct end near, struct end far)
{
	findings.count = 0;
	ends_compare(&findings, &near, &far);
}

static void says(const char *id, enum finding_level level, const char *text)
{
	const struct finding *finding = finding_find(&findings, id);

	assert_non_null(finding);
	if (finding->level != level || !strstr(finding->text, text))
		fail_msg("%s is '%s' (%d)", id, finding->text, (int)finding->level);
	assert_true(*finding->proof);
	assert_true(level < FINDING_WARNING || *finding->fix);
}

static void alike(void **state)
{
	compare(here, there);
	assert_int_equal(findings.count, 3);
	says("ends-gid", FINDING_OK, "both ends use RoCE v2 over IPv4: 10.0.0.1 here, 10.0.0.2 there");
	says("ends-mtu", FINDING_OK, "of both ends carry RDMA packets of 1024 bytes");
	says("ends-subnet", FINDING_OK, "one subnet");
}

static void gids(void **state)
{
	struct end v1 = there, v6 = there, old = there, one = {"fe80::1", "InfiniBand", 0, 4096, 0}, other = one;

	strcpy(v1.type, "RoCE v1");
	compare(here, v1);
	says("ends-gid", FINDING_PROBLEM, "RoCE v2 over IPv4 here, RoCE v1 over IPv4 there");
	strcpy(v6.gid, "fd00::2");
	compare(here, v6);
	says("ends-gid", FINDING_PROBLEM, "RoCE v2 over IPv4 here, RoCE v2 over IPv6 there");
	compare(one, other);
	says("ends-gid", FINDING_OK, "both ends use InfiniBand: fe80::1 here");
	strcpy(old.type, "unknown");
	old.prefix = old.network_mtu = 0;
	compare(here, old);
	assert_int_equal(findings.count, 1);
	says("ends-gid", FINDING_NOTE, "10.0.0.2 does not tell the type of its GID");
}

static void mtu(void **state)
{
	struct end large = there;

	large.network_mtu = large.port_mtu = 4096;
	compare(here, large);
	says("ends-mtu", FINDING_WARNING, "1024 bytes here, 4096 there; use a path MTU of 1024");
	assert_null(finding_find(&findings, "ends-fragments"));
	large.network_mtu = 1024;
	compare(here, large);
	says("ends-mtu", FINDING_OK, "1024");
	says("ends-fragments", FINDING_WARNING,
	     "there, packets go in IP fragments unless the program asks for a path MTU of 1024");
	compare(large, there);
	says("ends-fragments", FINDING_WARNING, "here, packets");
}

static void subnets(void **state)
{
	struct end far = there, wide = there;

	strcpy(far.gid, "10.0.1.2");
	compare(here, far);
	says("ends-subnet", FINDING_NOTE, "different subnets");
	far.prefix = 16;
	compare(here, far);
	says("ends-subnet", FINDING_PROBLEM, "/24 here, /16 there; this host looks for the far end behind a router");
	compare(far, here);
	says("ends-subnet", FINDING_PROBLEM, "/16 here, /24 there; the far end looks for this host behind a router");
	wide.prefix = 8;
	compare(here, wide);
	says("ends-subnet", FINDING_WARNING, "/24 here, /8 there");
	compare((struct end){"fd00::1", "RoCE v2", 64, 1024, 1024},
		(struct end){"fd00:0:0:1::1", "RoCE v2", 64, 1024, 1024});
	says("ends-subnet", FINDING_NOTE, "different subnets");
}

static void lines(void **state)
{
	const char *end =
		"{\"gid\":\"::1\",\"gid_type\":\"RoCE v2\",\"prefix\":128,\"port_mtu\":4096,\"network_mtu\":1024}";
	char line[512];
	struct end a, b;

	snprintf(line, sizeof(line), "{\"event\":\"start\",\"near_end\":%s,\"far_end\":%s}\n{\"event\":\"end\"}\n", end,
		 end);
	assert_true(ends_parse(line, &a, &b));
	assert_string_equal(b.gid, "::1");
	assert_int_equal(b.prefix, 128);
	assert_int_equal(a.port_mtu, 4096);
	assert_int_equal(a.network_mtu, 1024);
	assert_false(ends_parse("{\"event\":\"start\"}", &a, &b));
	assert_false(ends_parse("", &a, &b));
	assert_false(ends_parse(NULL, &a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(alike), cmocka_unit_test(gids), cmocka_unit_test(mtu),
					   cmocka_unit_test(subnets), cmocka_unit_test(lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
