/* SPDX-License-Identifier: BSD-2-Clause */
/* The terms of a transfer: what a sender proposes, and how a receiver limits it. Pure. */
#ifndef ROCI_MOVER_TERMS_H
#define ROCI_MOVER_TERMS_H

#include "mover/proto.h"

/* As many windows as `memory_bytes` allows, of chunks small enough that at least two fit. `max_entries` is how many
 * entries this side can have under way; `entries` and `bytes` are those of the whole transfer. `round_trip_ns`: to the
 * receiver; 0: not known. A far receiver gets as many windows as the path may hold, where memory allows.
 *
 * `roci`: the device is Rocinante's own. There QPs between two hosts share one thread, one model of the path and its
 * window: two are no faster than one, and windows that fill at the same time arrive out of order, all late. They are
 * acted upon in order. */
struct proto_terms terms_propose(const struct mover_send_options *options, uint16_t max_entries, uint64_t entries,
				 uint64_t bytes, uint64_t round_trip_ns, bool roci);

/* Reduces proposed terms to what this side allows. Sets max_entries and session. */
void terms_limit(struct proto_terms *terms, const struct mover_common *common, uint16_t max_entries, uint64_t session);

/* Whether an answer asks for no more than was proposed, and changes nothing else. */
bool terms_acceptable(const struct proto_terms *proposed, const struct proto_terms *answer);

#endif
