/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a train of packets tells about the narrowest line on their way. Packets that leave faster than that line carries
 * them arrive as far apart as it makes them, and so do their acknowledgements: a part of a round trip is enough to know
 * a rate (packet-train dispersion). It is never more than the rate at which the train was sent.
 *
 * On the way back, acknowledgements may wait and come in a heap. So a train needs many of them and some time, and two
 * trains in a row tell no more than the slower one. A train ends where the sender paused.
 */
#ifndef ROCI_ENGINE_TRAIN_H
#define ROCI_ENGINE_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_TRAIN_ACKS     8                 /* at least */
#define ROCI_TRAIN_LEAST_NS UINT64_C(1000000) /* likewise how long it takes, */
#define ROCI_TRAIN_PART     32                /* and in parts of the round trip */
#define ROCI_TRAIN_SLOWER   8                 /* acknowledged slower than sent, by one of so many parts */
#define ROCI_TRAIN_PAUSE    16                /* the sender paused for one of so many parts of the round trip */

struct roci_train {
	uint64_t sent_at, acked_at; /* ns: of its first packet */
	uint64_t newest;            /* ns: when the newest packet was sent */
	uint64_t bytes;             /* acknowledged since its first */
	uint64_t before;            /* bytes per second, of the train that ended when this began; 0: none did */
	unsigned acks;
	bool begun;
	bool reached; /* the last train that ended came slower than it was sent: the line limits it */
};

/* Nothing is known about when the packets were sent that are acknowledged now. */
static inline void roci_train_stop(struct roci_train *t)
{
	*t = (struct roci_train){0};
}
/* `bytes` are acknowledged; the newest packet among them was sent at `sent_at`. A round trip takes `rtt_ns`. Returns
 * bytes per second that the path carries at least; 0: not known. */
static inline uint64_t roci_train_acked(struct roci_train *t, uint64_t now, uint64_t bytes, uint64_t sent_at,
					uint64_t rtt_ns)
{
	uint64_t least = rtt_ns / ROCI_TRAIN_PART, sending, took, rate, known = 0;
	bool slower;

	if (!t->begun || sent_at < t->newest || sent_at - t->newest > rtt_ns / ROCI_TRAIN_PAUSE) {
		*t = (struct roci_train){.sent_at = sent_at, .acked_at = now, .newest = sent_at, .begun = true};
		return 0;
	}
	t->newest = sent_at;
	t->bytes += bytes;
	t->acks++;
	sending = sent_at - t->sent_at;
	took = now - t->acked_at > sending ? now - t->acked_at : sending;
	if (t->acks < ROCI_TRAIN_ACKS || took < ROCI_TRAIN_LEAST_NS || took < least)
		return 0;
	rate = t->bytes * 1000000 / (took / 1000);
	slower = took - sending > took / ROCI_TRAIN_SLOWER;
	if (t->before)
		known = rate < t->before ? rate : t->before;
	*t = (struct roci_train){.sent_at = sent_at,
				 .acked_at = now,
				 .newest = sent_at,
				 .before = rate,
				 .begun = true,
				 .reached = slower};
	return known;
}

#endif
