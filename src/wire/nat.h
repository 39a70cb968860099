/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two packets beyond the standard, between two Rocinantes of which one is behind a NAT (docs/ARCHITECTURE.md). Their
 * opcodes are of those that the standard leaves to manufacturers (IBTA 9.2.1): every other device drops them as packets
 * of the wrong type (IBTA 9.6.1.1.2).
 *
 * HELLO comes from the end behind the NAT. It says: these are the addresses that I see, and this cookie proves that I
 * receive what is sent to where this packet comes from. 56 bytes: version 1, zeros 7, token 8, cookie 8, its own
 * address 16, the address that it sends to 16. To QP 1 a MAD of 256 bytes follows, to other QPs nothing. Its ICRC
 * covers the addresses in it, and UDP port 4791 at both ends.
 *
 * CHALLENGE comes from the other end, and goes to where a packet came from. It says: send a HELLO with this cookie. 48
 * bytes: version 1, zeros 3, the communication or request ID that it is about 4 (to other QPs than QP 1: 0), token 8,
 * cookie 8, address 16 and UDP port 2 that the packet came from, zeros 6. It is shorter than every packet that it
 * answers.
 *
 * The token is the transaction ID of the REQ or SIDR_REQ that began: 64 random bits of the end behind the NAT, which
 * only the two ends see. It proves who sent a HELLO or a CHALLENGE. The cookie proves where the sender of a HELLO is:
 * only the other end can make it, and needs to keep nothing for that. 0 stands for none. Numbers are big-endian.
 */
#ifndef ROCI_WIRE_NAT_H
#define ROCI_WIRE_NAT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/icrc.h"

#define ROCI_HELLO_BYTES     56 /* without a MAD */
#define ROCI_HELLO_MAD_BYTES 256
#define ROCI_CHALLENGE_BYTES 48

struct roci_hello {
	uint64_t token, cookie;
	uint8_t src[16], dst[16]; /* in GID form, of one family, unicast */
	const uint8_t *mad;       /* ROCI_HELLO_MAD_BYTES; NULL: none. Points into the payload */
};

struct roci_challenge {
	uint32_t id;
	uint64_t token, cookie;
	uint8_t seen[16]; /* GID form */
	uint16_t seen_port;
};

/* Without the MAD, which the caller adds. */
void roci_hello_build(const struct roci_hello *h, uint8_t payload[ROCI_HELLO_BYTES]);
/* False: malformed, or of another version. */
bool roci_hello_parse(const uint8_t *payload, uint32_t len, struct roci_hello *h);

void roci_challenge_build(const struct roci_challenge *c, uint8_t payload[ROCI_CHALLENGE_BYTES]);
/* False: malformed, or of another version. */
bool roci_challenge_parse(const uint8_t *payload, uint32_t len, struct roci_challenge *c);

/* What one end knows about the NAT that it, or the other end, is behind. */
struct roci_nat_terms {
	uint64_t token;           /* 64 random bits that only the two ends know */
	uint64_t cookie;          /* of the peer's last CHALLENGE; 0: this end is not known to be behind a NAT */
	uint16_t port;            /* UDP port that the peer's packets come from; 0: the peer is not behind a NAT */
	uint8_t src[16], dst[16]; /* with a port: where the peer believes that its packets come from and go to */
};

/* How packets reach an end behind a NAT. */
struct roci_nat_way {
	struct roci_flow flow; /* as that end sees them: what their ICRC covers */
	uint16_t port;         /* UDP port that they are sent to */
};

/* The flow of packets from src to dst, UDP port 4791 at both ends. */
void roci_nat_flow(struct roci_flow *flow, const uint8_t src[16], const uint8_t dst[16]);

/* The key of a host's cookies. They are made by SipHash-2-4: without the key, nobody can tell them from random numbers.
 */
struct roci_nat_key {
	uint8_t bytes[16];
};

/* The cookie for `port` of `gid`. Who has it receives what is sent there; it proves that for one to two minutes of the
 * clock of `now` (ns). Never 0. */
uint64_t roci_nat_cookie(const struct roci_nat_key *key, uint64_t now, const uint8_t gid[16], uint16_t port);
bool roci_nat_cookie_is(const struct roci_nat_key *key, uint64_t now, const uint8_t gid[16], uint16_t port,
			uint64_t cookie);

#endif
