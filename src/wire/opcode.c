/* SPDX-License-Identifier: BSD-2-Clause */
/* The opcode table (IBTA 9.2.1, table 38; FLUSH and ATOMIC WRITE: IBTA vol. 1 release 1.5, annex A19). */
#include "wire/opcode.h"

#include <stddef.h>

#define BTH_BYTES 12

/* Length of each extended header, as a constant expression, so that the table computes its own header_bytes. */
#define DETH_BYTES         8
#define XRCETH_BYTES       4
#define FETH_BYTES         4
#define RETH_BYTES         16
#define ATOMICETH_BYTES    28
#define AETH_BYTES         4
#define ATOMICACKETH_BYTES 8
#define IMMDT_BYTES        4
#define IETH_BYTES         4

#define BIT(hdr)            (1u << ROCI_HDR_##hdr)
#define BYTES_IF(mask, hdr) ((mask)&BIT(hdr) ? hdr##_BYTES : 0)
#define HEADER_BYTES(mask)                                                                                             \
	(BTH_BYTES + BYTES_IF(mask, DETH) + BYTES_IF(mask, XRCETH) + BYTES_IF(mask, FETH) + BYTES_IF(mask, RETH) +     \
	 BYTES_IF(mask, ATOMICETH) + BYTES_IF(mask, AETH) + BYTES_IF(mask, ATOMICACKETH) + BYTES_IF(mask, IMMDT) +     \
	 BYTES_IF(mask, IETH))

/* Place in the message, and the two properties of a packet: flags of a table line. */
#define FIRST    1
#define LAST     2
#define ONLY     (FIRST | LAST)
#define MIDDLE   0
#define PAYLOAD  4
#define RESPONSE 8

#define LINE(opcode, text, what, flags, mask)                                                                          \
	[opcode] = {                                                                                                   \
		.name = text,                                                                                          \
		.kind = ROCI_KIND_##what,                                                                              \
		.first = ((flags)&FIRST) != 0,                                                                         \
		.last = ((flags)&LAST) != 0,                                                                           \
		.payload = ((flags)&PAYLOAD) != 0,                                                                     \
		.response = ((flags)&RESPONSE) != 0,                                                                   \
		.headers = (mask),                                                                                     \
		.header_bytes = HEADER_BYTES(mask),                                                                    \
	}
#define RC(op, text, what, flags, mask) LINE(ROCI_TRANSPORT_RC | ROCI_OP_##op, "RC " text, what, flags, mask)
#define UC(op, text, what, flags, mask) LINE(ROCI_TRANSPORT_UC | ROCI_OP_##op, "UC " text, what, flags, mask)
#define UD(op, text, what, flags, mask) LINE(ROCI_TRANSPORT_UD | ROCI_OP_##op, "UD " text, what, flags, mask)

/* What RC and UC have in common. */
#define SEND_AND_WRITE(T)                                                                                              \
	T(SEND_FIRST, "SEND First", SEND, FIRST | PAYLOAD, 0),                                                         \
		T(SEND_MIDDLE, "SEND Middle", SEND, MIDDLE | PAYLOAD, 0),                                              \
		T(SEND_LAST, "SEND Last", SEND, LAST | PAYLOAD, 0),                                                    \
		T(SEND_LAST_IMM, "SEND Last with Immediate", SEND, LAST | PAYLOAD, BIT(IMMDT)),                        \
		T(SEND_ONLY, "SEND Only", SEND, ONLY | PAYLOAD, 0),                                                    \
		T(SEND_ONLY_IMM, "SEND Only with Immediate", SEND, ONLY | PAYLOAD, BIT(IMMDT)),                        \
		T(WRITE_FIRST, "RDMA WRITE First", WRITE, FIRST | PAYLOAD, BIT(RETH)),                                 \
		T(WRITE_MIDDLE, "RDMA WRITE Middle", WRITE, MIDDLE | PAYLOAD, 0),                                      \
		T(WRITE_LAST, "RDMA WRITE Last", WRITE, LAST | PAYLOAD, 0),                                            \
		T(WRITE_LAST_IMM, "RDMA WRITE Last with Immediate", WRITE, LAST | PAYLOAD, BIT(IMMDT)),                \
		T(WRITE_ONLY, "RDMA WRITE Only", WRITE, ONLY | PAYLOAD, BIT(RETH)),                                    \
		T(WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate", WRITE, ONLY | PAYLOAD, BIT(RETH) | BIT(IMMDT))

/* clang-format off */
static const struct roci_opcode_info opcodes[256] = {
	SEND_AND_WRITE(RC),
	RC(READ_REQUEST, "RDMA READ Request", READ_REQUEST, ONLY, BIT(RETH)),
	RC(READ_RESPONSE_FIRST, "RDMA READ response First", READ_RESPONSE, FIRST | PAYLOAD | RESPONSE, BIT(AETH)),
	RC(READ_RESPONSE_MIDDLE, "RDMA READ response Middle", READ_RESPONSE, MIDDLE | PAYLOAD | RESPONSE, 0),
	RC(READ_RESPONSE_LAST, "RDMA READ response Last", READ_RESPONSE, LAST | PAYLOAD | RESPONSE, BIT(AETH)),
	RC(READ_RESPONSE_ONLY, "RDMA READ response Only", READ_RESPONSE, ONLY | PAYLOAD | RESPONSE, BIT(AETH)),
	RC(ACKNOWLEDGE, "Acknowledge", ACK, ONLY | RESPONSE, BIT(AETH)),
	RC(ATOMIC_ACKNOWLEDGE, "ATOMIC Acknowledge", ATOMIC_ACK, ONLY | RESPONSE, BIT(AETH) | BIT(ATOMICACKETH)),
	RC(COMPARE_SWAP, "CmpSwap", ATOMIC, ONLY, BIT(ATOMICETH)),
	RC(FETCH_ADD, "FetchAdd", ATOMIC, ONLY, BIT(ATOMICETH)),
	RC(SEND_LAST_INV, "SEND Last with Invalidate", SEND, LAST | PAYLOAD, BIT(IETH)),
	RC(SEND_ONLY_INV, "SEND Only with Invalidate", SEND, ONLY | PAYLOAD, BIT(IETH)),
	RC(FLUSH, "FLUSH", FLUSH, ONLY, BIT(FETH) | BIT(RETH)),
	RC(ATOMIC_WRITE, "ATOMIC WRITE", ATOMIC_WRITE, ONLY | PAYLOAD, BIT(RETH)),

	SEND_AND_WRITE(UC),

	UD(SEND_ONLY, "SEND Only", SEND, ONLY | PAYLOAD, BIT(DETH)),
	UD(SEND_ONLY_IMM, "SEND Only with Immediate", SEND, ONLY | PAYLOAD, BIT(DETH) | BIT(IMMDT)),

	/* Its 16 reserved bytes (IBTA A17.9.3) are its payload here. */
	LINE(ROCI_OPCODE_CNP, "CNP", CNP, ONLY | PAYLOAD, 0),

	LINE(ROCI_OPCODE_OFFER, "OFFER", OFFER, ONLY | PAYLOAD, 0),
	LINE(ROCI_OPCODE_RANGES, "RANGES", RANGES, ONLY | PAYLOAD, 0),
	LINE(ROCI_OPCODE_HELLO, "HELLO", HELLO, ONLY | PAYLOAD, 0),
	LINE(ROCI_OPCODE_CHALLENGE, "CHALLENGE", CHALLENGE, ONLY | PAYLOAD, 0),
	LINE(ROCI_OPCODE_MTU_PROBE, "MTU PROBE", MTU_PROBE, ONLY | PAYLOAD, 0),
	LINE(ROCI_OPCODE_PIECE, "PIECE", PIECE, ONLY | PAYLOAD, 0),
};
/* clang-format on */

const struct roci_opcode_info *roci_opcode_info(uint8_t opcode)
{
	const struct roci_opcode_info *info = &opcodes[opcode];

	return info->kind ? info : NULL;
}
