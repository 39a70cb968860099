/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes capture files and RoCEv2 packets in memory, for tests. */
#ifndef ROCI_TESTS_CAPTURE_FILE_H
#define ROCI_TESTS_CAPTURE_FILE_H

#include <stdio.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/packet.h"

#define FILE_ETHERNET 1
#define FILE_RAW      101

#define FILE_SECTION   0x0a0d0d0au
#define FILE_INTERFACE 1
#define FILE_OLD       2
#define FILE_SIMPLE    3
#define FILE_STATS     5
#define FILE_ENHANCED  6
#define FILE_CUSTOM    0xbadu

struct capture_file {
	bool swapped; /* the other byte order than this machine's */
	size_t len;
	uint8_t bytes[1 << 20];
};

static inline void file_bytes(struct capture_file *f, const void *bytes, size_t len)
{
	if (len)
		memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
}

static inline void file_16(struct capture_file *f, uint16_t value)
{
	value = f->swapped ? __builtin_bswap16(value) : value;
	file_bytes(f, &value, sizeof(value));
}

static inline void file_32(struct capture_file *f, uint32_t value)
{
	value = f->swapped ? __builtin_bswap32(value) : value;
	file_bytes(f, &value, sizeof(value));
}

static inline void file_pad(struct capture_file *f)
{
	while (f->len % 4)
		f->bytes[f->len++] = 0;
}

/* ---- pcap ---- */

static inline void file_pcap(struct capture_file *f, uint32_t magic, uint32_t link_type)
{
	file_32(f, magic);
	file_16(f, 2);
	file_16(f, 4);
	for (unsigned i = 0; i < 2; i++)
		file_32(f, 0);
	file_32(f, 65535);
	file_32(f, link_type);
}

static inline void file_pcap_packet(struct capture_file *f, uint32_t s, uint32_t part, const void *bytes, uint32_t len,
				    uint32_t original)
{
	file_32(f, s);
	file_32(f, part);
	file_32(f, len);
	file_32(f, original);
	file_bytes(f, bytes, len);
}

/* ---- pcapng ---- */

/* Between begin and end stands the body of a block. Returns where it begins, for end. */
static inline size_t file_begin(struct capture_file *f, uint32_t type)
{
	size_t at = f->len;

	file_32(f, type);
	file_32(f, 0);
	return at;
}

static inline void file_end(struct capture_file *f, size_t at)
{
	size_t end;

	file_pad(f);
	end = f->len + 4;
	f->len = at + 4;
	file_32(f, (uint32_t)(end - at));
	f->len = end - 4;
	file_32(f, (uint32_t)(end - at));
}

static inline void file_option(struct capture_file *f, uint16_t code, const void *bytes, uint16_t len)
{
	file_16(f, code);
	file_16(f, len);
	file_bytes(f, bytes, len);
	file_pad(f);
}

static inline void file_section(struct capture_file *f)
{
	size_t at = file_begin(f, FILE_SECTION);

	file_32(f, 0x1a2b3c4d);
	file_16(f, 1);
	file_16(f, 0);
	file_32(f, 0xffffffff);
	file_32(f, 0xffffffff);
	file_end(f, at);
}

static inline void file_interface(struct capture_file *f, uint16_t link_type, uint8_t resolution)
{
	size_t at = file_begin(f, FILE_INTERFACE);

	file_16(f, link_type);
	file_16(f, 0);
	file_32(f, 0);
	file_option(f, 9, &resolution, 1);
	file_end(f, at);
}

/* An enhanced packet block; `direction` as in epb_flags, 0: no flags. */
static inline void file_packet(struct capture_file *f, uint64_t units, unsigned direction, const void *bytes,
			       uint32_t len)
{
	size_t at = file_begin(f, FILE_ENHANCED);
	uint32_t flags = f->swapped ? __builtin_bswap32(direction) : direction;

	file_32(f, 0);
	file_32(f, (uint32_t)(units >> 32));
	file_32(f, (uint32_t)units);
	file_32(f, len);
	file_32(f, len);
	file_bytes(f, bytes, len);
	file_pad(f);
	if (direction)
		file_option(f, 2, &flags, 4);
	file_end(f, at);
}

/* ---- packets ---- */

/* Writes a raw IP packet to `to`: from 10.0.0.`src` to 10.0.0.`dst`. Returns its length. */
static inline uint32_t make_roce(uint8_t *to, unsigned src, unsigned dst, const struct roci_packet *pkt)
{
	struct roci_flow flow = {.src_port = 50000, .dst_port = ROCI_UDP_PORT};
	uint8_t *udp, *bytes;
	unsigned headers, pad = roci_pad_bytes(pkt->payload_len);
	uint32_t len, crc;

	roci_gid_from_ipv4(flow.src, (uint8_t[]){10, 0, 0, (uint8_t)src});
	roci_gid_from_ipv4(flow.dst, (uint8_t[]){10, 0, 0, (uint8_t)dst});
	udp = to + ROCI_IPV4_BYTES;
	bytes = udp + ROCI_UDP_BYTES;
	headers = roci_packet_build(pkt, bytes);
	memset(bytes + headers, 0, pkt->payload_len + pad);
	if (pkt->payload)
		memcpy(bytes + headers, pkt->payload, pkt->payload_len);
	len = headers + pkt->payload_len + pad + ROCI_ICRC_BYTES;
	const struct roci_ip ip = {.src = flow.src,
				   .dst = flow.dst,
				   .hop_limit = 64,
				   .id = 7,
				   .udp_len = (uint16_t)(len + ROCI_UDP_BYTES)};
	roci_ip_build(&ip, to);
	roci_ipv4_put_checksum(to);
	roci_put_be16(udp, flow.src_port);
	roci_put_be16(udp + 2, flow.dst_port);
	roci_put_be16(udp + 4, (uint16_t)(len + ROCI_UDP_BYTES));
	roci_put_be16(udp + 6, 0);
	crc = roci_icrc_begin(&flow, 7, len);
	crc = roci_icrc_headers(crc, bytes, headers);
	crc = roci_icrc_update(crc, bytes + headers, pkt->payload_len + pad);
	roci_icrc_store(crc, bytes + headers + pkt->payload_len + pad);
	return ROCI_IPV4_BYTES + ROCI_UDP_BYTES + len;
}

#endif
