/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of a path: how many bytes per second it carries, and how long a round trip takes that meets no queue.
 * This is BBR, version 3 (draft-ietf-ccwg-bbr-02). What is acknowledged makes the model; the model says how fast
 * packets are sent (the rate), and how much is in flight at most (the window). Loss changes the model only where it is
 * more than random loss is: above 2 % in a round trip, or in what a probe for more bandwidth has sent. Here we differ
 * from the draft: what is lost when the path is not full (DOWN, and no queue) is what it loses anyway, and counts for
 * nothing. What a probe has sent and lost changes the long-term bound only: it is no sign of what goes on after it.
 * The pacing margin of 1 % is left out where there is no queue to drain, and so are the rounds of DOWN behind the first
 * where nothing was lost. Where a queue stays in CRUISE, the rate is what was delivered in the last round instead of
 * the most that was. Where a round trip takes long, probes are further apart, and so is the state RTT. A round trip
 * almost without a queue, whenever it was seen, puts that off. STARTUP also ends where trains of packets have shown the
 * rate that is delivered, and a queue stands. Where queues are short, bursts become shorter (burst.h).
 *
 * A round is a round trip counted in packets: it ends when a packet is acknowledged that was sent after it began, or
 * after four round trips, because all that comes may have been sent again. The names of states, filters and bounds are
 * the draft's. Gains are percent, times ns, rates bytes per second.
 */
#ifndef ROCI_ENGINE_BBR_H
#define ROCI_ENGINE_BBR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/burst.h"

#define ROCI_BBR_PACKET UINT64_C(1280) /* bytes that stand for a packet where the draft counts packets */
#define ROCI_BBR_NONE   UINT64_MAX     /* no bound */

enum roci_bbr_state {
	ROCI_BBR_STARTUP, /* the rate doubles each round, or follows trains of packets */
	ROCI_BBR_DRAIN,   /* the queue that this made is left to drain */
	ROCI_BBR_DOWN,    /* a little slower than the path, so that others find room */
	ROCI_BBR_CRUISE,  /* as fast as the path */
	ROCI_BBR_REFILL,  /* one round: nothing below the path's limits any more */
	ROCI_BBR_UP,      /* faster than the path: has it become faster? */
	ROCI_BBR_RTT,     /* little in flight: has the round trip become longer? */
};

/* What an acknowledgement tells. */
struct roci_rate_sample {
	uint64_t acked;           /* bytes that it acknowledges for the first time */
	uint64_t delivered;       /* bytes acknowledged on the path so far, these included */
	uint64_t prior_delivered; /* the same when the newest of the acknowledged packets was sent */
	uint64_t rate;            /* delivered between these; 0: not measured */
	uint64_t train;           /* what a train of packets says that the path carries (train.h); 0: nothing */
	bool train_reached;       /* and no more: it came slower than it was sent */
	uint64_t rtt_ns;          /* of that packet; 0: not measured, it was sent more than once */
	uint64_t tx_flight;       /* bytes in flight when it was sent */
	uint64_t lost;            /* bytes lost since it was sent */
	uint64_t flight;          /* bytes in flight now */
	bool app_limited;         /* there was too little to send for the rate to say what the path can carry */
	bool held_up;             /* likewise: it waited for something else that was lost, a READ request */
	bool window_limited;      /* the window was full at some time of this round */
};

struct roci_bbr {
	/* what the others read */
	uint64_t window, rate;
	uint64_t min_rtt;
	struct roci_burst burst;

	enum roci_bbr_state state;
	unsigned pacing_gain, window_gain; /* percent */
	uint64_t bw;                       /* min(largest of max_bw[], bw_lo) */
	uint64_t max_bw[2];                /* of this cycle of probing, of the one before */
	uint64_t round_bw;                 /* mean of the samples of the last round; 0: there was none */
	uint64_t rate_sum, rates;          /* of this round */
	uint64_t bw_lo, inflight_lo;       /* short-term bounds, of loss since the last probe; ROCI_BBR_NONE */
	uint64_t inflight_hi;              /* long-term bound, of loss while probing; ROCI_BBR_NONE */
	uint64_t min_rtt_at, probe_min_rtt, probe_min_rtt_at;
	uint64_t round_rtt[2]; /* smallest of this round, of the one before; 0, ROCI_BBR_NONE: none */

	uint64_t round_end;     /* delivered */
	uint64_t round_at, rtt; /* when it began; the round trip that was measured last */
	bool round_start;
	uint64_t loss_round_end, bw_latest, inflight_latest;
	bool loss_round_start, loss_in_round, marked;
	unsigned losses;     /* packets lost in this round */
	uint64_t lost_round; /* bytes lost in this round */
	uint64_t lost_since; /* the same of packets that were sent when `probed` bytes were delivered, or later */
	uint64_t probed;     /* when the last probe for more bandwidth ended */
	uint64_t lost_down;  /* the same of packets that were sent when `calm_from` bytes were delivered, or later */
	uint64_t calm_from;  /* DOWN: what was sent since then met a queue that was being left to drain */
	unsigned random;     /* 1/1024: what is lost while nothing queues, which no sender can help */

	uint64_t lead;    /* STARTUP: what trains of packets say that the path carries; 0: nothing */
	bool reached;     /* this is as much as it carries: STARTUP grows slower */
	bool lead_failed; /* what followed them lost too much */

	uint64_t full_bw;
	unsigned full_count;
	bool full, full_now;

	uint64_t cycle_at, probe_wait_ns;
	unsigned rounds_since_probe, up_rounds, down_rounds;
	uint64_t up_growth; /* UP: bytes by which inflight_hi grows per round */
	uint64_t up_acked;
	enum { ROCI_ACKS_INIT, ROCI_ACKS_STARTING, ROCI_ACKS_FEEDBACK, ROCI_ACKS_STOPPING, ROCI_ACKS_REFILLING } phase;
	bool at_bound;      /* UP: inflight_hi is what limits the window */
	bool probe_samples; /* what is acknowledged now was sent by a probe */

	uint64_t rtt_done_at; /* RTT: 0 until little is in flight */
	bool rtt_round_done;
	uint64_t prior_window;

	uint64_t extra_acked[2]; /* largest of these rounds, of those before: acknowledgements come in heaps */
	unsigned extra_rounds;
	uint64_t extra_at, extra_delivered;
};

/* A path whose first round trip took `rtt_ns`; `window`: what may be in flight at first. `shown`: what a round trip
 * carries, as the first packets seem to show (first_window.h); 0: nobody knows. */
void roci_bbr_init(struct roci_bbr *b, uint64_t now, uint64_t window, uint64_t shown, uint64_t rtt_ns);
void roci_bbr_acked(struct roci_bbr *b, uint64_t now, const struct roci_rate_sample *rs);
/* A packet was lost, and what is known about it. */
struct roci_loss_sample {
	uint64_t bytes;
	uint64_t sent_at;         /* ns */
	uint32_t place;           /* in its burst, see burst.h */
	uint64_t tx_flight;       /* bytes in flight when it was sent */
	uint64_t prior_delivered; /* bytes acknowledged on the path when it was sent */
	uint64_t lost;            /* all that was lost on the path since */
	bool app_limited;
};
void roci_bbr_lost(struct roci_bbr *b, uint64_t now, const struct roci_loss_sample *ls);
/* The network marked a packet, or said so by a CNP: there is a queue. It is left to drain; only where that does not
 * help, the short-term bounds fall. */
void roci_bbr_marked(struct roci_bbr *b, uint64_t now, uint64_t flight);
/* Nothing came back for long, and all that is in flight counts as lost. The model stays; the window is opened again by
 * what is acknowledged. */
void roci_bbr_silent(struct roci_bbr *b);
/* Nothing was in flight, and something is sent again. */
void roci_bbr_restart(struct roci_bbr *b, uint64_t now);

/* Bytes that may go at once: what the path carries in 1 ms or less (burst.h), and between one packet and 256 KiB. */
static inline uint64_t roci_bbr_quantum(const struct roci_bbr *b)
{
	uint64_t most = b->rate / 1000, bytes = most * b->burst.ns / ROCI_BURST_MOST;

	if (bytes < ROCI_BURST_BYTES)
		bytes = most < ROCI_BURST_BYTES ? most : ROCI_BURST_BYTES;
	if (bytes > UINT64_C(256) << 10)
		return UINT64_C(256) << 10;
	return bytes < ROCI_BBR_PACKET ? ROCI_BBR_PACKET : bytes;
}
/* ns that a burst may catch up which was woken `late` ns too late, with `flight` bytes in flight. */
uint64_t roci_bbr_catch_up_ns(const struct roci_bbr *b, uint64_t late, uint64_t flight);

#endif
