/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/bbr.h"

#include "engine/bbr_start.h"
#include "engine/pace.h"

#define SECOND           UINT64_C(1000000000)
#define MS               UINT64_C(1000000)
#define DRAIN_GAIN       35 /* percent */
#define DOWN_GAIN        90
#define UP_GAIN          125
#define WINDOW_GAIN      200
#define UP_WINDOW_GAIN   225
#define RTT_WINDOW_GAIN  50
#define MARGIN           99 /* percent of the rate: a queue does not stay (margin()) */
#define LOSS_THRESHOLD   2  /* percent of what was in flight */
#define BETA             70 /* percent */
#define HEADROOM         15 /* percent, left to others */
#define FULL_ROUNDS      3
#define RANDOM_MAX       102 /* of 1024 */
#define RANDOM_SURE      (512 * ROCI_BBR_PACKET)
#define CRUISE_LEAST     96
#define DOWN_ROUNDS      3 /* until what was sent in DOWN is acknowledged */
#define MIN_WINDOW       (4 * ROCI_BBR_PACKET)
#define ROUND_RTTS       4 /* a round is over then, whatever is acknowledged */
#define MIN_RTT_LIFE     (10 * SECOND)
#define PROBE_RTT_EVERY  (5 * SECOND)
#define PROBE_RTT_LAST   (200 * MS)
#define SAME_RTT         64           /* a round trip that is longer by less than one of so many parts is as long, */
#define KNOWN_RTT        8            /* and by one of so many parts there is no need to look for a shorter one */
#define PROBE_WAIT       (2 * SECOND) /* and up to 1 s more */
#define PROBE_WAIT_RTTS  16           /* at least so many round trips, since a probe and its end take several */
#define PROBE_ROUNDS     63
#define EXTRA_ACKED_LIFE 10 /* rounds */
#define UP_ROUNDS_MAX    30
#define CATCH_UP_PART    4 /* of the round trip that a late burst may be behind, */
#define CATCH_UP_MOST    (10 * MS)
#define CATCH_UP_BYTES   (UINT64_C(1) << 20)

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* In whole kilobytes where that is precise enough. Also a few bytes in a minute are not 0. */
static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	uint64_t kilobytes = bytes * 1000 / max(ns / 1000, 1);

	return kilobytes >= 1000 ? kilobytes * 1000 : bytes * SECOND / max(ns, 1);
}

/* ---- the model's answers ---- */

static uint64_t max_bw(const struct roci_bbr *b)
{
	return max(b->max_bw[0], b->max_bw[1]);
}

/* The path's content, times `gain` percent. Rates up to 100 GB/s and round trips up to minutes fit. */
static uint64_t bdp(const struct roci_bbr *b, unsigned gain)
{
	uint64_t bw = min(max_bw(b), b->bw_lo);

	return bw / 1000 * (b->min_rtt / 1000) / 1000 * gain / 100;
}

/* Three bursts are on their way even where the path is short. */
static uint64_t inflight(const struct roci_bbr *b, unsigned gain)
{
	uint64_t bytes = max(bdp(b, gain), 3 * roci_bbr_quantum(b));

	bytes = max(bytes, MIN_WINDOW);
	return b->state == ROCI_BBR_UP ? bytes + 2 * ROCI_BBR_PACKET : bytes;
}

static uint64_t with_headroom(const struct roci_bbr *b)
{
	if (b->inflight_hi == ROCI_BBR_NONE)
		return ROCI_BBR_NONE;
	return max(b->inflight_hi - max(b->inflight_hi * HEADROOM / 100, ROCI_BBR_PACKET), MIN_WINDOW);
}

static bool is_probing_bw(const struct roci_bbr *b)
{
	return b->state == ROCI_BBR_STARTUP || b->state == ROCI_BBR_REFILL || b->state == ROCI_BBR_UP;
}

static bool is_cycling(const struct roci_bbr *b)
{
	return b->state >= ROCI_BBR_DOWN && b->state <= ROCI_BBR_UP;
}

/* Whether a packet that took so long met a queue. */
static bool is_queued(const struct roci_bbr *b, uint64_t rtt_ns)
{
	return rtt_ns > b->min_rtt + b->min_rtt / 8 + 2 * MS;
}

/* Whether all of the round that ends now met a queue. */
static bool has_queued(const struct roci_bbr *b)
{
	return b->round_rtt[0] != ROCI_BBR_NONE && is_queued(b, b->round_rtt[0]);
}

/* Whether the ends of bursts may be what is lost: not where all of two rounds met a queue, longer than bursts make it
 * for a moment. */
static bool may_be_burst(const struct roci_bbr *b)
{
	uint64_t least = min(b->round_rtt[0], b->round_rtt[1]);

	return roci_bbr_quantum(b) > ROCI_BURST_BYTES && least && least != ROCI_BBR_NONE &&
	       least <= b->min_rtt + b->min_rtt / 64 + b->burst.ns / 2;
}

/* ---- states ---- */

static void enter(struct roci_bbr *b, enum roci_bbr_state state)
{
	static const struct {
		uint16_t pacing, window;
	} gains[] = {
		[ROCI_BBR_STARTUP] = {ROCI_BBR_START_GAIN, ROCI_BBR_START_WINDOW_GAIN},
		[ROCI_BBR_DRAIN] = {DRAIN_GAIN, WINDOW_GAIN},
		[ROCI_BBR_DOWN] = {DOWN_GAIN, WINDOW_GAIN},
		[ROCI_BBR_CRUISE] = {100, WINDOW_GAIN},
		[ROCI_BBR_REFILL] = {100, WINDOW_GAIN},
		[ROCI_BBR_UP] = {UP_GAIN, UP_WINDOW_GAIN},
		[ROCI_BBR_RTT] = {100, RTT_WINDOW_GAIN},
	};

	b->state = state;
	b->pacing_gain = gains[state].pacing;
	b->window_gain = gains[state].window;
}

static void reset_full(struct roci_bbr *b)
{
	b->full_bw = 0;
	b->full_count = 0;
	b->full_now = false;
}

static void reset_lower_bounds(struct roci_bbr *b)
{
	b->bw_lo = b->inflight_lo = ROCI_BBR_NONE;
}

static void start_round(struct roci_bbr *b, uint64_t delivered)
{
	b->round_end = delivered;
}

static void start_down(struct roci_bbr *b, uint64_t now, uint64_t delivered)
{
	b->loss_in_round = b->marked = false;
	b->bw_latest = b->inflight_latest = 0;
	/* The draft draws the wait at random. The time in ns is random enough that flows do not probe together. */
	b->probe_wait_ns =
		max(PROBE_WAIT, PROBE_WAIT_RTTS * b->min_rtt) + (now ^ delivered * UINT64_C(0x9e3779b1)) % SECOND;
	b->rounds_since_probe = now & 1;
	b->down_rounds = 0;
	b->calm_from = ROCI_BBR_NONE;
	b->cycle_at = now;
	b->phase = ROCI_ACKS_STOPPING;
	if (b->state == ROCI_BBR_UP)
		b->probed = delivered;
	start_round(b, delivered);
	enter(b, ROCI_BBR_DOWN);
}

static void start_refill(struct roci_bbr *b, uint64_t delivered)
{
	reset_lower_bounds(b);
	b->up_rounds = 0;
	b->up_acked = 0;
	b->phase = ROCI_ACKS_REFILLING;
	start_round(b, delivered);
	enter(b, ROCI_BBR_REFILL);
}

static void raise_slope(struct roci_bbr *b)
{
	b->up_growth = ROCI_BBR_PACKET << b->up_rounds;
	if (b->up_rounds < UP_ROUNDS_MAX)
		b->up_rounds++;
}

static void start_up(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	b->phase = ROCI_ACKS_STARTING;
	b->probe_samples = true;
	start_round(b, rs->delivered);
	reset_full(b);
	b->full_bw = rs->rate;
	b->cycle_at = now;
	enter(b, ROCI_BBR_UP);
	raise_slope(b);
}

void roci_bbr_init(struct roci_bbr *b, uint64_t now, uint64_t window, uint64_t shown, uint64_t rtt_ns)
{
	*b = (struct roci_bbr){.window = window, .min_rtt = rtt_ns, .inflight_hi = ROCI_BBR_NONE};
	reset_lower_bounds(b);
	b->min_rtt_at = b->probe_min_rtt_at = b->extra_at = b->cycle_at = b->round_at = now;
	b->probe_min_rtt = rtt_ns;
	roci_burst_set(&b->burst, now, ROCI_BURST_MOST);
	enter(b, ROCI_BBR_STARTUP);
	b->rate = per_second(window, rtt_ns) * roci_bbr_start_gain(window, shown) / 100;
}

/* ---- loss ---- */

static bool is_too_much(const struct roci_bbr *b, uint64_t lost, uint64_t tx_flight)
{
	return lost > tx_flight * LOSS_THRESHOLD / 100 + tx_flight * b->random * 3 / 2 / 1024;
}

/* A round has ended whose packets were sent in DOWN. If nothing queued, their loss was random, and that of no packet
 * that was sent before and found missing now. The first time, half of it is believed, unless so many packets were sent
 * that it is no accident. Where there is a queue, nothing confirms what was learned. */
static void learn_random(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	uint64_t bytes = rs->delivered - rs->prior_delivered + b->lost_down;
	unsigned part;

	if (b->state != ROCI_BBR_DOWN || b->down_rounds != DOWN_ROUNDS || !rs->rtt_ns || !bytes)
		return;
	if (is_queued(b, rs->rtt_ns)) {
		b->random -= (b->random + 3) / 4;
		return;
	}
	part = (unsigned)(b->lost_down * 1024 / bytes);
	if (part > RANDOM_MAX)
		part = RANDOM_MAX;
	b->random = b->random || bytes < RANDOM_SURE ? (b->random + part + 1) / 2 : part;
}

/* What the probe has sent was too much. */
static void on_too_high(struct roci_bbr *b, uint64_t now, uint64_t tx_flight, bool app_limited)
{
	b->probe_samples = false;
	if (!app_limited)
		b->inflight_hi = max(tx_flight, min(bdp(b, 100), b->window) * BETA / 100);
	if (b->state == ROCI_BBR_UP)
		start_down(b, now, b->round_end);
}

/* They were the ends of bursts that were too long. What the path carries is still to be found. */
static void forget_losses(struct roci_bbr *b)
{
	b->losses = 0;
	b->lost_round = b->lost_since = b->lost_down = 0;
	b->loss_in_round = false;
	roci_bbr_start_without_trains(b);
	if (!b->full)
		reset_full(b);
}

void roci_bbr_lost(struct roci_bbr *b, uint64_t now, const struct roci_loss_sample *ls)
{
	uint64_t part = ls->lost * 1024 / max(ls->tx_flight, 1);
	bool too_much = is_too_much(b, ls->lost, ls->tx_flight);

	if (may_be_burst(b) && roci_burst_lost(&b->burst, now, ls->sent_at, ls->place, part)) {
		forget_losses(b);
		return;
	}
	b->losses++;
	b->lost_round += ls->bytes;
	if (ls->prior_delivered >= b->probed)
		b->lost_since += ls->bytes;
	if (ls->prior_delivered >= b->calm_from)
		b->lost_down += ls->bytes;
	b->loss_in_round = true;
	if (too_much && roci_bbr_start_losses_count(b))
		roci_bbr_start_without_trains(b);
	if (b->probe_samples && too_much)
		on_too_high(b, now, ls->tx_flight, ls->app_limited);
}

void roci_bbr_marked(struct roci_bbr *b, uint64_t now, uint64_t flight)
{
	b->loss_in_round = b->marked = true;
	if (b->state == ROCI_BBR_UP && now - b->cycle_at > b->min_rtt) {
		on_too_high(b, now, flight, false);
	} else if (b->state == ROCI_BBR_CRUISE) {
		b->down_rounds = 0;
		enter(b, ROCI_BBR_DOWN);
	}
}

/* In the first round trips of a path. */
static void check_startup_loss(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	bool high = roci_bbr_start_losses_count(b) && is_too_much(b, b->lost_round, rs->tx_flight);

	b->full = roci_bbr_start_is_full(b, rs, high);
	if (b->full && high)
		b->inflight_hi = max(bdp(b, 100), b->inflight_latest);
}

/* Between probes, loss lowers the short-term bounds: not below what was delivered. */
static void lower_bounds(struct roci_bbr *b)
{
	if (is_probing_bw(b) || !b->loss_in_round)
		return;
	if (b->marked ? b->down_rounds <= DOWN_ROUNDS : !is_too_much(b, b->lost_since, b->inflight_latest))
		return;
	if (b->bw_lo == ROCI_BBR_NONE)
		b->bw_lo = max_bw(b);
	if (b->inflight_lo == ROCI_BBR_NONE)
		b->inflight_lo = b->window;
	b->bw_lo = max(b->bw_latest, b->bw_lo * BETA / 100);
	b->inflight_lo = max(b->inflight_latest, b->inflight_lo * BETA / 100);
}

/* ---- what an acknowledgement changes ---- */

/* The round has taken so long that it ends now, although no packet of it was acknowledged: where most are lost, all
 * that comes was sent again and tells of no round. Without an end of it nothing is learned, also not that most are
 * lost. */
static bool is_stale(const struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	return !rs->rtt_ns && now - b->round_at > ROUND_RTTS * max(b->rtt, b->min_rtt);
}

static void update_rounds(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	bool stale = is_stale(b, now, rs);

	if (rs->rtt_ns)
		b->rtt = rs->rtt_ns;
	b->round_start = stale || rs->prior_delivered >= b->round_end;
	if (b->round_start) {
		start_round(b, rs->delivered);
		b->round_at = now;
		b->rounds_since_probe++;
		roci_burst_round(&b->burst, now, b->min_rtt);
		if (b->state == ROCI_BBR_DOWN && b->down_rounds++ == 0)
			b->calm_from = rs->delivered;
	}
	b->bw_latest = max(b->bw_latest, rs->rate);
	b->inflight_latest = max(b->inflight_latest, rs->delivered - rs->prior_delivered);
	b->loss_round_start = stale || rs->prior_delivered >= b->loss_round_end;
	if (b->loss_round_start)
		b->loss_round_end = rs->delivered;
}

static void update_bw(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	if (rs->rate && (rs->rate >= max_bw(b) || !rs->app_limited))
		b->max_bw[0] = max(b->max_bw[0], rs->rate);
	if (b->round_start) {
		b->round_bw = b->rates ? b->rate_sum / b->rates : 0;
		b->rate_sum = b->rates = 0;
	}
	if (rs->rate) {
		b->rate_sum += rs->rate;
		b->rates++;
	}
	if (b->loss_round_start)
		lower_bounds(b);
}

/* How much more was acknowledged in an interval than the rate explains (draft, 5.5.9). */
static void update_aggregation(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	uint64_t expected = b->bw / 1000 * ((now - b->extra_at) / 1000) / 1000, extra;

	if (b->extra_delivered <= expected) {
		b->extra_delivered = expected = 0;
		b->extra_at = now;
	}
	b->extra_delivered += rs->acked;
	extra = b->extra_delivered - expected;
	extra = min(extra, b->window);
	b->extra_acked[0] = max(b->extra_acked[0], extra);
	if (!b->round_start || ++b->extra_rounds < EXTRA_ACKED_LIFE / 2)
		return;
	b->extra_rounds = 0;
	b->extra_acked[1] = b->extra_acked[0];
	b->extra_acked[0] = 0;
}

static void check_full(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	if (b->full_now || !b->round_start || rs->app_limited || !rs->rate)
		return;
	if (roci_bbr_start_grows(b, rs)) {
		reset_full(b);
		b->full_bw = rs->rate;
		return;
	}
	b->full_now = ++b->full_count >= FULL_ROUNDS;
	b->full |= b->full_now;
}

static void advance_filter(struct roci_bbr *b)
{
	if (!b->max_bw[0])
		return;
	b->max_bw[1] = b->max_bw[0];
	b->max_bw[0] = 0;
}

/* Long-term bounds (draft, 5.3.3.6). */
static void adapt_upper_bound(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	if (b->phase == ROCI_ACKS_STARTING && b->round_start)
		b->phase = ROCI_ACKS_FEEDBACK;
	if (b->phase == ROCI_ACKS_STOPPING && b->round_start) {
		b->probe_samples = false;
		b->phase = ROCI_ACKS_INIT;
		if (is_cycling(b) && !rs->app_limited)
			advance_filter(b);
	}
	if (b->inflight_hi == ROCI_BBR_NONE || is_too_much(b, rs->lost, rs->tx_flight))
		return;
	b->inflight_hi = max(b->inflight_hi, rs->tx_flight);
	if (b->state != ROCI_BBR_UP || !b->at_bound)
		return;
	b->up_acked += rs->acked;
	b->inflight_hi += rs->acked * b->up_growth / max(b->window, 1);
	if (b->round_start)
		raise_slope(b);
}

static bool is_time_to_probe(const struct roci_bbr *b, uint64_t now)
{
	uint64_t rounds = min(bdp(b, 100) / ROCI_BBR_PACKET, PROBE_ROUNDS); /* as often as Reno would lose */

	return now - b->cycle_at > b->probe_wait_ns || b->rounds_since_probe >= max(rounds, 1);
}

/* Some packet of the last two rounds was no later than by one of `parts` of the shortest round trip, though this flow
 * filled the path. */
static bool was_fast(const struct roci_bbr *b, unsigned parts)
{
	return is_cycling(b) && min(b->round_rtt[0], b->round_rtt[1]) <= b->min_rtt + b->min_rtt / parts;
}

static bool is_free_of_queue(const struct roci_bbr *b)
{
	return was_fast(b, SAME_RTT);
}

static bool is_up_done(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	if (b->at_bound) {
		reset_full(b);
		b->full_bw = rs->rate;
		return false; /* the bound, not the path, limits the rate: it grows first */
	}
	return b->full_now || (now - b->cycle_at > b->min_rtt && rs->flight > inflight(b, UP_GAIN));
}

/* Nothing is lost and nothing queues: then DOWN has nothing to find out, and would only leave a part of the line idle.
 */
static bool is_down_long_enough(const struct roci_bbr *b)
{
	bool clean = b->inflight_hi == ROCI_BBR_NONE && !b->random && !b->losses && !b->marked && is_free_of_queue(b);

	return b->down_rounds > (clean ? 1 : DOWN_ROUNDS);
}

static void cycle(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	switch (b->state) {
	case ROCI_BBR_DOWN:
		if (is_time_to_probe(b, now))
			start_refill(b, rs->delivered);
		else if (is_down_long_enough(b) && rs->flight <= with_headroom(b) && rs->flight <= inflight(b, 100))
			enter(b, ROCI_BBR_CRUISE);
		break;
	case ROCI_BBR_CRUISE:
		if (is_time_to_probe(b, now))
			start_refill(b, rs->delivered);
		break;
	case ROCI_BBR_REFILL:
		if (b->round_start)
			start_up(b, now, rs);
		break;
	case ROCI_BBR_UP:
		if (is_up_done(b, now, rs))
			start_down(b, now, rs->delivered);
		break;
	default: break;
	}
}

static void update_states(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	if (!b->full)
		check_startup_loss(b, rs);
	check_full(b, rs);
	b->full |= b->round_start && roci_bbr_start_has_reached(b) && has_queued(b);
	if (b->state == ROCI_BBR_STARTUP && b->full) {
		b->probed = rs->delivered;
		enter(b, ROCI_BBR_DRAIN);
	}
	if (b->state == ROCI_BBR_DRAIN && rs->flight <= inflight(b, 100))
		start_down(b, now, rs->delivered);
	b->at_bound = b->inflight_hi != ROCI_BBR_NONE && rs->window_limited && b->window >= b->inflight_hi;
	if (b->full)
		adapt_upper_bound(b, rs);
	cycle(b, now, rs);
}

/* ---- the round trip ---- */

static void exit_rtt(struct roci_bbr *b, uint64_t now, uint64_t delivered)
{
	b->probe_min_rtt_at = now;
	b->window = max(b->window, b->prior_window);
	reset_lower_bounds(b);
	if (b->full) {
		start_down(b, now, delivered);
		enter(b, ROCI_BBR_CRUISE);
	} else {
		enter(b, ROCI_BBR_STARTUP);
	}
}

static uint64_t rtt_window(const struct roci_bbr *b)
{
	return max(bdp(b, RTT_WINDOW_GAIN), MIN_WINDOW);
}

static void probe_rtt(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	if (!b->rtt_done_at && rs->flight <= rtt_window(b)) {
		b->rtt_done_at = now + PROBE_RTT_LAST;
		b->rtt_round_done = false;
		start_round(b, rs->delivered);
	} else if (b->rtt_done_at) {
		b->rtt_round_done |= b->round_start;
		if (b->rtt_round_done && now > b->rtt_done_at)
			exit_rtt(b, now, rs->delivered);
	}
}

static void note_round_rtt(struct roci_bbr *b, const struct roci_rate_sample *rs)
{
	if (b->round_start) {
		b->round_rtt[1] = b->round_rtt[0];
		b->round_rtt[0] = ROCI_BBR_NONE;
	}
	if (rs->rtt_ns)
		b->round_rtt[0] = min(b->round_rtt[0], rs->rtt_ns);
}

static void update_rtt(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	bool expired;

	note_round_rtt(b, rs);
	if (was_fast(b, KNOWN_RTT))
		b->probe_min_rtt_at = b->min_rtt_at = now;
	expired = now - b->probe_min_rtt_at > max(PROBE_RTT_EVERY, PROBE_WAIT_RTTS * b->min_rtt);
	if (rs->rtt_ns && (rs->rtt_ns < b->probe_min_rtt || expired)) {
		b->probe_min_rtt = rs->rtt_ns;
		b->probe_min_rtt_at = now;
	}
	if (b->probe_min_rtt < b->min_rtt ||
	    now - b->min_rtt_at > max(MIN_RTT_LIFE, 2 * PROBE_WAIT_RTTS * b->min_rtt)) {
		b->min_rtt = b->probe_min_rtt;
		b->min_rtt_at = b->probe_min_rtt_at;
	}
	if (expired && b->state != ROCI_BBR_RTT && rs->rtt_ns) {
		b->prior_window = b->window;
		b->rtt_done_at = 0;
		enter(b, ROCI_BBR_RTT);
	}
	if (b->state == ROCI_BBR_RTT)
		probe_rtt(b, now, rs);
}

/* ---- rate and window ---- */

/* The margin keeps a queue from staying. Where none is, and no probe has found too much, it would only leave a part of
 * the line idle. */
static unsigned margin(const struct roci_bbr *b)
{
	bool full = b->state == ROCI_BBR_CRUISE || b->state == ROCI_BBR_REFILL;

	return full && b->inflight_hi == ROCI_BBR_NONE && is_free_of_queue(b) ? 100 : MARGIN;
}

/* The largest of many samples is too large where acknowledgements are late, now less, now more: by 3 to 4 % where a
 * round trip takes 20 ms and threads wait for a processor. CRUISE at such a rate fills any queue. So once all of two
 * rounds has queued, the mean of the last one counts there, which is what the path has carried. The last few percent
 * are kept, because others that fill the queue would take what is left to them. */
static uint64_t cruise_bw(const struct roci_bbr *b)
{
	uint64_t least = min(b->round_rtt[0], b->round_rtt[1]);

	if (b->state != ROCI_BBR_CRUISE || !b->round_bw || least == ROCI_BBR_NONE || !is_queued(b, least))
		return b->bw;
	return min(b->bw, max(b->round_bw, b->bw * CRUISE_LEAST / 100));
}

static void set_rate(struct roci_bbr *b)
{
	uint64_t rate = max(cruise_bw(b), b->lead) * b->pacing_gain / 100 * margin(b) / 100;

	if (rate && (b->full || b->lead_failed || rate > b->rate))
		b->rate = rate;
}

static void bound_window(struct roci_bbr *b)
{
	uint64_t cap = ROCI_BBR_NONE;

	if (b->state == ROCI_BBR_CRUISE || b->state == ROCI_BBR_RTT)
		cap = with_headroom(b);
	else if (is_cycling(b))
		cap = b->inflight_hi;
	cap = max(min(cap, b->inflight_lo), MIN_WINDOW);
	b->window = min(b->window, cap);
	if (b->state == ROCI_BBR_RTT)
		b->window = min(b->window, rtt_window(b));
}

static void set_window(struct roci_bbr *b, uint64_t acked)
{
	uint64_t most = max(bdp(b, b->window_gain) + max(b->extra_acked[0], b->extra_acked[1]), inflight(b, 100));

	b->window = b->full ? min(b->window + acked, most) : roci_bbr_start_window(b, acked, most);
	b->window = max(b->window, MIN_WINDOW);
	bound_window(b);
}

void roci_bbr_acked(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs)
{
	update_rounds(b, now, rs);
	update_bw(b, rs);
	update_aggregation(b, now, rs);
	update_states(b, now, rs);
	if (b->loss_round_start) {
		learn_random(b, rs);
		b->loss_in_round = b->marked = false;
		b->losses = 0;
		b->lost_round = b->lost_since = b->lost_down = 0;
		b->bw_latest = rs->rate;
		b->inflight_latest = rs->delivered - rs->prior_delivered;
	}
	update_rtt(b, now, rs);
	b->bw = min(max_bw(b), b->bw_lo);
	if (b->state == ROCI_BBR_STARTUP)
		roci_bbr_start_follow_train(b, rs);
	else
		b->lead = 0;
	set_rate(b);
	set_window(b, rs->acked);
}

void roci_bbr_silent(struct roci_bbr *b)
{
	b->window = MIN_WINDOW;
}

void roci_bbr_restart(struct roci_bbr *b, uint64_t now)
{
	b->extra_at = now;
	b->extra_delivered = 0;
	if (is_cycling(b) && b->bw)
		b->rate = b->bw * MARGIN / 100;
}

/* The line may have been idle meanwhile. Afterwards it has enough for a round trip, and for as long again as this
 * wake-up was late: so much of a queue bridges the next one. Where a probe has found that too much is lost, the queue
 * may be too short for a burst; and at the start nobody knows. */
uint64_t roci_bbr_catch_up_ns(const struct roci_bbr *b, uint64_t late, uint64_t flight)
{
	uint64_t path = bdp(b, 100), ahead;

	if (!b->full || b->inflight_hi != ROCI_BBR_NONE || flight > path + path / CATCH_UP_PART)
		return 0;
	late = min(late, min(b->min_rtt / CATCH_UP_PART, CATCH_UP_MOST));
	late = min(late, roci_pace_ns(CATCH_UP_BYTES, b->rate));
	ahead = flight > path ? roci_pace_ns(flight - path, b->bw) : 0;
	return late > ahead ? late - ahead : 0;
}
