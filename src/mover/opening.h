/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the first OFFER is to be. The engine learns from the first ten packets of a path what the next round trip
 * may have (engine/first_window.h). Without padding those are the first of the content. The OFFER goes a round trip
 * earlier, and is mostly one packet: where the peer is far away and content follows, padding makes a train of it. Pure.
 */
#ifndef ROCI_MOVER_OPENING_H
#define ROCI_MOVER_OPENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPENING_BYTES 11000               /* in packets of 1,024, with HELLO and TERMS: no more than go at once */
#define OPENING_FAR   UINT64_C(5000000)   /* ns: a shorter round trip is soon over */
#define OPENING_LEAST (UINT64_C(1) << 18) /* bytes of content: fewer go in the second round trip anyway */

/* Bytes to which the OFFER is padded; 0: it stays as it is. `round_trip_ns`: to the peer, 0: not known. `content`:
 * bytes that the sender is to send. `roci`: the device is ours. */
static inline size_t opening_bytes(uint64_t round_trip_ns, uint64_t content, bool roci)
{
	return roci && round_trip_ns >= OPENING_FAR && content >= OPENING_LEAST ? OPENING_BYTES : 0;
}

#endif
