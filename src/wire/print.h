/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints packets, one line each. For tests and traces. */
#ifndef ROCI_WIRE_PRINT_H
#define ROCI_WIRE_PRINT_H

#include <stddef.h>

#include "wire/packet.h"

/* Writes one line without newline to buf, always terminated, truncated at `size`: opcode name, QPN, PSN, then the
 * fields of each extended header and the payload length. Returns what snprintf would. */
int roci_packet_print(const struct roci_packet *pkt, char *buf, size_t size);

/* "ACK", "RNR NAK 0.64 ms", "NAK remote access error" ...; never NULL, static. */
const char *roci_syndrome_str(uint8_t syndrome);

#endif
