/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "wire/print.h"

static struct captures captures;

static int load(void **state)
{
	return captures_load(&captures, NULL) ? 0 : -1;
}

static int unload(void **state)
{
	captures_free(&captures);
	return 0;
}

static void expect(const struct roci_packet *pkt, const char *line)
{
	char buf[256];

	assert_int_equal(roci_packet_print(pkt, buf, sizeof(buf)), strlen(line));
	assert_string_equal(buf, line);
}

static void lines_read_like_this(void **state)
{
	struct roci_packet pkt = {.opcode = ROCI_OP_WRITE_ONLY_IMM, .dest_qpn = 0x2b, .psn = 4096, .pkey = 0xffff};

	pkt.ack_req = pkt.solicited = true;
	pkt.va = 0x7f0012345678;
	pkt.rkey = 0xabc;
	pkt.dma_len = pkt.payload_len = 64;
	pkt.imm = htonl(0x01020304);
	expect(&pkt, "RC RDMA WRITE Only with Immediate qpn 0x00002b psn 4096 solicited ack-req va 0x00007f0012345678 "
		     "rkey 0x00000abc dma-len 64 imm 0x01020304 payload 64");
}

static void acknowledgements_read_like_this(void **state)
{
	struct roci_packet pkt = {.opcode = ROCI_OP_ACKNOWLEDGE, .dest_qpn = 0x2b, .psn = 7, .pkey = 0xffff, .msn = 3};

	pkt.syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS;
	expect(&pkt, "RC Acknowledge qpn 0x00002b psn 7 ACK msn 3");
	pkt.syndrome = ROCI_AETH_ACK | 5;
	expect(&pkt, "RC Acknowledge qpn 0x00002b psn 7 ACK credit-code 5 msn 3");
	pkt.syndrome = ROCI_AETH_RNR_NAK | 12;
	expect(&pkt, "RC Acknowledge qpn 0x00002b psn 7 RNR NAK 0.64 ms msn 3");
	pkt.opcode = ROCI_OP_ATOMIC_ACKNOWLEDGE;
	pkt.syndrome = ROCI_AETH_UNLIMITED_CREDITS;
	pkt.atomic_orig = 0x10;
	expect(&pkt, "RC ATOMIC Acknowledge qpn 0x00002b psn 7 ACK msn 3 original 0x10");
}

static void atomics_and_the_rest_read_like_this(void **state)
{
	struct roci_packet pkt = {
		.dest_qpn = 1, .psn = 2, .pkey = 0x7fff, .va = 8, .rkey = 9, .swap_add = 3, .compare = 4};

	pkt.opcode = ROCI_OP_COMPARE_SWAP;
	expect(&pkt,
	       "RC CmpSwap qpn 0x000001 psn 2 pkey 0x7fff va 0x0000000000000008 rkey 0x00000009 swap 0x3 compare 0x4");
	pkt.opcode = ROCI_OP_FETCH_ADD;
	expect(&pkt, "RC FetchAdd qpn 0x000001 psn 2 pkey 0x7fff va 0x0000000000000008 rkey 0x00000009 add 0x3");
	pkt.opcode = ROCI_OP_FLUSH;
	pkt.feth = 0x12;
	pkt.dma_len = 5;
	expect(&pkt, "RC FLUSH qpn 0x000001 psn 2 pkey 0x7fff feth 0x12 persistent mr va 0x0000000000000008 "
		     "rkey 0x00000009 dma-len 5");
	pkt.opcode = ROCI_OPCODE_CNP;
	pkt.becn = true;
	pkt.payload_len = 16;
	expect(&pkt, "CNP qpn 0x000001 psn 2 becn pkey 0x7fff payload 16");
	pkt.opcode = 0xff;
	expect(&pkt, "unknown opcode qpn 0x000001 psn 2 becn pkey 0x7fff");
}

static void every_size_is_terminated_and_no_more(void **state)
{
	for (size_t i = 0; i < captures.count; i++) {
		char whole[512], *room;
		struct roci_packet pkt;
		int len;

		assert_int_equal(roci_packet_parse(&pkt, captures.packets[i].bytes, captures.packets[i].len),
				 ROCI_PARSE_OK);
		len = roci_packet_print(&pkt, whole, sizeof(whole));
		assert_int_equal(len, strlen(whole));
		assert_null(strchr(whole, '\n'));
		assert_int_equal(roci_packet_print(&pkt, NULL, 0), len);
		for (size_t size = 1; i % 16 == 0 && size <= (size_t)len + 2; size++) {
			room = malloc(size); /* an allocation of its own, so that a sanitizer sees an overrun */
			assert_int_equal(roci_packet_print(&pkt, room, size), len);
			assert_int_equal(strlen(room), size <= (size_t)len ? size - 1 : (size_t)len);
			assert_memory_equal(room, whole, strlen(room));
			free(room);
		}
	}
}

/* IBTA 9.7.5.1.1, tables 44 and 46 */
static void syndromes_have_names(void **state)
{
	assert_string_equal(roci_syndrome_str(0x00), "ACK");
	assert_string_equal(roci_syndrome_str(0x1f), "ACK");
	assert_string_equal(roci_syndrome_str(0x20), "RNR NAK 655.36 ms");
	assert_string_equal(roci_syndrome_str(0x21), "RNR NAK 0.01 ms");
	assert_string_equal(roci_syndrome_str(0x2e), "RNR NAK 1.28 ms");
	assert_string_equal(roci_syndrome_str(0x3f), "RNR NAK 491.52 ms");
	assert_string_equal(roci_syndrome_str(0x40), "reserved syndrome");
	assert_string_equal(roci_syndrome_str(0x60), "NAK PSN sequence error");
	assert_string_equal(roci_syndrome_str(0x61), "NAK invalid request");
	assert_string_equal(roci_syndrome_str(0x62), "NAK remote access error");
	assert_string_equal(roci_syndrome_str(0x63), "NAK remote operational error");
	assert_string_equal(roci_syndrome_str(0x64), "NAK invalid RD request");
	assert_string_equal(roci_syndrome_str(0x65), "NAK reserved code");
	for (unsigned syndrome = 0; syndrome < 256; syndrome++)
		assert_non_null(roci_syndrome_str((uint8_t)syndrome));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_read_like_this),
		cmocka_unit_test(acknowledgements_read_like_this),
		cmocka_unit_test(atomics_and_the_rest_read_like_this),
		cmocka_unit_test(every_size_is_terminated_and_no_more),
		cmocka_unit_test(syndromes_have_names),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
