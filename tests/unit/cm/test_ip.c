/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "cm/cm_ip.h"

static const uint8_t v4_src[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t v4_dst[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
static const uint8_t v6_src[16] = {0xfd, [15] = 1}, v6_dst[16] = {0xfe, 0x80, [15] = 2};

static struct roci_cm_ip header(const uint8_t src[16], const uint8_t dst[16], bool ipv4)
{
	struct roci_cm_ip ip = {.src_port = 0x1234, .ipv4 = ipv4};

	memcpy(ip.src, src, 16);
	memcpy(ip.dst, dst, 16);
	return ip;
}

/* IBTA A11.3.1 */
static void ports_are_service_ids(void **state)
{
	assert_int_equal(roci_cm_service_id(ROCI_PS_TCP, 22222), 0x01060000 | 22222);
	assert_int_equal(roci_cm_service_id(ROCI_PS_UDP, 7), 0x01110007);
	assert_int_equal(roci_cm_service_id(ROCI_PS_IB, 0xffff), 0x013fffff);
	assert_true(roci_cm_service_is_ip(0x0106abcd));
	assert_false(roci_cm_service_is_ip(0x1000000001060000));
	assert_false(roci_cm_service_is_ip(0x2060000));
	assert_int_equal(roci_cm_service_port(0x0106abcd), 0xabcd);
	assert_int_equal(roci_cm_service_ps(0x0111abcd), ROCI_PS_UDP);
}

/* IBTA A11.3.2 */
static void the_header_on_the_wire(void **state)
{
	static const uint8_t expected[ROCI_CM_IP_BYTES] = {0, 0x40, 0x12, 0x34, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2};
	struct roci_cm_ip ip = header(v4_src, v4_dst, true), got;
	uint8_t bytes[ROCI_CM_IP_BYTES];

	roci_cm_ip_build(&ip, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_true(roci_cm_ip_parse(&got, bytes, sizeof(bytes)));
	assert_memory_equal(&got, &ip, sizeof(ip));
	ip = header(v6_src, v6_dst, false);
	roci_cm_ip_build(&ip, bytes);
	assert_int_equal(bytes[1], 0x60);
	assert_true(roci_cm_ip_parse(&got, bytes, sizeof(bytes)));
	assert_memory_equal(&got, &ip, sizeof(ip));
}

static void other_bytes_are_not_a_header(void **state)
{
	struct roci_cm_ip ip = header(v6_src, v6_dst, false), got;
	uint8_t bytes[ROCI_CM_IP_BYTES];

	roci_cm_ip_build(&ip, bytes);
	assert_false(roci_cm_ip_parse(&got, bytes, ROCI_CM_IP_BYTES - 1));
	bytes[0] = 0x10;
	assert_false(roci_cm_ip_parse(&got, bytes, sizeof(bytes)));
	bytes[0] = 0;
	for (unsigned family = 0; family < 16; family++) {
		bytes[1] = (uint8_t)(family << 4);
		assert_int_equal(roci_cm_ip_parse(&got, bytes, sizeof(bytes)), family == 4 || family == 6);
	}
	ip = header(v4_src, v6_dst, false); /* an IPv4 address under an IPv6 label */
	roci_cm_ip_build(&ip, bytes);
	assert_false(roci_cm_ip_parse(&got, bytes, sizeof(bytes)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_are_service_ids),
		cmocka_unit_test(the_header_on_the_wire),
		cmocka_unit_test(other_bytes_are_not_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
