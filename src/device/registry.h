/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host registry (D6): which process of this user, in this network namespace, owns which block of QPNs.
 *
 * One file per network namespace in roci_rundir(). A process owns slot s (1..1023), and with it the QPNs s << 14 and
 * the 16,383 that follow, as long as it holds the lock on byte s of the file: the lock goes when the process does,
 * however it ends, and pids never matter. The file also holds what the steering program needs to know (steer.h).
 */
#ifndef ROCI_DEVICE_REGISTRY_H
#define ROCI_DEVICE_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "device/ports.h"
#include "device/rundir.h"

#define ROCI_SLOTS          1024 /* slot 0 is nobody's: QPN 0 and 1 live there */
#define ROCI_SLOT_SHIFT     14
#define ROCI_QPNS_PER_SLOT  (1u << ROCI_SLOT_SHIFT)
#define ROCI_STEERED_GROUPS 64

static inline unsigned roci_slot_of(uint32_t qpn)
{
	return qpn >> ROCI_SLOT_SHIFT;
}

/* The sockets bound to one address, in the kernel's order. Guarded by roci_registry_lock(); other processes write here
 * too, so whoever reads checks the range of `count` and `members`. */
struct roci_steered_group {
	uint8_t gid[16];
	uint32_t ifindex; /* of a link-local gid, else 0 */
	uint32_t count;   /* 0: the entry is free */
	uint16_t members[ROCI_SLOTS];
};

struct roci_registry_file {
	struct roci_steered_group groups[ROCI_STEERED_GROUPS];
	struct roci_port_table ports;
};

struct roci_registry {
	int fd;
	unsigned slot; /* ours */
	unsigned long netns;
	struct roci_registry_file *file; /* shared with the other processes */
	char dir[ROCI_RUNDIR_MAX + 1];
};

/* Takes a free slot. -ENOSPC: all are taken; or why the registry cannot be had. */
int roci_registry_open(struct roci_registry *reg);
/* Gives the slot back. In a forked child, which shares the lock with its parent, this only forgets it. */
void roci_registry_close(struct roci_registry *reg);

/* True where a living process owns `slot`. */
bool roci_registry_alive(const struct roci_registry *reg, unsigned slot);

/* The lock on reg->file, among processes. */
int roci_registry_lock(struct roci_registry *reg);
void roci_registry_unlock(struct roci_registry *reg);

#endif
