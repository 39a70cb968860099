/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/iwarp.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/ip.h"
#include "wire/packet.h"

#define MPA_KEY_BYTES 16
#define MPA_REQUEST   "MPA ID Req Frame"
#define MPA_REPLY     "MPA ID Rep Frame"

/* The same for both directions; never 0. */
static uint64_t connection_of(const struct capture_frame *f)
{
	uint64_t ends[2] = {14695981039346656037u, 14695981039346656037u};

	for (unsigned i = 0; i < 16; i++) {
		ends[0] = (ends[0] ^ f->flow.src[i]) * 1099511628211u;
		ends[1] = (ends[1] ^ f->flow.dst[i]) * 1099511628211u;
	}
	ends[0] = (ends[0] ^ f->flow.src_port) * 1099511628211u;
	ends[1] = (ends[1] ^ f->flow.dst_port) * 1099511628211u;
	return (ends[0] + ends[1]) | 1;
}

static bool begins(const struct capture_frame *f, const char *key)
{
	return f->len >= MPA_KEY_BYTES && !memcmp(f->bytes, key, MPA_KEY_BYTES);
}

bool capture_is_iwarp(struct capture_iwarp *iwarp, const struct capture_frame *f)
{
	uint64_t connection = connection_of(f);
	uint64_t *place = &iwarp->connections[(connection >> 32) % CAPTURE_IWARP_CONNECTIONS];

	if (begins(f, MPA_REQUEST) || begins(f, MPA_REPLY))
		*place = connection;
	return *place == connection;
}

/* RFC 5040 s.4.4: the opcode in the RDMAP control field, which follows the length (MPA) and the DDP control field. */
const char *capture_iwarp_name(const struct capture_frame *f)
{
	static const char *const opcodes[16] = {"RDMA WRITE",
						"RDMA READ request",
						"RDMA READ response",
						"SEND",
						"SEND with invalidate",
						"SEND with solicited event",
						"SEND with solicited event and invalidate",
						"terminate",
						"immediate data",
						"immediate data with solicited event",
						"atomic request",
						"atomic response"};

	if (begins(f, MPA_REQUEST))
		return "MPA request";
	if (begins(f, MPA_REPLY))
		return "MPA reply";
	/* Version 1 of DDP and RDMAP: a segment in the middle of a message has neither. */
	if (f->len < 4 || (f->bytes[2] & 0x3f) != 1 || f->bytes[3] >> 6 != 1 || !opcodes[f->bytes[3] & 0xf])
		return "TCP";
	return opcodes[f->bytes[3] & 0xf];
}

/* The quoted packet begins behind 8 bytes. RFC 792, RFC 4443. */
bool capture_icmp_is_about_roce(const struct capture_frame *f)
{
	const uint8_t *quoted = f->bytes + 8;
	uint32_t ip_bytes;

	if (f->len < 8 + ROCI_IPV4_BYTES)
		return false;
	if (f->version == 4) {
		ip_bytes = (quoted[0] & 0xfu) * 4;
		if (f->bytes[0] != 3 && f->bytes[0] != 11) /* unreachable, time exceeded */
			return false;
		if (quoted[9] != ROCI_IP_PROTO_UDP)
			return false;
	} else {
		ip_bytes = ROCI_IPV6_BYTES;
		if (f->bytes[0] >= 128 || f->len < 8 + ip_bytes || quoted[6] != ROCI_IP_PROTO_UDP)
			return false;
	}
	return f->len >= 8 + ip_bytes + 4 && roci_get_be16(quoted + ip_bytes + 2) == ROCI_UDP_PORT;
}
