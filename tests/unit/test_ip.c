/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/gid.h"
#include "wire/ip.h"

static void gid_of(const char *address, uint8_t gid[16])
{
	uint8_t ipv4[4];

	if (inet_pton(AF_INET, address, ipv4) == 1)
		roci_gid_from_ipv4(gid, ipv4);
	else
		assert_int_equal(inet_pton(AF_INET6, address, gid), 1);
}

static void ipv4(void **state)
{
	static const uint8_t expected[ROCI_IPV4_BYTES] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
							  0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
	uint8_t src[16], dst[16], header[ROCI_IPV4_BYTES];
	struct roci_ip ip = {.src = src, .dst = dst, .hop_limit = 64, .udp_len = 95};

	gid_of("192.168.0.1", src);
	gid_of("192.168.0.199", dst);
	memset(header, 0xee, sizeof(header));
	assert_int_equal(roci_ip_build(&ip, header), ROCI_IPV4_BYTES);
	assert_int_equal(header[10] << 8 | header[11], 0);
	assert_false(roci_ipv4_checksum_is_right(header));
	roci_ipv4_put_checksum(header);
	assert_memory_equal(header, expected, sizeof(expected));
	assert_true(roci_ipv4_checksum_is_right(header));
	roci_ipv4_put_checksum(header);
	assert_memory_equal(header, expected, sizeof(expected));
	ip.id = 0x1234;
	ip.traffic_class = 0x6a;
	roci_ip_build(&ip, header);
	assert_int_equal(header[1], 0x6a);
	assert_int_equal(header[4] << 8 | header[5], 0x1234);
}

static void ipv6(void **state)
{
	static const uint8_t expected[8] = {0x66, 0xa0, 0x00, 0x00, 0x01, 0x18, 0x11, 0x21};
	uint8_t src[16], dst[16], header[ROCI_IPV6_BYTES];
	const struct roci_ip ip = {
		.src = src, .dst = dst, .traffic_class = 0x6a, .hop_limit = 0x21, .id = 7, .udp_len = 280};

	gid_of("fd00::1", src);
	gid_of("fd00::2", dst);
	memset(header, 0xee, sizeof(header));
	assert_int_equal(roci_ip_build(&ip, header), ROCI_IPV6_BYTES);
	assert_memory_equal(header, expected, sizeof(expected));
	assert_memory_equal(header + 8, src, 16);
	assert_memory_equal(header + 24, dst, 16);
}

/* RFC 1071 section 3 */
static void sums(void **state)
{
	static const uint8_t bytes[8] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	assert_int_equal(roci_ip_sum(0, bytes, 8), 0x2ddf0);
	assert_int_equal(roci_ip_sum_end(0x2ddf0), (uint16_t)~0xddf2u);
	assert_int_equal(roci_ip_sum(roci_ip_sum(0, bytes, 4), bytes + 4, 4), 0x2ddf0);
	assert_int_equal(roci_ip_sum(0, bytes, 3), 0x0001 + 0xf200);
	assert_int_equal(roci_ip_sum_end(0x1fffe), 0); /* the fold carries */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
