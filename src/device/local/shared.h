/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes of one host share for the local path (docs/ARCHITECTURE.md): a file of each process,
 * "local-NETNS-SLOT" in the run directory. Its owner makes it when it opens the device; peers map it. Room is reserved
 * before it is used.
 *
 * Processes of one user trust each other, but one may have crashed in the middle of something: sizes and indices that
 * come from a peer's file are checked.
 */
#ifndef ROCI_DEVICE_LOCAL_SHARED_H
#define ROCI_DEVICE_LOCAL_SHARED_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "device/qpn_slot.h"

#define ROCI_LOCAL_LAYOUT     7 /* of this header and of ring.h */
#define ROCI_LOCAL_REGIONS    2048
#define ROCI_LOCAL_RING_BYTES (UINT32_C(128) << 10) /* with its two counters */

/* A ring of records from the file's owner to one peer; ring.h. The counters run freely. */
struct roci_local_ring {
	_Alignas(64) _Atomic uint64_t tail; /* bytes written and shown; by the owner of the file */
	_Alignas(64) _Atomic uint64_t head; /* bytes read; by the peer */
	_Alignas(64) uint8_t bytes[ROCI_LOCAL_RING_BYTES - 128];
};
_Static_assert(sizeof(struct roci_local_ring) == ROCI_LOCAL_RING_BYTES, "rings are whole pages");

/* What the owner of the file and the peer with this slot have with each other. */
struct roci_local_pair {
	/* By the owner, for the peer's copies: the byte at `token` must be the first that a copy touches. 0: none may
	 * copy. `token_value` is what is there. */
	_Atomic uint64_t token;
	uint64_t token_value;
	/* By the peer: its incarnation, once its ring to the owner is ready. */
	_Atomic uint64_t attached;
	/* By whichever of the two attaches first, where the owner has the lower slot: which path both take.
	 * pairing.h */
	_Atomic uint64_t verdict;
	/* By the owner, before it sleeps: it has more for the peer than its ring has room for. */
	_Atomic uint32_t wants_room;
	/* By the peer: its thread that copies from or to the owner's memory; 0: none. */
	_Alignas(64) _Atomic uint32_t hazard;
	/* By the peer, between two pieces of a long copy: what it copies from then on was not taken back before. */
	_Atomic uint32_t pieces;
};

/* A memory region that peers may reach. Its place is found by its key (table.h). Written before `key`; stays
 * while somebody's hazard is announced. */
struct roci_local_region {
	_Atomic uint32_t key; /* 0: none, or revoked */
	uint32_t pd, access;  /* enum roci_access */
	uint64_t base;        /* its first byte in the owner's memory */
	uint64_t iova, len;
};

/* A QP of the owner; its place is the lower part of its QPN. */
struct roci_local_qp {
	_Atomic uint32_t state; /* see roci_qp_publish(); 0: peers must not reach memory by it */
	uint32_t peer_qpn, pd;
};

struct roci_local_shared {
	uint64_t layout;      /* ROCI_LOCAL_LAYOUT; written last, when the file is made */
	uint64_t incarnation; /* random: this process and no other; a multiple of 4, not 0 */
	uint64_t address;     /* of this header in the owner's memory */
	uint64_t rights;      /* what the kernel's check of a copy looks at, see rights.h; 0: takes no part */
	int32_t pid;
	uint32_t slot;
	_Atomic uint32_t watched;               /* somebody captures: peers send what the owner's engine sees */
	_Alignas(64) _Atomic uint32_t sleeping; /* the thread sleeps: whoever puts something into a ring wakes it */
	_Atomic uint32_t attaches;              /* grows when a peer attaches */
	struct roci_local_pair pairs[ROCI_SLOTS];
	struct roci_local_region regions[ROCI_LOCAL_REGIONS];
	struct roci_local_qp qps[ROCI_QPNS_PER_SLOT];
	uint8_t unused[49024];          /* up to a whole page, see below */
	struct roci_local_ring rings[]; /* by the slot of the peer; room is reserved for each attached one */
};
_Static_assert(sizeof(struct roci_local_shared) % 65536 == 0, "rings are whole pages, which have 64 KiB at most");

#define ROCI_LOCAL_FILE_BYTES (sizeof(struct roci_local_shared) + ROCI_SLOTS * sizeof(struct roci_local_ring))

#endif
