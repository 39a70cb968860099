/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif
#include <zlib.h>

#include "capture.h"
#include "icrc_difference.h"
#include "random.h"
#include "wire/icrc.h"
#include "wire/packet.h"

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

static const struct roci_flow ipv4_flow = {
	.src = {[10] = 0xff, 0xff, 10, 9, 0, 1},
	.dst = {[10] = 0xff, 0xff, 10, 9, 0, 2},
	.src_port = 0xc123,
	.dst_port = ROCI_UDP_PORT,
};

static const struct roci_flow ipv6_flow = {
	.src = {0xfe, 0x80, [15] = 1},
	.dst = {0xfe, 0x80, [15] = 2},
	.src_port = 0xc123,
	.dst_port = ROCI_UDP_PORT,
};

static uint32_t stored_icrc(const uint8_t *bytes, size_t len)
{
	uint32_t icrc;

	memcpy(&icrc, bytes + len - 4, 4);
	return le32toh(icrc);
}

/* The ICRC by zlib over the masked frame as it was captured (IBTA A17.3). */
static uint32_t zlib_icrc(const struct capture_packet *captured)
{
	static const uint8_t lrh[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	size_t len = captured->ip_len + 8 + captured->len - 4;
	uint8_t *image = malloc(len);
	uLong crc;

	memcpy(image, captured->ip, len);
	if (captured->ipv4) {
		image[1] = image[8] = image[10] = image[11] = 0xff;
	} else {
		image[0] |= 0x0f;
		image[1] = image[2] = image[3] = image[7] = 0xff;
	}
	image[captured->ip_len + 6] = image[captured->ip_len + 7] = 0xff;
	image[captured->ip_len + 8 + 4] = 0xff;
	crc = crc32(crc32(0, lrh, sizeof(lrh)), image, (uInt)len);
	free(image);
	return (uint32_t)crc;
}

static void captured_packets_are_intact(void **state)
{
	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *p = &captures.packets[i];

		assert_int_equal(icrc_difference(&p->flow, p->ip_id, p->bytes, p->len), 0);
		assert_int_equal(roci_icrc_check(&p->flow, p->bytes, p->len), p->ipv4 ? p->ip_id : 0);
		assert_int_equal(zlib_icrc(p), stored_icrc(p->bytes, p->len));
	}
}

static void the_identification_is_recovered(void **state)
{
	size_t recovered = 0;

	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *p = &captures.packets[i];

		if (!p->ipv4)
			continue;
		assert_int_not_equal(p->ip_id, 0);
		assert_int_equal(roci_icrc_ipv4_id(icrc_difference(&p->flow, 0, p->bytes, p->len), p->len), p->ip_id);
		recovered++;
	}
	assert_true(recovered > 100);
}

/* As a sender does: begin, headers, payload in pieces, store. */
static void pieces_make_the_whole(void **state)
{
	uint64_t seed = 2;

	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *p = &captures.packets[i];
		struct roci_packet pkt;
		uint8_t icrc[4];
		uint32_t crc;
		size_t at, cut;

		assert_int_equal(roci_packet_parse(&pkt, p->bytes, p->len), ROCI_PARSE_OK);
		at = pkt.op->header_bytes;
		cut = at + random_below(&seed, p->len - 4 - at + 1);
		crc = roci_icrc_begin(&p->flow, p->ip_id, p->len);
		crc = roci_icrc_headers(crc, p->bytes, at);
		crc = roci_icrc_update(crc, p->bytes + at, cut - at);
		crc = roci_icrc_update(crc, p->bytes + cut, p->len - 4 - cut);
		roci_icrc_store(crc, icrc);
		assert_memory_equal(icrc, p->bytes + p->len - 4, 4);
	}
}

static void a_flipped_bit_is_detected(void **state)
{
	uint64_t seed = 3;
	uint8_t copy[8192];

	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *p = &captures.packets[i];
		size_t bits = p->len * 8;

		memcpy(copy, p->bytes, p->len);
		for (size_t round = 0; round < 256; round++) {
			size_t bit = bits <= 256 ? round % bits : random_below(&seed, bits);
			bool masked = bit / 8 == 4;

			copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(icrc_difference(&p->flow, p->ip_id, copy, p->len) == 0, masked);
			copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* The ICRC covers addresses, ports and length too. */
static void a_wrong_flow_is_detected(void **state)
{
	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *p = &captures.packets[i];
		struct roci_flow flow = p->flow;

		flow.src[15] ^= 1;
		assert_int_not_equal(icrc_difference(&flow, p->ip_id, p->bytes, p->len), 0);
		flow = p->flow;
		flow.dst[12] ^= 0x80;
		assert_int_not_equal(icrc_difference(&flow, p->ip_id, p->bytes, p->len), 0);
		flow = p->flow;
		flow.src_port ^= 0x100;
		assert_int_not_equal(icrc_difference(&flow, p->ip_id, p->bytes, p->len), 0);
		assert_int_not_equal(roci_icrc_begin(&p->flow, 0, p->len), roci_icrc_begin(&p->flow, 0, p->len + 4));
	}
}

static uint32_t zlib_of(const struct roci_flow *flow, uint16_t id, const uint8_t *bytes, size_t len)
{
	static const uint8_t lrh[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t ip[28] = {0x45,
			  0xff,
			  (uint8_t)((len + 28) >> 8),
			  (uint8_t)(len + 28),
			  (uint8_t)(id >> 8),
			  (uint8_t)id,
			  0x40,
			  0,
			  0xff,
			  17,
			  0xff,
			  0xff};
	uint8_t bth[12];

	memcpy(ip + 12, flow->src + 12, 4);
	memcpy(ip + 16, flow->dst + 12, 4);
	memcpy(ip + 20, (uint8_t[]){(uint8_t)(flow->src_port >> 8), (uint8_t)flow->src_port, 0x12, 0xb7}, 4);
	memcpy(ip + 24, (uint8_t[]){(uint8_t)((len + 8) >> 8), (uint8_t)(len + 8), 0xff, 0xff}, 4);
	memcpy(bth, bytes, 12);
	bth[4] = 0xff;
	return (uint32_t)crc32(crc32(crc32(crc32(0, lrh, 8), ip, 28), bth, 12), bytes + 12, (uInt)(len - 16));
}

/* What is kept of one packet for the next must fit that one, too: flows, lengths and marks (BTH byte 4) alternate, and
 * many share a place in the cache. zlib says what is right. */
static void packets_of_many_flows_alternate(void **state)
{
	struct roci_flow flow = ipv4_flow;
	uint8_t bytes[1200];
	uint64_t seed = 7;
	unsigned marked = 0;

	for (unsigned round = 0; round < 20000; round++) {
		size_t len = 16 + 4 * random_below(&seed, round % 3 ? 3 : 290);
		uint16_t id = (uint16_t)random_below(&seed, round % 2 ? 64 : 65536);
		uint32_t crc;

		flow.src_port = (uint16_t)(0xc123 + 16 * random_below(&seed, 3));
		flow.dst[15] = (uint8_t)random_below(&seed, 2);
		random_fill(&seed, bytes, len);
		bytes[4] = random_below(&seed, 4) ? 0 : (uint8_t)random_next(&seed);
		marked += bytes[4] != 0;
		roci_icrc_store(zlib_of(&flow, id, bytes, len), bytes + len - 4);
		assert_int_equal(roci_icrc_check(&flow, bytes, len), id);
		crc = roci_icrc_headers(roci_icrc_begin(&flow, id, len), bytes, 12);
		assert_int_equal(roci_icrc_update(crc, bytes + 12, len - 16), stored_icrc(bytes, len));
		bytes[random_below(&seed, 4)] ^= 0x10;
		assert_int_not_equal(roci_icrc_check(&flow, bytes, len), id);
	}
	assert_in_range(marked, 1000, 19000);
}

static void ipv6_has_no_identification(void **state)
{
	assert_int_equal(roci_icrc_begin(&ipv6_flow, 0, 100), roci_icrc_begin(&ipv6_flow, 1, 100));
	assert_int_not_equal(roci_icrc_begin(&ipv4_flow, 0, 100), roci_icrc_begin(&ipv4_flow, 1, 100));
}

/* Every length that an IPv4 datagram can have, and so every power of x that the recovery uses. zlib shifts the
 * difference that the identification makes over the bytes that follow. */
static void every_length_recovers_its_identification(void **state)
{
	uint64_t seed = 4;

	for (size_t len = ROCI_MIN_PACKET_BYTES; len <= 65535 - 28; len++) {
		uint16_t id = (uint16_t)random_next(&seed);
		uint32_t begun = roci_icrc_begin(&ipv4_flow, id, len) ^ roci_icrc_begin(&ipv4_flow, 0, len);
		uint32_t difference = (uint32_t)crc32_combine(begun, 0, (z_off_t)(len - 4));

		assert_int_equal(roci_icrc_ipv4_id(difference, len), id);
	}
}

static void every_identification_is_recovered(void **state)
{
	uint8_t bytes[20] = {ROCI_OP_ACKNOWLEDGE};

	for (unsigned id = 0; id <= 0xffff; id++) {
		uint32_t crc = roci_icrc_begin(&ipv4_flow, (uint16_t)id, sizeof(bytes));

		roci_icrc_store(roci_icrc_headers(crc, bytes, 16), bytes + 16);
		crc = icrc_difference(&ipv4_flow, 0, bytes, sizeof(bytes));
		assert_int_equal(roci_icrc_ipv4_id(crc, sizeof(bytes)), id);
	}
}

/* A random error passes as an identification with probability 2^-16: of a million, about 15. */
static void random_errors_are_rejected(void **state)
{
	uint64_t seed = 5;
	unsigned accepted = 0;

	for (unsigned round = 0; round < 1000000; round++)
		accepted +=
			roci_icrc_ipv4_id((uint32_t)random_next(&seed) | 1, 16 + 4 * random_below(&seed, 1024)) >= 0;
	assert_in_range(accepted, 1, 40);
}

static void impossible_lengths_are_rejected(void **state)
{
	assert_int_equal(roci_icrc_ipv4_id(1, 0), -1);
	assert_int_equal(roci_icrc_ipv4_id(1, 15), -1);
	assert_int_equal(roci_icrc_ipv4_id(1, 65508), -1);
	assert_int_equal(roci_icrc_ipv4_id(1, SIZE_MAX), -1);
	assert_int_equal(roci_icrc_ipv4_id(0, 1024), 0);
}

static void soft_roce_seals_a_flush_twice(void **state)
{
	const struct roci_flow *flows[] = {&ipv4_flow, &ipv6_flow};
	uint8_t bytes[36] = {ROCI_OP_FLUSH, 0, 0xff, 0xff, 0x5a, 1, 2, 3, 0x80, 4, 5, 6, [15] = 1, [20] = 7};

	for (unsigned i = 0; i < 4; i++) {
		const struct roci_flow *flow = flows[i / 2];
		uint16_t id = flow == &ipv4_flow ? 0x1234 : 0;
		uint32_t crc = roci_icrc_headers(roci_icrc_begin(flow, id, sizeof(bytes)), bytes, 32);

		if (i % 2)
			crc = (uint32_t)crc32(crc, bytes, 32); /* byte 4 as it is, too */
		roci_icrc_store(crc, bytes + 32);
		assert_int_equal(roci_icrc_check(flow, bytes, sizeof(bytes)), id);
		bytes[20] ^= 1;
		assert_int_equal(roci_icrc_check(flow, bytes, sizeof(bytes)), -1);
		bytes[20] ^= 1;
		bytes[0] = ROCI_OP_READ_REQUEST; /* the second form is accepted for FLUSH only */
		crc = roci_icrc_headers(roci_icrc_begin(flow, id, sizeof(bytes)), bytes, 32);
		roci_icrc_store(roci_icrc_soft_roce_flush(crc, bytes, 32), bytes + 32);
		assert_int_equal(roci_icrc_check(flow, bytes, sizeof(bytes)), -1);
		bytes[0] = ROCI_OP_FLUSH;
	}
}

#ifdef __x86_64__
#define UPPER_PARTS (1u << 2 | 1u << 6) /* XINUSE: of the registers that SSE has, for AVX and for AVX-512 */

__attribute__((target("xsave"))) static unsigned upper_parts_in_use(void)
{
	return (unsigned)_xgetbv(1) & UPPER_PARTS;
}

__attribute__((target("avx"))) static void clear_upper_parts(void)
{
	_mm256_zeroupper();
}

/* Whether the processor says which parts are in use, and that they are not when they were cleared. */
static bool knows_parts(void)
{
	unsigned eax = 0, ebx, ecx, edx;

	if (!__builtin_cpu_supports("avx512f") || !__get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) ||
	    !(eax & 1u << 2))
		return false;
	clear_upper_parts();
	return !upper_parts_in_use();
}

/* See crc32_of() in icrc.c. */
static void vector_registers_are_left_clear(void **state)
{
	static uint8_t bytes[4096] = {ROCI_OP_WRITE_ONLY};
	unsigned in_use;

	if (!knows_parts())
		skip();
	roci_icrc_check(&ipv4_flow, bytes, sizeof(bytes));
	in_use = upper_parts_in_use();
	assert_int_equal(in_use, 0);
	roci_icrc_update(0, bytes, sizeof(bytes));
	in_use = upper_parts_in_use();
	assert_int_equal(in_use, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_packets_are_intact),
		cmocka_unit_test(the_identification_is_recovered),
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(a_flipped_bit_is_detected),
		cmocka_unit_test(a_wrong_flow_is_detected),
		cmocka_unit_test(packets_of_many_flows_alternate),
		cmocka_unit_test(ipv6_has_no_identification),
		cmocka_unit_test(every_length_recovers_its_identification),
		cmocka_unit_test(every_identification_is_recovered),
		cmocka_unit_test(random_errors_are_rejected),
		cmocka_unit_test(impossible_lengths_are_rejected),
		cmocka_unit_test(soft_roce_seals_a_flush_twice),
#ifdef __x86_64__
		cmocka_unit_test(vector_registers_are_left_clear),
#endif
	};

	return cmocka_run_group_tests(tests, load, unload);
}
