/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A RoCEv2 transport packet as a struct, and its way to and from bytes (IBTA 9.2-9.6).
 *
 * "The bytes" are always the UDP payload: BTH, extended headers, payload, pad, ICRC. Bytes are validated here once;
 * the lengths in a struct roci_packet from roci_packet_parse() can be trusted.
 */
#ifndef ROCI_WIRE_PACKET_H
#define ROCI_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/opcode.h"

#define ROCI_UDP_PORT         4791
#define ROCI_BTH_BYTES        12
#define ROCI_ICRC_BYTES       4
#define ROCI_MAX_HEADER_BYTES 64 /* room for a BTH and any extended headers; the largest today is 40 */
#define ROCI_MIN_PACKET_BYTES (ROCI_BTH_BYTES + ROCI_ICRC_BYTES)
#define ROCI_PSN_MASK         0xffffffu
#define ROCI_QPN_MASK         0xffffffu
#define ROCI_QPN_MULTICAST    0xffffffu
#define ROCI_PKEY_DEFAULT     0xffff

/* AETH syndrome (IBTA 9.7.5.1.1, tables 44-46). */
#define ROCI_AETH_ACK               0x00
#define ROCI_AETH_RNR_NAK           0x20
#define ROCI_AETH_NAK               0x60
#define ROCI_AETH_TYPE_MASK         0xe0
#define ROCI_AETH_VALUE_MASK        0x1f
#define ROCI_AETH_UNLIMITED_CREDITS 31

/* Credits are coded (IBTA table 45): 0 to 3 for themselves, then each second code stands for twice as many. */
static inline uint32_t roci_aeth_credits(uint8_t code)
{
	return code < 2 ? code : (2u + code % 2) << (code / 2 - 1);
}
/* The code of as many credits as there are codes for, `credits` at most. */
static inline uint8_t roci_aeth_credit_code(uint32_t credits)
{
	uint8_t code = ROCI_AETH_UNLIMITED_CREDITS - 1;

	while (roci_aeth_credits(code) > credits)
		code--;
	return code;
}

/* FETH (IBTA A19): placement type and selectivity level; all other bits are reserved. */
#define ROCI_FETH_GLOBAL         0x01 /* until all readers at the responder see the data */
#define ROCI_FETH_PERSISTENT     0x02 /* until the data survive a loss of power */
#define ROCI_FETH_PLACEMENT_MASK 0x0f
#define ROCI_FETH_RANGE          0x00 /* what RETH names */
#define ROCI_FETH_MR             0x10 /* the whole region of its rkey */
#define ROCI_FETH_LEVEL_MASK     0x30

enum roci_nak_code {
	ROCI_NAK_PSN_SEQUENCE = 0,
	ROCI_NAK_INVALID_REQUEST = 1,
	ROCI_NAK_REMOTE_ACCESS = 2,
	ROCI_NAK_REMOTE_OPERATION = 3,
	ROCI_NAK_INVALID_RD_REQUEST = 4,
};

/* All fields are in host byte order, except imm, which is opaque and in network byte order. Only the fields of the
 * opcode's headers are meaningful. */
struct roci_packet {
	const struct roci_opcode_info *op; /* never NULL in a parsed packet */
	uint8_t opcode;
	bool solicited, mig_req, ack_req, fecn, becn;
	uint16_t pkey;
	uint32_t dest_qpn; /* 24 bits */
	uint32_t psn;      /* 24 bits */

	uint32_t qkey, src_qpn;     /* DETH */
	uint64_t va;                /* RETH, AtomicETH */
	uint32_t rkey;              /* RETH, AtomicETH; IETH: see inv_rkey */
	uint32_t dma_len;           /* RETH, bytes */
	uint64_t swap_add, compare; /* AtomicETH */
	uint8_t syndrome;           /* AETH */
	uint32_t msn;               /* AETH, 24 bits */
	uint64_t atomic_orig;       /* AtomicAckETH */
	uint32_t imm;               /* ImmDt, network byte order */
	uint32_t inv_rkey;          /* IETH */
	uint32_t feth;              /* FETH: ROCI_FETH_* */

	const uint8_t *payload; /* points into the parsed bytes; not owned */
	uint32_t payload_len;   /* bytes, without pad */
	const struct roci_far
		*far; /* not NULL: the payload is still in the sender's memory (engine.h), and not at `payload` */
};

/* Why bytes were not a packet; the index of a counter. */
enum roci_parse_result {
	ROCI_PARSE_OK,
	ROCI_PARSE_TOO_SHORT,  /* no room for BTH, extended headers, pad and ICRC */
	ROCI_PARSE_BAD_TVER,   /* transport header version is not 0 */
	ROCI_PARSE_BAD_OPCODE, /* reserved, or a transport that is not supported */
	ROCI_PARSE_BAD_LENGTH, /* payload where the opcode has none, or not a multiple of 4 with its pad */
	ROCI_PARSE_BAD_ICRC,   /* set by the receiver, see icrc.h */
	ROCI_PARSE_RESULTS
};

/* Fills *pkt from the `len` bytes at `bytes` (UDP payload, ICRC included; the ICRC is not checked here).
 * pkt->payload points into `bytes`. */
enum roci_parse_result roci_packet_parse(struct roci_packet *pkt, const uint8_t *bytes, size_t len);

/* Likewise from the headers alone (roci_packet_build()), for links that carry payload beside them. pkt->payload is
 * NULL. */
enum roci_parse_result roci_packet_parse_headers(struct roci_packet *pkt, const uint8_t *bytes, size_t len,
						 uint32_t payload_len);

/* Likewise of a SEND of one packet without immediate data, by RC and with the right P_Key: fills in what the BTH says.
 * False where it is anything else. */
bool roci_packet_parse_send(struct roci_packet *pkt, const uint8_t *bytes, size_t len);

/* Writes BTH and extended headers of *pkt (pkt->opcode decides which; pkt->op is not read) to `buf`, which has room for
 * ROCI_MAX_HEADER_BYTES. PadCnt is derived from pkt->payload_len. Returns the bytes written. The opcode must be
 * defined. */
unsigned roci_packet_build(const struct roci_packet *pkt, uint8_t *buf);

/* Bytes of zero that follow `payload_len` bytes of payload, 0..3. */
static inline unsigned roci_pad_bytes(uint32_t payload_len)
{
	return -payload_len & 3;
}

/* There is one partition, 0xffff, whose limited members match too (IBTA 10.9.3). */
static inline bool roci_pkey_matches(uint16_t pkey)
{
	return (pkey | 0x8000) == ROCI_PKEY_DEFAULT;
}

#endif
