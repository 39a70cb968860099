/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of an MTU PROBE. */
#include "test.h"

#include <string.h>

#include "wire/gid.h"
#include "wire/mtu_probe.h"
#include "wire/packet.h"

/* UDP payload of the packet. */
static uint32_t datagram(unsigned code)
{
	return ROCI_BTH_BYTES + roci_mtu_probe_bytes(code) + ROCI_ICRC_BYTES;
}

/* As long as the longest packet with this path MTU, or longer. */
static void a_probe_stands_for_its_packets(void **state)
{
	for (unsigned code = 1; code <= 5; code++) {
		assert_int_equal(roci_mtu_probed(roci_mtu_probe_bytes(code)), code);
		assert_true(datagram(code) >= roci_mtu_datagram_bytes(code));
		if (code > 1)
			assert_int_equal(datagram(code), roci_mtu_datagram_bytes(code));
	}
}

static void only_whole_ones_are_read(void **state)
{
	uint8_t bytes[ROCI_MTU_PROBE_MOST_BYTES + 1] = {0};
	struct roci_hello hello = {.token = 7}, got;

	roci_gid_from_ipv4(hello.src, (uint8_t[]){10, 0, 0, 1});
	roci_gid_from_ipv4(hello.dst, (uint8_t[]){10, 0, 0, 2});
	roci_hello_build(&hello, bytes);
	assert_true(roci_mtu_probe_parse(bytes, ROCI_MTU_PROBE_LEAST_BYTES, &got));
	assert_int_equal(got.token, 7);
	assert_ptr_equal(got.mad, bytes + ROCI_HELLO_BYTES);
	assert_true(roci_mtu_probe_parse(bytes, ROCI_MTU_PROBE_MOST_BYTES, &got));
	assert_false(roci_mtu_probe_parse(bytes, ROCI_MTU_PROBE_LEAST_BYTES - 1, &got));
	assert_false(roci_mtu_probe_parse(bytes, ROCI_MTU_PROBE_MOST_BYTES + 1, &got));
	bytes[0]++;
	assert_false(roci_mtu_probe_parse(bytes, ROCI_MTU_PROBE_LEAST_BYTES, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_probe_stands_for_its_packets),
		cmocka_unit_test(only_whole_ones_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
