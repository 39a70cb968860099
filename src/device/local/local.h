/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local path: between this process and others of the host (docs/ARCHITECTURE.md). Rings carry the engine's packets;
 * direct.h is the short cut above the engine. All of it is driven under the device's lock.
 *
 * A peer is a process, known by its slot and its incarnation. roci_av.local is its number here, from 1 on.
 */
#ifndef ROCI_DEVICE_LOCAL_H
#define ROCI_DEVICE_LOCAL_H

#include <sys/types.h>

#include "device/local/ring.h"
#include "device/local/spill.h"
#include "device/registry.h"
#include "device/stats.h"
#include "engine/engine.h"

#define ROCI_LOCAL_PATH (ROCI_RUNDIR_MAX + 48)

struct roci_local_peer {
	unsigned slot;
	uint64_t incarnation;
	bool dead; /* it has ended, or its ring is broken */
	int32_t pid;
	struct roci_local_shared *shared; /* its file, without rings */
	struct roci_local_ring *in_ring;  /* from it to us */
	struct roci_local_reader in;      /* .ring NULL: it has not attached yet */
	struct roci_local_writer out;
	struct roci_local_spill spill; /* what found `out` full */
	uint64_t pumped_at;            /* the reader's place when it was last tried to empty that */
	uint64_t looked_at;            /* our place in its ring when we last looked whether it waits for room */
	uint64_t token;                /* our guard page for its copies */
};

struct roci_link;
struct roci_side_door;

#define ROCI_LOCAL_PEEKED 8 /* peers; with more of them each poll takes the lock */

/* Where the next packet of each peer will appear, for polls that do not have the lock. */
struct roci_local_peek {
	_Atomic unsigned count;                                   /* of peers */
	const _Atomic uint32_t *_Atomic sizes[ROCI_LOCAL_PEEKED]; /* by the peer's number - 1; NULL: nothing comes */
};

struct roci_local {
	struct roci_local_shared *own; /* NULL: this process takes no part */
	const char *why;               /* it does not */
	const char *refused;           /* why a QP took the wire to a process of this user; NULL: none did */
	int fd;
	char path[ROCI_LOCAL_PATH];
	const struct roci_registry *registry;
	struct roci_side_door *door;
	struct roci_engine *engine;
	struct roci_device_stats *stats;
	struct roci_local_peer **peers; /* [roci_av.local - 1]; owned; NULL: a number that is free */
	unsigned count;
	struct roci_local_peek peek;
	void **spare_rings; /* owned; places where rings of peers were mapped, see roci_local_detach() */
	unsigned spare_count;
	uint32_t attaches;       /* that were seen */
	bool unpublished;        /* something was sent since the last flush */
	bool asleep;             /* a thread sleeps, and waits for a wake-up */
	struct roci_link *watch; /* who captures (watch.h); NULL: nobody */
	struct roci_rx rx;
};

/* Makes this process's file, where it takes part. Otherwise it says why not in l->why. */
void roci_local_open(struct roci_local *l, const struct roci_registry *registry, struct roci_side_door *door,
		     struct roci_engine *engine, struct roci_device_stats *stats);
/* No peer gets at this process's memory any more. Waits for copies that are under way. */
void roci_local_close(struct roci_local *l);
/* In a forked child: what is published stays the parent's. */
void roci_local_close_in_child(struct roci_local *l);
/* The process is about to end without closing. */
void roci_local_unlink(const struct roci_local *l);

/* Whether a process of this registry has `qpn`. If not, *why says so, or why this process takes no part. */
bool roci_local_has(const struct roci_local *l, uint32_t qpn, const char **why);
/* The process that has `qpn`: roci_local_has(). Returns its number; 0: both take the wire, and *why says why; or a
 * negative errno: it is local, and cannot be attached. */
int roci_local_find(struct roci_local *l, uint32_t qpn, const char **why);

/* Puts a packet into its peer's ring, or loses and counts it. */
void roci_local_send(struct roci_local *l, const struct roci_tx_packet *packet, const struct roci_span *spans);
/* Shows what was sent, and wakes peers that sleep. */
void roci_local_flush(struct roci_local *l);
/* Gives the engine what has arrived. Returns the number of packets. */
unsigned roci_local_receive(struct roci_local *l, uint64_t now);
/* Whether it seems that no packet has arrived; needs no lock. Attaching peers are not noticed, and packets that wait in
 * spill.h are not moved. */
static inline bool roci_local_seems_quiet(const struct roci_local *l)
{
	unsigned count = atomic_load_explicit(&l->peek.count, memory_order_relaxed);
	bool quiet = count <= ROCI_LOCAL_PEEKED;

	for (unsigned i = 0; quiet && i < count; i++) {
		const _Atomic uint32_t *size = atomic_load_explicit(&l->peek.sizes[i], memory_order_acquire);

		quiet = !size || !atomic_load_explicit(size, memory_order_relaxed);
	}
	return quiet;
}
/* Whether packets have arrived, or a peer. */
bool roci_local_waits(const struct roci_local *l);
/* The thread is about to sleep. False: something waits. */
bool roci_local_sleeps(struct roci_local *l);
void roci_local_awake(struct roci_local *l);
/* Whether a peer has sent a wake-up to a thread that still sleeps. A peer sends one only: who takes it from the side
 * door must wake the thread. */
bool roci_local_wakeup_came(const struct roci_local *l);

/* From now on `watch` (capture.h) sees what goes through the rings, as packets that are made up. Then the short cut,
 * which no engine sees, is closed to this process and to its peers. NULL: nobody captures. */
void roci_local_watch(struct roci_local *l, struct roci_link *watch);

/* What peers may reach: see table.h. A region is revoked when this returns. */
void roci_local_add_region(struct roci_local *l, const struct roci_mr_attr *attr);
void roci_local_remove_region(struct roci_local *l, const struct roci_mr_attr *attr);
/* A connected QP begins: what peers may do by it follows its state. */
void roci_local_add_qp(struct roci_local *l, struct roci_qp *qp, uint32_t pd, uint32_t dest_qpn);

/* The peer with this number; NULL: there is none, or it is dead. */
struct roci_local_peer *roci_local_peer(const struct roci_local *l, uint16_t local);

#endif
