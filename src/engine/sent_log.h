/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the packets of a send queue were sent, and what the path was like then. Packets that left together share an
 * entry, so a queue costs one for each of its turns. The entries are in the order of PSNs, which is that of time: what
 * is sent again one by one has no entry here.
 */
#ifndef ROCI_ENGINE_SENT_LOG_H
#define ROCI_ENGINE_SENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* The state of a path when a packet is sent (draft-ietf-ccwg-bbr-02 4.1.2.2). */
struct roci_sent_state {
	uint64_t sent_at;       /* ns */
	uint64_t delivered;     /* bytes acknowledged on the path so far */
	uint64_t delivered_at;  /* when the last of them were */
	uint64_t first_sent_at; /* when the packet was sent that was acknowledged then */
	uint64_t flight, lost;  /* bytes in flight, this packet included; bytes lost on the path so far */
	bool app_limited;
};

struct roci_sent {
	uint32_t begin, end; /* its first PSN, 1 beyond its last */
	bool again;          /* some of it was sent before: its acknowledgement may be about that */
	struct roci_sent_state state;
};

struct roci_sent_log {
	struct roci_sent *ring; /* owned, mask + 1 entries; NULL at first */
	uint32_t mask, head, tail;
};

/* The packets `begin` to `end` - 1 are sent. Where memory is short, they become part of the entry before. */
void roci_sent_log_add(struct roci_sent_log *log, uint32_t begin, uint32_t end, bool again,
		       const struct roci_sent_state *state);
/* The entry of the packet `psn`, or NULL. */
const struct roci_sent *roci_sent_log_find(const struct roci_sent_log *log, uint32_t psn);
/* Where the packet `psn` was among those of *sent, of ROCI_PLACES (burst.h). The middle, where they are few, and
 * where *sent is NULL. */
uint32_t roci_sent_place(const struct roci_sent *sent, uint32_t psn);
/* The packet `psn`, if it has an entry, was sent a second time: the acknowledgement may be about that. */
void roci_sent_log_again(struct roci_sent_log *log, uint32_t psn);
/* Everything before `una` is done. */
void roci_sent_log_advance(struct roci_sent_log *log, uint32_t una);
/* Everything from `psn` on will be sent again. */
void roci_sent_log_rewind(struct roci_sent_log *log, uint32_t psn);
void roci_sent_log_fini(struct roci_sent_log *log);

#endif
