/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table of RoCEv2: IBTA vol. 1, 9.2 (BTH), table 38 (opcodes).
 *
 * An opcode is (transport << 5 | operation). One table says what an opcode is called and which extended headers follow
 * the BTH. They stand in the order of enum roci_header.
 */
#ifndef ROCI_WIRE_OPCODE_H
#define ROCI_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum roci_transport {
	ROCI_TRANSPORT_RC = 0x00,
	ROCI_TRANSPORT_UC = 0x20,
	ROCI_TRANSPORT_RD = 0x40,
	ROCI_TRANSPORT_UD = 0x60,
	ROCI_TRANSPORT_CNP = 0x80,
	ROCI_TRANSPORT_XRC = 0xa0,
	ROCI_TRANSPORT_OWN = 0xc0, /* a manufacturer's */
};

/* The low five bits of an opcode. */
enum roci_operation {
	ROCI_OP_SEND_FIRST = 0,
	ROCI_OP_SEND_MIDDLE = 1,
	ROCI_OP_SEND_LAST = 2,
	ROCI_OP_SEND_LAST_IMM = 3,
	ROCI_OP_SEND_ONLY = 4,
	ROCI_OP_SEND_ONLY_IMM = 5,
	ROCI_OP_WRITE_FIRST = 6,
	ROCI_OP_WRITE_MIDDLE = 7,
	ROCI_OP_WRITE_LAST = 8,
	ROCI_OP_WRITE_LAST_IMM = 9,
	ROCI_OP_WRITE_ONLY = 10,
	ROCI_OP_WRITE_ONLY_IMM = 11,
	ROCI_OP_READ_REQUEST = 12,
	ROCI_OP_READ_RESPONSE_FIRST = 13,
	ROCI_OP_READ_RESPONSE_MIDDLE = 14,
	ROCI_OP_READ_RESPONSE_LAST = 15,
	ROCI_OP_READ_RESPONSE_ONLY = 16,
	ROCI_OP_ACKNOWLEDGE = 17,
	ROCI_OP_ATOMIC_ACKNOWLEDGE = 18,
	ROCI_OP_COMPARE_SWAP = 19,
	ROCI_OP_FETCH_ADD = 20,
	ROCI_OP_SEND_LAST_INV = 22,
	ROCI_OP_SEND_ONLY_INV = 23,
	ROCI_OP_FLUSH = 28,
	ROCI_OP_ATOMIC_WRITE = 29,
};

#define ROCI_OPERATION_MASK   0x1f
#define ROCI_TRANSPORT_MASK   0xe0
#define ROCI_OPCODE_CNP       0x81
#define ROCI_OPCODE_OFFER     0xc1 /* between two Rocinantes only, see engine/ranges.h */
#define ROCI_OPCODE_RANGES    0xc2
#define ROCI_OPCODE_HELLO     0xc3 /* between two Rocinantes only, see wire/nat.h */
#define ROCI_OPCODE_CHALLENGE 0xc4
#define ROCI_OPCODE_MTU_PROBE 0xc5 /* between two Rocinantes only, see wire/mtu_probe.h */
#define ROCI_OPCODE_PIECE     0xc6 /* between two Rocinantes only, see wire/piece.h */

/* The extended headers, in the order in which they can stand after the BTH. */
enum roci_header {
	ROCI_HDR_DETH,
	ROCI_HDR_XRCETH,
	ROCI_HDR_FETH,
	ROCI_HDR_RETH,
	ROCI_HDR_ATOMICETH,
	ROCI_HDR_AETH,
	ROCI_HDR_ATOMICACKETH,
	ROCI_HDR_IMMDT,
	ROCI_HDR_IETH,
	ROCI_HDR_COUNT
};

/* What a packet is, without regard to its place in the message. */
enum roci_kind {
	ROCI_KIND_SEND = 1,
	ROCI_KIND_WRITE,
	ROCI_KIND_READ_REQUEST,
	ROCI_KIND_READ_RESPONSE,
	ROCI_KIND_ACK,
	ROCI_KIND_ATOMIC_ACK,
	ROCI_KIND_ATOMIC, /* COMPARE_SWAP, FETCH_ADD */
	ROCI_KIND_ATOMIC_WRITE,
	ROCI_KIND_FLUSH,
	ROCI_KIND_CNP, /* this and what follows: see roci_kind_is_notice() */
	ROCI_KIND_OFFER,
	ROCI_KIND_RANGES,
	ROCI_KIND_HELLO,
	ROCI_KIND_CHALLENGE,
	ROCI_KIND_MTU_PROBE,
	ROCI_KIND_PIECE,
};

/* Packets about a connection that have no place in the order of its requests or responses. */
static inline bool roci_kind_is_notice(uint8_t kind)
{
	return kind >= ROCI_KIND_CNP;
}

struct roci_opcode_info {
	const char *name;     /* "RC RDMA WRITE First", as Wireshark writes it */
	uint8_t kind;         /* enum roci_kind; 0: opcode is not defined */
	bool first, last;     /* place in the message; both: Only; none: Middle */
	bool payload;         /* may carry payload */
	bool response;        /* flows from responder to requester */
	uint16_t headers;     /* bit per enum roci_header */
	uint8_t header_bytes; /* BTH and extended headers together */
};

/* Returns the table entry of `opcode` (0..255), or NULL where the opcode is reserved or not carried by RoCEv2 here
 * (RD and XRC). The entry is static. */
const struct roci_opcode_info *roci_opcode_info(uint8_t opcode);

#endif
