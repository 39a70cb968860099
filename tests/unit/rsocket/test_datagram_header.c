/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <arpa/inet.h>
#include <string.h>

#include "rsocket/datagram_header.h"

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage addr = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addr;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		addr.ss_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		addr.ss_family = AF_INET6;
	}
	return addr;
}

/* The bytes that librdmacm's rsockets send. */
static void headers_have_the_layout_of_librdmacm(void **state)
{
	static const uint8_t ud[8] = {4, 8, 0x1d, 0x2f, 192, 0, 2, 1};
	static const uint8_t udp[16] = {0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0x12, 0x34, 0x56, 0, 192, 0, 2, 1};
	struct sockaddr_storage local = address_of("192.0.2.1");
	struct rs_ud_header h;
	struct rs_udp_header hello;

	rs_ud_header_build(&h, (struct sockaddr *)&local, 7471);
	assert_int_equal(h.length, sizeof(ud));
	assert_memory_equal(&h, ud, sizeof(ud));
	rs_udp_header_build(&hello, &h, RS_UDP_CTRL, 0x123456);
	assert_int_equal(hello.length, sizeof(udp));
	assert_memory_equal(&hello, udp, sizeof(udp));
}

static void check_sender(const char *text)
{
	struct sockaddr_storage local = address_of(text), from;
	struct rs_ud_header h;
	struct rs_udp_header hello, parsed;
	size_t len = 0;

	rs_ud_header_build(&h, (struct sockaddr *)&local, 7471);
	assert_true(rs_ud_header_parse((uint8_t *)&h, h.length, &from, &len));
	assert_int_equal(len, h.length);
	((struct sockaddr_in *)&local)->sin_port = htons(7471); /* the same place in both families */
	assert_memory_equal(&from, &local, sizeof(from));
	assert_false(rs_ud_header_parse((uint8_t *)&h, h.length - 1u, &from, &len));

	rs_udp_header_build(&hello, &h, RS_UDP_DATA, 0xabcdef);
	assert_true(rs_udp_header_parse((uint8_t *)&hello, hello.length, &parsed));
	assert_int_equal(parsed.op, RS_UDP_DATA);
	assert_int_equal(rs_udp_header_qpn(&parsed), 0xabcdef);
	assert_false(rs_udp_header_parse((uint8_t *)&hello, hello.length - 1u, &parsed));
}

static void what_is_built_is_parsed(void **state)
{
	check_sender("192.0.2.1");
	check_sender("2001:db8::7");
}

static void other_bytes_are_no_header(void **state)
{
	struct sockaddr_storage local = address_of("192.0.2.1"), from;
	struct rs_ud_header h, broken_ud;
	struct rs_udp_header hello, broken;
	size_t len;

	rs_ud_header_build(&h, (struct sockaddr *)&local, 7471);
	rs_udp_header_build(&hello, &h, RS_UDP_DATA, 1);
	broken_ud = h;
	broken_ud.version = 5;
	assert_false(rs_ud_header_parse((uint8_t *)&broken_ud, sizeof(broken_ud), &from, &len));
	broken_ud = h;
	broken_ud.length = 24; /* of IPv6 */
	assert_false(rs_ud_header_parse((uint8_t *)&broken_ud, sizeof(broken_ud), &from, &len));
	broken = hello;
	broken.tag ^= 1;
	assert_false(rs_udp_header_parse((uint8_t *)&broken, sizeof(broken), &hello));
	rs_udp_header_build(&hello, &h, RS_UDP_DATA, 1);
	broken = hello;
	broken.version = 6;
	assert_false(rs_udp_header_parse((uint8_t *)&broken, sizeof(broken), &hello));
	assert_false(rs_udp_header_parse((uint8_t *)&broken, 0, &hello));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_have_the_layout_of_librdmacm),
		cmocka_unit_test(what_is_built_is_parsed),
		cmocka_unit_test(other_bytes_are_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
