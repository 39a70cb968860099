/* SPDX-License-Identifier: BSD-2-Clause */
/* The target argument of `roci send`. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "target.h"

static void assert_target(const char *text, const char *host, uint16_t port)
{
	struct target target;
	const char *why;

	assert_int_equal(target_parse(text, &target, &why), 0);
	assert_string_equal(target.host, host);
	assert_int_equal(target.port, port);
	assert_null(target.ticket_file);
}

static void hosts_and_ports(void **state)
{
	assert_target("host", "host", 0);
	assert_target("10.0.0.7", "10.0.0.7", 0);
	assert_target("10.0.0.7:1", "10.0.0.7", 1);
	assert_target("host.example:65535", "host.example", 65535);
}

/* RFC 3986 s.3.2.2: an IPv6 address with a port must be in brackets. */
static void ipv6(void **state)
{
	assert_target("::1", "::1", 0);
	assert_target("2001:db8::7", "2001:db8::7", 0);
	assert_target("[::1]", "::1", 0);
	assert_target("[fe80::1%eth0]:4000", "fe80::1%eth0", 4000);
}

static void ticket_files(void **state)
{
	struct target target;
	const char *why;

	assert_int_equal(target_parse("@some/where:5", &target, &why), 0);
	assert_string_equal(target.ticket_file, "some/where:5");
	assert_string_equal(target.host, "");
}

static void errors_have_a_reason(void **state)
{
	static const char *const texts[] = {
		"",     "@",    ":5",      "h:",   "h:0", "h:65536", "h:99999999999999999999",
		"h:5x", "h:-5", "h: 5",    "[::1", "[]",  "[::1]5",  "[::1]:",
		"a/b",  "/",    "./photos"};
	char huge[400];
	struct target target;
	const char *why;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(target_parse(texts[i], &target, &why), -EINVAL);
		assert_non_null(why);
	}
	memset(huge, 'h', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = 0;
	assert_int_equal(target_parse(huge, &target, &why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_and_ports),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(ticket_files),
		cmocka_unit_test(errors_have_a_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
