/* SPDX-License-Identifier: BSD-2-Clause */
/* The ICRC (IBTA A17.3) and the recovery of an IPv4 identification from it. */
#include "wire/icrc.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <isa-l/crc.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/ip.h"
#include "wire/packet.h"

/* The CRC of the eight bytes of ones that stand for the LRH, in front of everything else. */
#define CRC_AFTER_LRH 0x2144df1cu

#define BLOCK 16 /* bytes that ISA-L takes at a time */

#define MAX_IMAGE_BYTES (ROCI_IPV6_BYTES + ROCI_UDP_BYTES)

/* In the BTH: FECN, BECN and reserved bits, which routers may write. */
#define BTH_MASKED_BYTE 4

#ifdef __x86_64__
__attribute__((target("avx"))) static void clear_upper_parts(void)
{
	_mm256_zeroupper();
}
#endif

/* ISA-L (2.30) leaves the upper parts of vector registers in use where the processor has AVX-512. SSE instructions,
 * which most code is compiled to, are slow from then on: the few behind each packet's CRC took 160 ns. */
static uint32_t crc32_of(uint32_t crc, const void *bytes, size_t len)
{
	crc = crc32_gzip_refl(crc, bytes, len);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		clear_upper_parts();
#endif
	return crc;
}

/* Writes the masked IP and UDP headers to `image`, with the identification 0, and returns their length. */
static size_t image_ip_udp(uint8_t image[MAX_IMAGE_BYTES], const struct roci_flow *flow, size_t udp_payload_len)
{
	const struct roci_ip ip = {.src = flow->src,
				   .dst = flow->dst,
				   .traffic_class = 0xff,
				   .hop_limit = 0xff,
				   .udp_len = (uint16_t)(ROCI_UDP_BYTES + udp_payload_len)};
	size_t ip_bytes = roci_ip_build(&ip, image);
	uint8_t *udp;

	if (ip_bytes == ROCI_IPV4_BYTES)
		roci_put_be16(image + 10, 0xffff); /* checksum */
	else
		roci_put_be32(image, 0x6fffffff); /* version 6, traffic class, flow label */
	udp = image + ip_bytes;
	roci_put_be16(udp, flow->src_port);
	roci_put_be16(udp + 2, flow->dst_port);
	roci_put_be16(udp + 4, (uint16_t)(ROCI_UDP_BYTES + udp_payload_len));
	roci_put_be16(udp + 6, 0xffff); /* checksum */
	return ip_bytes + ROCI_UDP_BYTES;
}

/* What the packets of a flow that have one length share: the CRC of their IP and UDP headers with the identification 0,
 * and what the mask of BTH byte 4, where that is 0, adds to the CRC of a whole packet. A short piece of a packet costs
 * as much as half a kilobyte, so these are kept. Each thread keeps its own. */
struct beginning {
	struct roci_flow flow;
	uint32_t crc, mask;
	uint32_t len;                                         /* of the UDP payload; 0: nothing here yet */
	enum { MASK_UNKNOWN, MASK_WANTED, MASK_KNOWN } state; /* wanted by a second packet: it costs one more pass */
};

#define BEGINNINGS 16

static struct beginning *beginning_of(const struct roci_flow *flow, size_t udp_payload_len)
{
	static _Thread_local struct beginning all[BEGINNINGS];
	uint32_t len = (uint32_t)udp_payload_len;
	struct beginning *b = &all[(len >> 2 ^ len >> 6 ^ flow->src_port) % BEGINNINGS];
	uint8_t image[MAX_IMAGE_BYTES];

	if (b->len != len || memcmp(&b->flow, flow, sizeof(*flow)) != 0) {
		b->flow = *flow;
		b->len = len;
		b->state = MASK_UNKNOWN;
		b->crc = crc32_of(CRC_AFTER_LRH, image, image_ip_udp(image, flow, udp_payload_len));
	}
	return b;
}

/* What each bit of the identification adds to the CRC of the IPv4 and UDP headers, 22 bytes before their end. */
static const uint32_t id_bits[16] = {
	0x9b73ead4, 0xed96d3e9, 0x005ca193, 0x00b94326, 0x0172864c, 0x02e50c98, 0x05ca1930, 0x0b943260,
	0x81256527, 0xd93bcc0f, 0x69069e5f, 0xd20d3cbe, 0x7f6b7f3d, 0xfed6fe7a, 0x26dcfab5, 0x4db9f56a,
};

uint32_t roci_icrc_begin(const struct roci_flow *flow, uint16_t ip_id, size_t udp_payload_len)
{
	uint32_t crc = beginning_of(flow, udp_payload_len)->crc;

	if (!ip_id || !roci_gid_is_ipv4(flow->dst))
		return crc;
	for (unsigned bit = 0; ip_id >> bit; bit++)
		crc ^= id_bits[bit] & -(uint32_t)(ip_id >> bit & 1);
	return crc;
}

uint32_t roci_icrc_headers(uint32_t crc, const uint8_t *headers, size_t len)
{
	uint8_t image[BLOCK + ROCI_MAX_HEADER_BYTES] = {0}, *at = image + (-len & (BLOCK - 1));
	uint32_t first;

	assert(len >= ROCI_BTH_BYTES && len <= ROCI_MAX_HEADER_BYTES);
	memcpy(at, headers, len);
	at[BTH_MASKED_BYTE] = 0xff;
	/* The running value in the first four bytes, and zeros before them, that change nothing: whole blocks are
	 * faster. */
	memcpy(&first, at, sizeof(first));
	first ^= htole32(~crc);
	memcpy(at, &first, sizeof(first));
	return crc32_of(0xffffffff, image, (uint64_t)(at - image) + len);
}

uint32_t roci_icrc_update(uint32_t crc, const void *bytes, size_t len)
{
	return crc32_of(crc, bytes, len);
}

void roci_icrc_store(uint32_t crc, uint8_t out[4])
{
	crc = htole32(crc);
	memcpy(out, &crc, sizeof(crc));
}

/* (received ICRC) xor (computed ICRC), both read little-endian, where the identification is 0. */
static uint32_t difference_of(const struct roci_flow *flow, const uint8_t *bytes, size_t len)
{
	struct beginning *b = beginning_of(flow, len);
	size_t covered = len - ROCI_ICRC_BYTES;
	uint32_t crc, received;

	assert(len >= ROCI_MIN_PACKET_BYTES);
	if (!bytes[BTH_MASKED_BYTE] && b->state == MASK_KNOWN) {
		crc = crc32_of(b->crc, bytes, covered) ^ b->mask;
	} else {
		crc = roci_icrc_headers(b->crc, bytes, ROCI_BTH_BYTES);
		if (covered > ROCI_BTH_BYTES)
			crc = crc32_of(crc, bytes + ROCI_BTH_BYTES, covered - ROCI_BTH_BYTES);
		if (b->state == MASK_WANTED && !bytes[BTH_MASKED_BYTE]) {
			b->mask = crc ^ crc32_of(b->crc, bytes, covered);
			b->state = MASK_KNOWN;
		} else if (b->state == MASK_UNKNOWN) {
			b->state = MASK_WANTED;
		}
	}
	memcpy(&received, bytes + covered, sizeof(received));
	return le32toh(received) ^ crc;
}

/*
 * The identification, as a polynomial M of degree < 16, adds M * x^(32+8n) mod P to the CRC, where n bytes follow it.
 * So with a packet that is intact but for the assumed identification 0, difference * x^-(8n+16) is M * x^16. In the
 * CRC's bit order (bit 31 is x^0) that is a number below 2^16, whose low byte is the identification's first.
 */
#define POLYNOMIAL               0xedb88320u
#define ONE                      0x80000000u
#define BYTES_BETWEEN_ID_AND_UDP 22 /* what follows the identification in the IPv4 header, and the UDP header */
#define MAX_IPV4_PAYLOAD         (65535 - ROCI_IPV4_BYTES - ROCI_UDP_BYTES)

/* x^-(8 * 2^i) mod P: each is the square of the one before; tests/unit/test_icrc.c compares them with zlib. */
static const uint32_t inverse_powers[16] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
	0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5,
};

/* a * b mod P, branch-free, in 32 steps. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int bit = 31; bit >= 0; bit--) {
		product ^= b & -(a >> bit & 1);
		b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
	}
	return product;
}

/* x^-(8 * bytes) mod P, bytes < 65536. */
static uint32_t inverse_power(unsigned bytes)
{
	uint32_t power = ONE;

	for (unsigned bit = 0; bytes >> bit; bit++)
		if (bytes >> bit & 1)
			power = multiply(power, inverse_powers[bit]);
	return power;
}

/* inverse_power() with a cache: the packets of a flow have few lengths. An entry is one word, so all threads share the
 * cache without a lock: what each thread had of its own would be taken from its stack, which may be small. */
static uint32_t inverse_power_cached(unsigned bytes)
{
	static _Atomic uint64_t cache[64]; /* bytes, power */
	_Atomic uint64_t *slot = &cache[bytes * 0x9e3779b1u >> 26];
	uint64_t known = atomic_load_explicit(slot, memory_order_relaxed);

	if (known >> 32 != bytes) {
		known = (uint64_t)bytes << 32 | inverse_power(bytes);
		atomic_store_explicit(slot, known, memory_order_relaxed);
	}
	return (uint32_t)known;
}

static int find_id(uint32_t difference, size_t len)
{
	/* n = 22 + len - 4, and 16 more bits */
	uint32_t id = multiply(difference,
			       inverse_power_cached((unsigned)(BYTES_BETWEEN_ID_AND_UDP + len - ROCI_ICRC_BYTES + 2)));

	return id >> 16 ? -1 : (int)(id >> 8 | (id & 0xff) << 8);
}

/* With a cache of answers: packets of a run, which the sender hands to the kernel in one call, have the identifications
 * 0, 1, 2, and mostly one length. Two places for each hash: with one, a quarter of a run's 64 packets found their
 * place taken by another one. All threads share it, too. */
int roci_icrc_ipv4_id(uint32_t difference, size_t len)
{
	static _Atomic uint64_t cache[256][2]; /* difference, length, identification */
	_Atomic uint64_t *ways = cache[difference * 0x9e3779b1u >> 24];
	uint64_t asked = (uint64_t)difference << 32 | len << 16, first, second;
	int id;

	if (difference == 0)
		return 0;
	if (len < ROCI_MIN_PACKET_BYTES || len > MAX_IPV4_PAYLOAD)
		return -1;
	first = atomic_load_explicit(&ways[0], memory_order_relaxed);
	if ((first ^ asked) <= UINT16_MAX)
		return (int)(first ^ asked);
	second = atomic_load_explicit(&ways[1], memory_order_relaxed);
	if ((second ^ asked) <= UINT16_MAX)
		return (int)(second ^ asked);
	id = find_id(difference, len);
	if (id >= 0) {
		atomic_store_explicit(&ways[1], first, memory_order_relaxed);
		atomic_store_explicit(&ways[0], asked | (unsigned)id, memory_order_relaxed);
	}
	return id;
}

uint32_t roci_icrc_soft_roce_flush(uint32_t crc, const uint8_t *headers, size_t len)
{
	return roci_icrc_update(crc, headers, len);
}

/* `covered` bytes of the packet come before the ICRC, in the image of the CRC. */
static int identification(const struct roci_flow *flow, uint32_t difference, size_t covered)
{
	if (roci_gid_is_ipv4(flow->dst))
		return roci_icrc_ipv4_id(difference, covered + ROCI_ICRC_BYTES);
	return difference ? -1 : 0;
}

int roci_icrc_check(const struct roci_flow *flow, const uint8_t *bytes, size_t len)
{
	uint32_t difference = difference_of(flow, bytes, len), received, computed;
	size_t covered = len - ROCI_ICRC_BYTES;
	int id = identification(flow, difference, covered);

	if (id >= 0 || bytes[0] != (ROCI_TRANSPORT_RC | ROCI_OP_FLUSH))
		return id;
	memcpy(&received, bytes + covered, sizeof(received));
	received = le32toh(received);
	computed = roci_icrc_soft_roce_flush(received ^ difference, bytes, covered);
	return identification(flow, received ^ computed, 2 * covered);
}
