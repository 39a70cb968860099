/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the model of a path begins: STARTUP, in which the rate doubles each round trip until the path is full. Here we
 * differ from the draft (bbr.h). STARTUP goes ahead of the rate of a whole round trip, to what trains of packets have
 * shown (train.h). And loss does not end it while the rate still grows, unless it is heavy.
 *
 * These functions belong to bbr.c, which keeps the model and says when they count. They know nothing of the other
 * states.
 */
#ifndef ROCI_ENGINE_BBR_START_H
#define ROCI_ENGINE_BBR_START_H

#include "engine/bbr.h"

#define ROCI_BBR_START_GAIN        277 /* percent: 4 ln 2 */
#define ROCI_BBR_START_SHOWN_GAIN  (3 * ROCI_BBR_START_GAIN)
#define ROCI_BBR_START_SHOWN       16 /* first windows in a round trip: far more than the first pace asks for */
#define ROCI_BBR_START_WINDOW_GAIN 200
#define ROCI_BBR_START_GROWTH      125 /* percent of the rate: less is no growth, and after three such rounds it is full */
#define ROCI_BBR_START_LOSSES      6 /* packets of a round: fewer are no sign of anything */

/* The first pace, in percent of `window` in a round trip. A train shows no more than the rate at which it was sent, so
 * where the first packets have shown far more than the window (`shown`, 0: nobody knows), it goes faster. */
static inline unsigned roci_bbr_start_gain(uint64_t window, uint64_t shown)
{
	return shown / ROCI_BBR_START_SHOWN >= window ? ROCI_BBR_START_SHOWN_GAIN : ROCI_BBR_START_GAIN;
}
/* Whether trains came slower than they were sent, and what round trips deliver is as much: the line is full, if all of
 * a round has queued, and more would only make the queue longer. */
static inline bool roci_bbr_start_has_reached(const struct roci_bbr *b)
{
	return b->state == ROCI_BBR_STARTUP && b->reached && b->lead && b->bw >= b->lead - b->lead / 8;
}
/* Whether the rate has grown since the last round in which it had. UP asks this, too. */
static inline bool roci_bbr_start_grows(const struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	return rs->rate * 100 >= b->full_bw * ROCI_BBR_START_GROWTH;
}
static inline bool roci_bbr_start_losses_count(const struct roci_bbr *b)
{
	return b->losses >= ROCI_BBR_START_LOSSES;
}
/* Whether loss or marks say that the path is full. `high`: more was lost in this round than is lost anyway. */
bool roci_bbr_start_is_full(const struct roci_bbr *b, const struct roci_rate_sample *rs, bool high);
/* Sets b->lead, b->reached and the gains by what trains say. The window follows, no larger than what they carry in a
 * round trip. Once they came slower than they were sent, the line is known: half as much again is enough to find out
 * whether it carries more, and keeps the queue short. */
void roci_bbr_start_follow_train(struct roci_bbr *b, const struct roci_rate_sample *rs);
/* What followed trains lost too much: they do not count any more. */
void roci_bbr_start_without_trains(struct roci_bbr *b);
/* The window after `acked` bytes, before the bounds of the other states. `most`: what the model allows. */
uint64_t roci_bbr_start_window(const struct roci_bbr *b, uint64_t acked, uint64_t most);

#endif
