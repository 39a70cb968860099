/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet beyond the standard, between two Rocinantes. With it the end that connects finds out how long packets may be
 * on its path (RFC 8899), before its REQ says which path MTU the connection has. Its opcode is one of those that the
 * standard leaves to manufacturers (IBTA 9.2.1): every other device drops it as a packet of the wrong type (IBTA
 * 9.6.1.1.2).
 *
 * MTU PROBE goes to QP 1. It has the payload of a HELLO with the REQ's MAD (wire/nat.h), and then zeros, so that it is
 * as long as the longest packet of a connection with that path MTU. There is one for each path MTU from that of the REQ
 * down to 512, and one without zeros, which arrives wherever the REQ does. The REQ comes behind them. If the path MTU
 * of the REQ is larger than that of the longest probe that came, the listener answers with REJ 26 (invalid path MTU,
 * IBTA 12.6.7.2). Its additional information is the code of that probe, and the REQ is sent again with that code.
 */
#ifndef ROCI_WIRE_MTU_PROBE_H
#define ROCI_WIRE_MTU_PROBE_H

#include "wire/mtu.h"
#include "wire/nat.h"

#define ROCI_MTU_PROBE_HEADER_BYTES 20 /* RETH and immediate data: see roci_mtu_datagram_bytes() */
#define ROCI_MTU_PROBE_LEAST_BYTES  (ROCI_HELLO_BYTES + ROCI_HELLO_MAD_BYTES)
#define ROCI_MTU_PROBE_MOST_BYTES   (4096 + ROCI_MTU_PROBE_HEADER_BYTES)

/* Bytes of payload of the probe for this code. */
static inline uint32_t roci_mtu_probe_bytes(unsigned code)
{
	uint32_t bytes = roci_mtu_bytes(code) + ROCI_MTU_PROBE_HEADER_BYTES;

	return bytes > ROCI_MTU_PROBE_LEAST_BYTES ? bytes : ROCI_MTU_PROBE_LEAST_BYTES;
}

/* The code that a probe with so much payload is for. */
static inline uint8_t roci_mtu_probed(uint32_t payload_len)
{
	return roci_mtu_code(payload_len > ROCI_MTU_PROBE_HEADER_BYTES ? payload_len - ROCI_MTU_PROBE_HEADER_BYTES : 0);
}

/* Reads the HELLO at its beginning, with its MAD. False: malformed, or of another version. */
static inline bool roci_mtu_probe_parse(const uint8_t *payload, uint32_t len, struct roci_hello *hello)
{
	return len >= ROCI_MTU_PROBE_LEAST_BYTES && len <= ROCI_MTU_PROBE_MOST_BYTES &&
	       roci_hello_parse(payload, ROCI_MTU_PROBE_LEAST_BYTES, hello);
}

#endif
