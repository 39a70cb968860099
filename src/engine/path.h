/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control of one pair of addresses: how much all QPs between them have in flight, and how fast they send.
 *
 * A far path, whose round trip takes half a millisecond or more, is a model of bandwidth and delay (bbr.h), and its
 * packets are paced (pace.h). That needs a peer that tells what is missing (ranges.h): with go-back-N, a window that
 * does not shrink would be sent again and again. On a near path a round trip is mostly the time that threads wait for a
 * processor, which no model of a wire explains: there a window bounds what is in flight, so that the receiver's socket
 * buffer does not overrun. It follows the delay, and shrinks on loss and on congestion notification packets. A near
 * path that loses packets again and again, before the window has grown back, counts as a far one.
 *
 * Traffic that nobody acknowledges has no window. It is paced: it goes at a rate that loss and congestion notification
 * packets lower.
 */
#ifndef ROCI_ENGINE_PATH_H
#define ROCI_ENGINE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/bbr.h"
#include "engine/first_window.h"
#include "engine/list.h"
#include "engine/pace.h"
#include "engine/sent_log.h"
#include "engine/timer.h"
#include "engine/train.h"

/* Window bytes that a packet costs beside its payload. */
#define ROCI_PATH_PACKET_BYTES UINT64_C(256)

/* The window of a path to a process of this host. It counts what a packet and its response take of the link's rings,
 * of 128 KiB: longer payload is not carried there. */
#define ROCI_PATH_LOCAL_WINDOW (UINT64_C(48) << 10)

/* A round trip that is longer than threads wait for a processor, mostly. */
#define ROCI_PATH_FAR_NS UINT64_C(500000)
/* One that is longer than between processes of a host, and through a fast adapter. */
#define ROCI_PATH_LINE_NS UINT64_C(150000)

struct roci_path {
	struct roci_list all;     /* in e->paths */
	struct roci_list blocked; /* QPs that wait for window, by qp->blocked; inbound: by far_read->blocked */
	uint8_t sgid[16], dgid[16];
	bool inbound;         /* of what comes: READ responses, which this side asks for (far_read.h) */
	unsigned users, busy; /* busy: QPs with something in flight */
	bool fixed;           /* the window is as large as the link's ring: nothing changes it */

	/* UDP payload, see black_hole.h */
	uint32_t carries; /* that it bears, where it was found to swallow more; else 0 */
	uint32_t proven;  /* of the longest packet that was acknowledged */
	bool ours;        /* a Rocinante is there: it takes IP fragments, and pieces */
	bool pieces;      /* IPv6: what it does not bear goes in pieces (wire/piece.h) */
	bool suspected;   /* it was said that it seems to swallow long packets */

	uint64_t flight; /* bytes sent and not acknowledged, of all QPs */

	/* near */
	uint64_t cwnd;                  /* bytes */
	uint64_t room;                  /* bytes that the peer's buffer takes; 0: nobody knows */
	uint64_t overdraft;             /* bytes that may go beyond cwnd, since the peer is silent */
	uint64_t overdraw_at;           /* when it may grow */
	uint64_t quiet_from;            /* when something was last acknowledged, or the first answer was due */
	uint64_t marked_at;             /* when a congestion notification last came; 0: never */
	uint64_t ssthresh;              /* bytes; below it the window doubles per round trip */
	uint64_t base_rtt, base_rtt_at; /* ns: the smallest seen lately, and when */
	uint64_t heard_at;              /* when the peer last said what it has (RANGES) */
	uint64_t lost_at;               /* near: how large the window was when packets were lost; 0: never */
	uint64_t cut_at;                /* when the window was last cut: once per round trip */
	uint64_t cut_delivered;         /* `delivered` then */
	unsigned early_losses;          /* cuts that came soon after the one before, since the last one with a queue */
	uint64_t srtt, latest_rtt;      /* ns, 0: no sample yet */
	bool rtt_is_bound;              /* these two, and base_rtt: the round trip may be far shorter */
	struct roci_first_window first; /* where the path may be far */
	uint64_t answer_ns;             /* roci_path_answered(); 0: nobody has said */

	/* far */
	bool agreed, far, was_near; /* a peer tells what is missing; for good */
	bool lossy;                 /* near, but it loses so much that only a model makes good use of it; for good */
	bool limited;               /* something had to wait for the window in this round */
	struct roci_bbr bbr;
	struct roci_pace pace;
	struct roci_train train;
	struct roci_timer timer; /* the next burst may go; near: the window may grow */
	struct roci_timers *timers;
	uint64_t delivered, lost;             /* bytes, ever; what a far path has lost */
	uint64_t delivered_at, first_sent_at; /* see struct roci_sent_state */
	uint64_t app_limited;                 /* until so many bytes are delivered; 0: not */
	uint64_t held_up;                     /* likewise: they waited for something that was lost */

	/* what nobody acknowledges */
	uint64_t rate_at;   /* when the rate was last changed */
	uint64_t rate;      /* bytes per second for unacknowledged traffic */
	uint64_t tokens;    /* bytes that may be sent now */
	uint64_t tokens_at; /* when they were counted */
};

struct roci_engine;
/* The path between two GIDs, shared by its users. NULL when out of memory. */
struct roci_path *roci_path_get(struct roci_engine *e, const uint8_t sgid[16], const uint8_t dgid[16]);
/* Likewise the path of what comes from there, for QPs on the path *out. It begins as a far one that is like *out, with
 * a window that first_window.h allows. */
struct roci_path *roci_path_get_inbound(struct roci_engine *e, const struct roci_path *out);
/* Likewise the path to a process of this host (roci_av.local). */
struct roci_path *roci_path_get_local(struct roci_engine *e, uint16_t local);
void roci_path_put(struct roci_path *path);

static inline uint64_t roci_path_window(const struct roci_path *p)
{
	return p->far ? p->bbr.window : p->cwnd + p->overdraft;
}
/* True where `bytes` more fit in the window. */
static inline bool roci_path_fits(const struct roci_path *p, uint64_t bytes)
{
	return p->flight + bytes <= roci_path_window(p);
}
/* True where the next packet may go now; room: it fits in the window. Else `blocked` waits in p->blocked, for the
 * window or for p->timer. */
bool roci_path_admits(struct roci_path *p, uint64_t now, bool room, struct roci_list *blocked);
/* Packets of a far path between two that ask for an acknowledgement, a power of two: the way back may be narrow. */
static inline uint32_t roci_path_ack_every(const struct roci_path *p)
{
	uint64_t packets = p->bbr.window / ROCI_BBR_PACKET;

	return packets >= 256 ? 16 : packets >= 64 ? 8 : packets >= 16 ? 4 : 1;
}
/* Whether a round trip may turn out to be long enough for a model. */
static inline bool roci_path_may_be_long(const struct roci_path *p)
{
	return p->base_rtt >= ROCI_PATH_FAR_NS && !p->fixed && !p->was_near;
}
/* Whether it is a model that says how to send, if only the peer tells what is missing. */
static inline bool roci_path_may_be_far(const struct roci_path *p)
{
	return p->lossy || roci_path_may_be_long(p);
}
/* Whether it is near, but over a line that takes time and has lost packets in a queue in front of it. */
static inline bool roci_path_is_line(const struct roci_path *p)
{
	return !p->far && !p->fixed && p->lost_at && p->base_rtt >= ROCI_PATH_LINE_NS;
}
/* A peer was found to tell what is missing (ranges.h): the path is far if its round trip says so. */
void roci_path_agree(struct roci_path *p, uint64_t now);
/* A packet of `bytes` was sent, and counts in p->flight. For a far path: fills *state. */
void roci_path_sent(struct roci_path *p, uint64_t now, uint64_t bytes, struct roci_sent_state *state);
/* The first answer comes a round trip later: something is in flight after nothing was, or the window was cut. */
void roci_path_begins(struct roci_path *p, uint64_t now);
/* p->timer of a near path has expired. Where nothing was acknowledged for a while, the peer's thread waits for a
 * processor: what was sent has left the line meanwhile, which would be idle until it answers. So the window grows, as
 * fast as the line carries it, until an acknowledgement comes. */
void roci_path_overdraw(struct roci_path *p);
/* There is nothing to send, though there is room. */
void roci_path_idle(struct roci_path *p, uint64_t now);
/* Who waited for the pace has nothing to send any more, or nobody did when its time came. */
void roci_path_unawaited(struct roci_path *p, uint64_t now);
/* What is in flight waits for something else that was lost, and then comes at once: it says little about the path. */
void roci_path_held_up(struct roci_path *p);
/* `bytes` were acknowledged. Near: p->flight still counts them. Far: it does not; *sent is the newest packet among
 * them, or NULL. */
void roci_path_acked(struct roci_path *p, uint64_t now, uint64_t bytes, const struct roci_sent *sent);
/* A round trip was measured, on a path that is not known to be far. bound: it takes no longer, but perhaps far less.
 * That counts until one is measured. */
void roci_path_rtt(struct roci_path *p, uint64_t now, uint64_t rtt_ns, bool bound);
/* A peer's program has answered within answer_ns, by messages that are not this path's; 0: it is not known. The
 * smallest is a bound of the round trip. Since programs may be slow, only the acknowledgement timer makes use of it,
 * and only until a round trip is measured. The path to a process of this host has no need of it. */
void roci_path_answered(struct roci_path *p, uint64_t answer_ns);
/* A packet of `bytes` was lost. *sent is its entry, NULL where there is none, and `place` its place there
 * (roci_sent_place()), ROCI_MIDDLE where nobody knows it. */
void roci_path_lost(struct roci_path *p, uint64_t now, uint64_t bytes, const struct roci_sent *sent, uint32_t place);
/* The peer says how many window bytes its buffer takes; UINT64_MAX: it does not say. A near path keeps to that. */
void roci_path_room(struct roci_path *p, uint64_t bytes);
/* A congestion notification came. */
void roci_path_marked(struct roci_path *p, uint64_t now);
/* An answer did not come in time: all that is in flight may be lost. */
void roci_path_silent(struct roci_path *p, uint64_t now);

/* Takes `bytes` for a packet that nobody acknowledges. Returns 0, or the time at which to ask again. */
uint64_t roci_path_pace(struct roci_path *p, uint64_t now, uint64_t bytes);

#endif
