/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/bbr_start.h"

#define HEAVY        5   /* a fifth */
#define LEAD_GAIN    554 /* percent: where trains are far ahead of the round trips, ... */
#define LEAD_FAR     3   /* ... by so many times */
#define REACHED_GAIN 150 /* percent, of rate and window */
#define LEAD_GROWTH  8   /* times a round trip: a train may have been wrong */

bool roci_bbr_start_is_full(const struct roci_bbr *b, const struct roci_rate_sample *rs, bool high)
{
	bool heavy = b->lost_round > rs->tx_flight / HEAVY;

	return !rs->held_up && b->loss_round_start && (high || b->marked) && (heavy || !roci_bbr_start_grows(b, rs));
}

void roci_bbr_start_follow_train(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	if (!b->lead_failed && rs->train > b->lead) {
		b->lead = rs->train;
		b->reached = rs->train_reached;
	}
	b->reached &= b->bw <= b->lead + b->lead / 16;
	b->reached |= b->burst.ns < ROCI_BURST_MOST;
	b->pacing_gain = b->reached ? REACHED_GAIN : b->lead > LEAD_FAR * b->bw ? LEAD_GAIN : ROCI_BBR_START_GAIN;
	b->window_gain = b->reached ? REACHED_GAIN : ROCI_BBR_START_WINDOW_GAIN;
}

void roci_bbr_start_without_trains(struct roci_bbr *b)
{
	b->lead = 0;
	b->lead_failed = true;
}

uint64_t roci_bbr_start_window(const struct roci_bbr *b, uint64_t acked, uint64_t most)
{
	uint64_t led = b->lead / 1000 * (b->min_rtt / 1000) / 1000, grown = b->window + acked * (LEAD_GROWTH - 1);

	if (b->window < led)
		return grown < led ? grown : led;
	if (b->window < most || !b->bw) /* what is acknowledged first may have no rate */
		return b->window + acked;
	return b->window;
}
