/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections that carry iWARP are known by their first messages (RFC 5044 s.7.1: "MPA ID Req Frame"). And ICMP
 * errors that are about RoCE.
 */
#ifndef CAPTURE_IWARP_H
#define CAPTURE_IWARP_H

#include "capture/frame.h"

#define CAPTURE_IWARP_CONNECTIONS 256

struct capture_iwarp {
	uint64_t connections[CAPTURE_IWARP_CONNECTIONS]; /* hashes of addresses and ports; 0: none */
};

/* Whether a TCP segment belongs to a connection that carries iWARP. */
bool capture_is_iwarp(struct capture_iwarp *iwarp, const struct capture_frame *frame);

/* What the segment begins with: "MPA request", "RDMA WRITE", or "TCP" where that is not told. Static. */
const char *capture_iwarp_name(const struct capture_frame *frame);

/* Whether an ICMP message of IPv4 or IPv6 is an error that quotes a RoCEv2 packet. */
bool capture_icmp_is_about_roce(const struct capture_frame *frame);

#endif
