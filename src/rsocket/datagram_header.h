/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of datagram rsockets, as librdmacm writes them: one before messages over UDP, which names the sender's
 * QPN, and one before messages over UD, which names the sender's address and port.
 */
#ifndef ROCI_RSOCKET_DATAGRAM_HEADER_H
#define ROCI_RSOCKET_DATAGRAM_HEADER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum rs_udp_op { RS_UDP_DATA = 0, RS_UDP_CTRL = 7 };

struct rs_udp_header {
	__be32 tag;
	uint8_t version, op, length, reserved; /* version: of IP; length: of this header */
	__be32 qpn;                            /* in the upper 24 bits */
	uint8_t addr[16];                      /* IPv4: 4 bytes */
};

struct rs_ud_header {
	uint8_t version, length;
	__be16 port;
	uint8_t addr[20]; /* IPv4: 4 bytes; IPv6: flow info, address */
};

/* The header of messages from `local`, with `port` in host order. */
void rs_ud_header_build(struct rs_ud_header *h, const struct sockaddr *local, uint16_t port);
/* False: no header. Otherwise writes the sender's address, and the length of the header. */
bool rs_ud_header_parse(const uint8_t *bytes, size_t len, struct sockaddr_storage *from, size_t *header_len);

/* `own`: the UD header of the same sender. */
void rs_udp_header_build(struct rs_udp_header *h, const struct rs_ud_header *own, enum rs_udp_op op, uint32_t qpn);
/* Copies the header, whose `length` is at most `len`. False: no header. */
bool rs_udp_header_parse(const uint8_t *bytes, size_t len, struct rs_udp_header *h);
uint32_t rs_udp_header_qpn(const struct rs_udp_header *h);

#endif
