/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/path.h"

#include <stdlib.h>
#include <string.h>

#include "engine/far_window.h"
#include "engine/flight.h"
#include "engine/internal.h"

#define CWND_NEAR        (128u << 10) /* at least, when the path is found to be near */
#define CWND_MIN         (16u << 10)
#define CWND_MAX         (2u << 20)
#define GROWTH           4096u
#define GROWTH_SLOW      256u
#define EARLY_BYTES      CWND_MAX     /* a loss is early where less was delivered since the last one, ... */
#define NO_QUEUE_NS      250000u      /* ... and no queue made round trips longer by more than that and once more */
#define LOSSY_AFTER      8u           /* early losses, and none of a full queue between them */
#define SILENCE_PART     4u           /* of the round trip: acknowledgements are not so far apart */
#define OVERDRAFT_PART   8u           /* of the window, in one of so many parts of the round trip */
#define OVERDRAFT_MOST   (512u << 10) /* with the window: about what a socket's buffer holds */
#define MARK_LIFE_NS     1000000000u  /* for so long the peer's buffer may be full */
#define BASE_RTT_LIFE_NS 10000000000u
#define RTT_UNKNOWN_NS   1000000u    /* stands for the round trip before one was measured */
#define RTT_LEAST_NS     1000u       /* where the clock stood meanwhile: what was just sent is not overdue */
#define RATE_FIRST       1000000000u /* bytes per second */
#define RATE_MIN         10000000u
#define RATE_MAX         1500000000u
#define RATE_RECOVERY_NS 1000000u
#define PACE_IDLE_NS     100000000u /* after which the bucket is full, whatever the rate */
#define PACE_BURST       (256u << 10)
/* Queueing delay that counts as congestion. Where many processes share a processor, each waits for milliseconds, and
 * the less it may have in flight, the more often one has to be woken for the same bytes. */
#define QUEUE_TARGET_NS 8000000u

static struct roci_path *get(struct roci_engine *e, const uint8_t sgid[16], const uint8_t dgid[16], bool inbound)
{
	struct roci_path *p;

	for (struct roci_list *l = e->paths.next; l != &e->paths; l = l->next) {
		p = roci_container_of(l, struct roci_path, all);
		if (!memcmp(p->sgid, sgid, 16) && !memcmp(p->dgid, dgid, 16) && p->inbound == inbound) {
			p->users++;
			return p;
		}
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(p->sgid, sgid, 16);
	memcpy(p->dgid, dgid, 16);
	p->inbound = inbound;
	p->users = 1;
	p->cwnd = ROCI_FIRST_WINDOW;
	p->ssthresh = CWND_MAX;
	p->rate = RATE_FIRST;
	p->tokens = PACE_BURST;
	p->timers = &e->timers;
	roci_timer_init(&p->timer);
	p->timer.expire = roci_flight_expire;
	roci_list_init(&p->blocked);
	roci_list_append(&e->paths, &p->all);
	return p;
}

struct roci_path *roci_path_get(struct roci_engine *e, const uint8_t sgid[16], const uint8_t dgid[16])
{
	return get(e, sgid, dgid, false);
}

struct roci_path *roci_path_get_local(struct roci_engine *e, uint16_t local)
{
	static const uint8_t nowhere[16]; /* no path of the wire leads to this address */
	uint8_t to[16] = {(uint8_t)(local >> 8), (uint8_t)local};
	struct roci_path *p = roci_path_get(e, nowhere, to);

	if (p) {
		p->fixed = true;
		p->cwnd = ROCI_PATH_LOCAL_WINDOW;
	}
	return p;
}

void roci_path_put(struct roci_path *p)
{
	if (--p->users)
		return;
	roci_timer_set(p->timers, &p->timer, ROCI_TIMER_OFF);
	roci_list_remove(&p->all);
	free(p);
}

/* ---- near and far ---- */

static void go_far(struct roci_path *p, uint64_t now, uint64_t rtt_ns)
{
	p->far = true;
	p->overdraft = 0;
	roci_timer_set(p->timers, &p->timer, ROCI_TIMER_OFF);
	p->delivered_at = p->first_sent_at = now;
	p->pace = (struct roci_pace){.at = now};
	roci_train_stop(&p->train);
	roci_bbr_init(&p->bbr, now, p->cwnd, p->first.shown, rtt_ns);
}

/* The window of a near path. */
static void clamp_near(struct roci_path *p)
{
	uint64_t most = p->room && p->room < CWND_MAX ? p->room : CWND_MAX;

	if (p->cwnd > most)
		p->cwnd = most;
}

static void go_near(struct roci_path *p)
{
	if (!p->was_near && !p->cut_at && p->cwnd < CWND_NEAR)
		p->cwnd = CWND_NEAR;
	p->was_near = true;
	clamp_near(p);
	if (!p->far)
		return;
	p->far = false;
	p->overdraft = 0;
	p->cwnd = p->bbr.window;
	clamp_near(p);
	roci_timer_set(p->timers, &p->timer, ROCI_TIMER_OFF);
}

void roci_path_agree(struct roci_path *p, uint64_t now)
{
	p->agreed = true;
	if (!p->far && roci_path_may_be_far(p))
		go_far(p, now, p->base_rtt);
}

struct roci_path *roci_path_get_inbound(struct roci_engine *e, const struct roci_path *out)
{
	struct roci_path *p = get(e, out->sgid, out->dgid, true);

	if (!p || p->agreed)
		return p;
	p->srtt = out->srtt;
	p->latest_rtt = out->latest_rtt;
	p->rtt_is_bound = out->rtt_is_bound;
	p->base_rtt = out->base_rtt;
	p->base_rtt_at = out->base_rtt_at;
	p->lossy = out->lossy;
	p->cwnd = roci_first_window_bounded(out->far ? out->bbr.window : out->cwnd);
	roci_path_agree(p, e->now);
	return p;
}

static void measured(struct roci_path *p, uint64_t now, uint64_t rtt_ns, bool bound)
{
	if (rtt_ns < RTT_LEAST_NS)
		rtt_ns = RTT_LEAST_NS;
	p->latest_rtt = rtt_ns;
	p->srtt = p->srtt && !p->rtt_is_bound ? (7 * p->srtt + rtt_ns) / 8 : rtt_ns;
	p->rtt_is_bound = bound;
	if (!p->base_rtt || rtt_ns < p->base_rtt || now - p->base_rtt_at > BASE_RTT_LIFE_NS) {
		p->base_rtt = rtt_ns;
		p->base_rtt_at = now;
	}
	if (rtt_ns < ROCI_PATH_FAR_NS && !p->lossy)
		go_near(p);
	else if (p->agreed)
		roci_path_agree(p, now);
}

/* ---- near ---- */

static void learn_first_window(struct roci_path *p, uint64_t now, uint64_t bytes)
{
	uint64_t window;

	if (!roci_path_may_be_long(p))
		return;
	window = roci_first_window_acked(&p->first, now, bytes, p->flight == bytes, p->base_rtt);
	if (window)
		p->cwnd = window;
}

/* Bytes in a round trip: few where packets were lost last time, because a queue was full. A far path with a standard
 * peer loses more by chance, and has longer round trips. */
static uint64_t growth(const struct roci_path *p)
{
	uint64_t around = p->lost_at / 8;

	if (!p->base_rtt || roci_path_may_be_long(p) || p->cwnd < p->lost_at - around || p->cwnd > p->lost_at + around)
		return GROWTH;
	return GROWTH_SLOW;
}

static void grow(struct roci_path *p, uint64_t now, uint64_t bytes)
{
	bool limited = 2 * (p->flight + bytes) >= p->cwnd;

	if (!limited || p->fixed)
		return;
	if (p->cwnd >= CWND_MAX) {
		if (roci_path_may_be_long(p))
			p->cwnd = roci_far_window_acked(p->cwnd, now, bytes, p->cut_at, p->base_rtt, p->latest_rtt);
		return;
	}
	if (p->cwnd < p->ssthresh)
		p->cwnd += bytes;
	else
		p->cwnd += growth(p) * bytes / p->cwnd;
	clamp_near(p);
}

void roci_path_room(struct roci_path *p, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		return;
	p->room = bytes < CWND_MIN ? CWND_MIN : bytes;
	if (!p->far && !p->fixed)
		clamp_near(p);
}

void roci_path_rtt(struct roci_path *p, uint64_t now, uint64_t rtt_ns, bool bound)
{
	if (bound && p->srtt && !p->rtt_is_bound)
		return; /* by another QP */
	measured(p, now, rtt_ns, bound);
	if (p->far || p->fixed)
		return;
	if (p->srtt > 2 * p->base_rtt + QUEUE_TARGET_NS && now - p->cut_at > p->srtt) {
		p->cut_at = now;
		p->cwnd -= p->cwnd / 8;
		if (p->cwnd < CWND_MIN)
			p->cwnd = CWND_MIN;
		p->ssthresh = p->cwnd;
	}
}

void roci_path_answered(struct roci_path *p, uint64_t answer_ns)
{
	if (answer_ns && !p->fixed && (!p->answer_ns || answer_ns < p->answer_ns))
		p->answer_ns = answer_ns;
}

/* What went beyond the window is taken back each time; the window is cut at most once per round trip. Where a peer
 * tells what is missing, all that one full queue has dropped is known after two of them. Returns whether it was cut. */
static bool cut(struct roci_path *p, uint64_t now)
{
	uint64_t once = p->srtt ? p->srtt << p->agreed : RTT_UNKNOWN_NS;

	roci_path_begins(p, now);
	if (p->fixed || (p->cut_at && now - p->cut_at <= once))
		return false;
	p->cut_at = now;
	p->lost_at = p->cwnd;
	p->cwnd = p->cwnd / 2 < CWND_MIN ? CWND_MIN : p->cwnd / 2;
	p->ssthresh = p->cwnd;
	p->rate = p->rate / 2 < RATE_MIN ? RATE_MIN : p->rate / 2;
	p->rate_at = now;
	return true;
}

/* A full queue is full again when the window has grown back, for which much has to be delivered, and shows in the round
 * trips. Losses that come sooner, without a queue, are chance, and to send less makes none of them rarer. Chance also
 * lets much be delivered between two of them, so a late one says nothing unless there was a queue. */
static void near_lost(struct roci_path *p, uint64_t now)
{
	bool early = p->delivered - p->cut_delivered < EARLY_BYTES || p->cwnd < p->lost_at - p->lost_at / 8;
	bool queued = !p->srtt || p->srtt >= 2 * p->base_rtt + NO_QUEUE_NS;

	if (!cut(p, now))
		return;
	p->early_losses = queued ? 0 : p->early_losses + early;
	p->cut_delivered = p->delivered;
	p->lossy |= p->early_losses >= LOSSY_AFTER;
	if (p->agreed)
		roci_path_agree(p, now);
}

/* ---- near: a silent peer ---- */

/* It is a line that limits. Else packets would only wait at the peer, and on one host with it take its processor. It is
 * another Rocinante, which says when its socket's buffer fills up, and has not done so lately. */
static bool may_overdraw(const struct roci_path *p, uint64_t now)
{
	uint64_t most = p->room && p->room < OVERDRAFT_MOST ? p->room : OVERDRAFT_MOST;

	return roci_path_is_line(p) && p->ours && !p->rtt_is_bound && p->cwnd + p->overdraft < most &&
	       (!p->marked_at || now > p->marked_at + MARK_LIFE_NS);
}

void roci_path_begins(struct roci_path *p, uint64_t now)
{
	p->overdraft = 0;
	p->quiet_from = now + p->srtt;
}

/* From then on silence says something. */
static uint64_t silent_from(const struct roci_path *p)
{
	return p->quiet_from + p->srtt / SILENCE_PART;
}

/* The window is full. */
static void await_answer(struct roci_path *p, uint64_t now)
{
	uint64_t at = p->overdraft ? now + p->srtt / OVERDRAFT_PART : silent_from(p);

	if (!may_overdraw(p, now) || (p->timer.at != ROCI_TIMER_OFF && p->timer.at > now))
		return;
	p->overdraw_at = at > now ? at : now;
	roci_timer_set(p->timers, &p->timer, p->overdraw_at);
}

void roci_path_overdraw(struct roci_path *p)
{
	if (may_overdraw(p, p->overdraw_at) && p->overdraw_at >= silent_from(p))
		p->overdraft += p->cwnd / OVERDRAFT_PART;
}

/* ---- far ---- */

static bool is_due(struct roci_path *p, uint64_t now)
{
	uint64_t late;

	if (!p->far)
		return true;
	late = p->pace.waiting && p->pace.at < now ? roci_bbr_catch_up_ns(&p->bbr, now - p->pace.at, p->flight) : 0;
	if (roci_pace_is_due(&p->pace, now, roci_bbr_quantum(&p->bbr), p->bbr.rate, late))
		return true;
	roci_timer_set(p->timers, &p->timer, p->pace.at);
	return false;
}

bool roci_path_admits(struct roci_path *p, uint64_t now, bool room, struct roci_list *blocked)
{
	if (room && is_due(p, now))
		return true;
	if (!room) {
		p->limited = true;
		p->pace.late = 0; /* it is the window that it waits for */
		await_answer(p, now);
	}
	if (roci_list_empty(blocked))
		roci_list_append(&p->blocked, blocked);
	return false;
}

void roci_path_sent(struct roci_path *p, uint64_t now, uint64_t bytes, struct roci_sent_state *state)
{
	if (p->flight <= bytes) {
		p->first_sent_at = p->delivered_at = now;
		if (p->app_limited)
			roci_bbr_restart(&p->bbr, now);
	}
	roci_pace_sent(&p->pace, now, bytes, roci_bbr_quantum(&p->bbr), p->bbr.rate);
	*state = (struct roci_sent_state){.sent_at = now,
					  .delivered = p->delivered,
					  .delivered_at = p->delivered_at,
					  .first_sent_at = p->first_sent_at,
					  .flight = p->flight,
					  .lost = p->lost,
					  .app_limited = p->app_limited};
}

void roci_path_idle(struct roci_path *p, uint64_t now)
{
	if (!p->far || !roci_list_empty(&p->blocked))
		return;
	p->app_limited = p->delivered + p->flight + 1;
	roci_pace_idle(&p->pace, now);
}

void roci_path_unawaited(struct roci_path *p, uint64_t now)
{
	if (p->far && roci_list_empty(&p->blocked))
		roci_pace_idle(&p->pace, now);
}

void roci_path_held_up(struct roci_path *p)
{
	p->held_up = p->delivered + p->flight + 1;
}

/* Delivery rate: draft-ietf-ccwg-bbr-02 4.1.2.3. */
static uint64_t rate_since(const struct roci_path *p, uint64_t now, const struct roci_sent_state *s)
{
	uint64_t sending = s->sent_at - s->first_sent_at, acking = now - s->delivered_at;
	uint64_t interval = sending > acking ? sending : acking, bytes = p->delivered - s->delivered;

	if (interval < p->bbr.min_rtt || interval < 1000)
		return 0;
	return bytes < UINT64_C(1) << 33 ? bytes * 1000000000u / interval : bytes / (interval / 1000) * 1000000u;
}

static void far_acked(struct roci_path *p, uint64_t now, uint64_t bytes, const struct roci_sent *sent)
{
	struct roci_rate_sample rs = {.acked = bytes, .flight = p->flight};

	p->delivered += bytes;
	p->delivered_at = now;
	if (p->app_limited && p->delivered > p->app_limited)
		p->app_limited = 0;
	rs.delivered = rs.prior_delivered = p->delivered;
	if (sent) {
		const struct roci_sent_state *s = &sent->state;

		rs.prior_delivered = s->delivered;
		rs.rate = rate_since(p, now, s);
		rs.rtt_ns = sent->again ? 0 : now - s->sent_at; /* Karn's algorithm */
		rs.tx_flight = s->flight;
		rs.lost = p->lost - s->lost;
		rs.held_up = s->delivered < p->held_up;
		rs.app_limited = s->app_limited || rs.held_up;
		rs.train = roci_train_acked(&p->train, now, bytes, s->sent_at, p->bbr.min_rtt);
		rs.train_reached = p->train.reached;
		p->first_sent_at = s->sent_at;
		if (!sent->again)
			measured(p, now, rs.rtt_ns, false);
		if (!p->far)
			return;
	} else {
		rs.prior_delivered = 0; /* no round ends with it */
		rs.tx_flight = p->flight;
		roci_train_stop(&p->train);
	}
	rs.window_limited = p->limited;
	roci_bbr_acked(&p->bbr, now, &rs);
	if (p->bbr.round_start)
		p->limited = false;
}

/* ---- both ---- */

void roci_path_acked(struct roci_path *p, uint64_t now, uint64_t bytes, const struct roci_sent *sent)
{
	if (p->far) {
		far_acked(p, now, bytes, sent);
		return;
	}
	p->delivered += bytes;
	p->overdraft = 0;
	p->quiet_from = now;
	grow(p, now, bytes);
	learn_first_window(p, now, bytes);
}

void roci_path_lost(struct roci_path *p, uint64_t now, uint64_t bytes, const struct roci_sent *sent, uint32_t place)
{
	if (!p->far) {
		near_lost(p, now);
		return;
	}
	p->lost += bytes;
	if (sent)
		roci_bbr_lost(&p->bbr, now,
			      &(struct roci_loss_sample){.bytes = bytes,
							 .sent_at = sent->state.sent_at,
							 .place = place,
							 .tx_flight = sent->state.flight,
							 .prior_delivered = sent->state.delivered,
							 .lost = p->lost - sent->state.lost,
							 .app_limited = sent->state.app_limited});
}

void roci_path_marked(struct roci_path *p, uint64_t now)
{
	p->marked_at = now;
	if (p->far)
		roci_bbr_marked(&p->bbr, now, p->flight);
	else
		cut(p, now);
}

void roci_path_silent(struct roci_path *p, uint64_t now)
{
	if (p->far)
		roci_bbr_silent(&p->bbr);
	else
		cut(p, now);
}

/* ---- what nobody acknowledges ---- */

/* The rate grows by a sixteenth for each interval without a cut. */
static void recover_rate(struct roci_path *p, uint64_t now)
{
	if (now - p->rate_at < RATE_RECOVERY_NS)
		return;
	p->rate_at = now;
	p->rate += p->rate / 16;
	if (p->rate > RATE_MAX)
		p->rate = RATE_MAX;
}

/* A bucket of PACE_BURST bytes that fills at `rate`. */
uint64_t roci_path_pace(struct roci_path *p, uint64_t now, uint64_t bytes)
{
	uint64_t passed = now - p->tokens_at;

	recover_rate(p, now);
	p->tokens_at = now;
	if (passed > PACE_IDLE_NS)
		p->tokens = PACE_BURST;
	else
		p->tokens += passed * p->rate / 1000000000u;
	if (p->tokens > PACE_BURST)
		p->tokens = PACE_BURST;
	if (p->tokens < bytes)
		return now + 1 + (bytes - p->tokens) * 1000000000u / p->rate;
	p->tokens -= bytes;
	return 0;
}
