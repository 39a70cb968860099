/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control of one pair of addresses. The congestion window bounds what all QPs between them have in flight,
 * so that the receiver's socket buffer does not overrun. It follows the delay, and shrinks on loss and on congestion
 * notification packets.
 *
 * Traffic that nobody acknowledges has no window. It is paced: it goes at the path's rate, which loss and congestion
 * notification packets lower.
 */
#ifndef ROCI_ENGINE_PATH_H
#define ROCI_ENGINE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/list.h"

/* Window bytes that a packet costs beside its payload. */
#define ROCI_PATH_PACKET_BYTES UINT64_C(256)

/* The window of a path to a process of this host. It counts what a packet and its response take of the link's rings,
 * of 128 KiB: longer payload is not carried there. */
#define ROCI_PATH_LOCAL_WINDOW (UINT64_C(48) << 10)

struct roci_path {
	struct roci_list all;     /* in e->paths */
	struct roci_list blocked; /* QPs that wait for window, by qp->blocked */
	uint8_t sgid[16], dgid[16];
	unsigned users;
	bool fixed; /* the window is as large as the link's ring: nothing changes it */

	uint64_t flight;                /* bytes sent and not acknowledged, of all QPs */
	uint64_t cwnd;                  /* bytes */
	uint64_t ssthresh;              /* bytes; below it the window doubles per round trip */
	uint64_t base_rtt, base_rtt_at; /* ns: the smallest seen lately, and when */
	uint64_t cut_at;                /* when the window was last cut: once per round trip */
	uint64_t srtt;                  /* ns, 0: no sample yet */

	uint64_t rate_at;   /* when the rate was last changed */
	uint64_t rate;      /* bytes per second for unacknowledged traffic */
	uint64_t tokens;    /* bytes that may be sent now */
	uint64_t tokens_at; /* when they were counted */
};

struct roci_engine;
/* The path between two GIDs, shared by its users. NULL when out of memory. */
struct roci_path *roci_path_get(struct roci_engine *e, const uint8_t sgid[16], const uint8_t dgid[16]);
/* Likewise the path to a process of this host (roci_av.local). */
struct roci_path *roci_path_get_local(struct roci_engine *e, uint16_t local);
void roci_path_put(struct roci_path *path);

/* True where `bytes` more fit in the window. */
static inline bool roci_path_fits(const struct roci_path *p, uint64_t bytes)
{
	return p->flight + bytes <= p->cwnd;
}
/* `bytes` were acknowledged. */
void roci_path_acked(struct roci_path *p, uint64_t now, uint64_t bytes);
/* A round trip was measured. */
void roci_path_rtt(struct roci_path *p, uint64_t now, uint64_t rtt_ns);
/* A packet was lost, or a congestion notification came. At most one cut per round trip. */
void roci_path_congested(struct roci_path *p, uint64_t now);

/* Takes `bytes` for a packet that nobody acknowledges. Returns 0, or the time at which to ask again. */
uint64_t roci_path_pace(struct roci_path *p, uint64_t now, uint64_t bytes);

#endif
