/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two packets beyond the standard, between two Rocinantes whose path is far. Their opcodes are of those that the
 * standard leaves to manufacturers (IBTA 9.2.1): every other device drops them as packets of the wrong type (IBTA
 * 9.6.1.1.2), and the two ends follow the standard. They need no connection manager to agree.
 *
 * OFFER, from a requester, says: I understand RANGES, and this is a secret of mine. 16 bytes: version 1, the first PSN
 * of its requests 3, flags 1, zeros 3, the secret 8; zeros may follow. Its PSN is the last one that was acknowledged.
 * Together with the UDP port these prove that the peer sent it.
 *
 * An OFFER with zeros behind it is a probe for longer packets (plpmtu.h). It has ROCI_OFFER_ASKS, too.
 *
 * An OFFER with ROCI_OFFER_ASKS asks whether the peer is a Rocinante, and offers nothing. It gets one RANGES, with
 * ROCI_RANGES_ASKED, and changes nothing else.
 *
 * RANGES, from a responder that got an OFFER, says what has arrived. 20 bytes and more: version 1, flags 1, duplicates
 * that have come so far 2, the secret 8, how many packets beyond its PSN it can keep 4, how many READ requests may be
 * outstanding 2 (far_read.h; 0: as many as max_rd_atomic says), payload bytes of a SEND's or WRITE's packets that the
 * longest OFFER was a probe for 2 (0: no probe has come); then segments: the PSN of the first packet (3,
 * a multiple of 32), count of words 1, and words of 32 bits, whose lowest bit is the first packet.
 * Its PSN is the last one that was executed, as in an acknowledgement. A set bit says that the packet is kept. A
 * responder may drop what it has kept, so only the PSN completes requests.
 *
 * The secret is 64 random bits that only the two ends see. It proves a RANGES packet, whatever PSN it names. All
 * numbers are big-endian.
 */
#ifndef ROCI_ENGINE_RANGES_H
#define ROCI_ENGINE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_OFFER_BYTES      16
#define ROCI_OFFER_WINDOW     8192 /* an OFFER names one of the last so many PSNs */
#define ROCI_RANGES_HEAD      20
#define ROCI_RANGES_SEGMENTS  4
#define ROCI_RANGES_WORDS     32 /* of a segment: 1,024 packets */
#define ROCI_RANGES_MAX_BYTES (ROCI_RANGES_HEAD + ROCI_RANGES_SEGMENTS * (4 + 4 * ROCI_RANGES_WORDS))

#define ROCI_OFFER_READS 1 /* flag: the requester READs, see far_read.h */
#define ROCI_OFFER_ASKS  2 /* flag: it only asks, see black_hole.h */

#define ROCI_RANGES_ANSWERS 1 /* flag: a duplicate has come since the last one, which may have been a probe */
#define ROCI_RANGES_ASKED   2 /* flag: the peer only asked */

struct roci_ranges_segment {
	uint32_t begin; /* PSN, a multiple of 32 */
	unsigned count; /* words; 0: there is no such segment */
	uint32_t words[ROCI_RANGES_WORDS];
};

struct roci_ranges {
	uint8_t flags;
	uint16_t duplicates;
	uint64_t secret;
	uint32_t room;
	uint16_t reads;
	uint16_t longest; /* payload bytes; 0: no probe has come */
	struct roci_ranges_segment segments[ROCI_RANGES_SEGMENTS];
};

struct roci_offer {
	uint32_t first_psn;
	uint8_t flags;
	uint64_t secret;
	uint16_t probes_for; /* payload bytes of longer packets; 0: it is no probe. Not built: the zeros are added */
};

void roci_offer_build(const struct roci_offer *o, uint8_t payload[ROCI_OFFER_BYTES]);
/* False where it is of another version, or malformed. */
bool roci_offer_parse(const uint8_t *payload, uint32_t len, struct roci_offer *o);
/* Returns the length. */
uint32_t roci_ranges_build(const struct roci_ranges *r, uint8_t payload[ROCI_RANGES_MAX_BYTES]);
/* The secret of a payload of at least ROCI_RANGES_HEAD bytes. */
uint64_t roci_ranges_secret(const uint8_t *payload);
/* False where it is of another version, or malformed. */
bool roci_ranges_parse(const uint8_t *payload, uint32_t len, struct roci_ranges *r);

#endif
