/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host registry: which process of this user, in this network namespace, owns which block of QPNs.
 *
 * It is a file in roci_rundir(), one for each network namespace. A process owns slot s (1..1023), and with it a
 * block of 16,384 QPNs (qpn_slot.h), as long as it holds the lock on byte s of the file. The kernel releases the lock
 * when the process ends, however it ends; pids do not matter. The file also holds the order of sockets (steer.h) and
 * the ports of services (ports.h).
 *
 * Other users, and containers that share the network namespace but no file system, have registries of their own. All
 * share the names of the side doors (abstract_name.h): a slot whose door another registry's process has is not taken.
 * So no two processes of a network namespace have the same QPNs.
 */
#ifndef ROCI_DEVICE_REGISTRY_H
#define ROCI_DEVICE_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/ports.h"
#include "device/qpn_slot.h" /* IWYU pragma: export */
#include "device/rundir.h"

#define ROCI_STEERED_GROUPS 64
#define ROCI_RECENT_SOCKETS 4096 /* a power of two */

/* The sockets bound to one address, in the kernel's order. Guarded by roci_registry_lock(). Other processes write here
 * too: readers check `count` and `members`. */
struct roci_steered_group {
	uint8_t gid[16];
	uint32_t ifindex; /* of a link-local gid, else 0 */
	uint32_t count;   /* 0: the entry is free */
	uint16_t members[ROCI_SLOTS];
	uint32_t inodes[ROCI_SLOTS]; /* of the members' sockets, as /proc/net/udp has them */
};

struct roci_registry_file {
	_Atomic uint32_t holder_slot, holder_pid; /* who locked it last */
	struct roci_steered_group groups[ROCI_STEERED_GROUPS];
	/* Inodes of the sockets that processes of this registry were about to bind lately; nobody needs the lock. A
	 * process that ends loses its slot a moment before its sockets go, and who cannot get the lock joins no group:
	 * these sockets are in no group, and not a stranger's either. */
	_Atomic uint32_t recent_next, recent[ROCI_RECENT_SOCKETS];
	struct roci_port_table ports;
};

_Static_assert(sizeof(struct roci_registry_file) + (1 << 19) <= ROCI_RUNDIR_BYTES,
	       "`roci doctor` looks for too little room");

struct roci_registry {
	int fd;
	unsigned slot; /* ours */
	uint32_t pid;  /* ours; to ask for it is a system call */
	int door_fd;   /* the socket that has the name of our slot's side door */
	unsigned long netns;
	struct roci_slot_key slot_key;
	bool stuck;                      /* the last wait for the lock was in vain */
	struct roci_registry_file *file; /* shared with the other processes; its room on the disk is reserved */
	char dir[ROCI_RUNDIR_MAX + 1];
};

/* Takes a free slot, in the first directory of rundir.h where a process of ours lives already, else in the first that
 * can hold the file. Says on stderr why others cannot. Returns 0, -EUSERS where all slots are taken, by this user's
 * processes or others', -ENXIO where Linux does not say which network namespace this is (/proc is not mounted), or
 * another negative errno: no directory can hold the file. */
int roci_registry_open(struct roci_registry *reg);
/* Gives the slot back. In a forked child, which shares the lock with its parent, the parent keeps it. */
void roci_registry_close(struct roci_registry *reg);

/* True where a living process of this registry owns `slot`. */
bool roci_registry_alive(const struct roci_registry *reg, unsigned slot);

/* The lock on reg->file, between processes. A stopped process may hold it: the wait ends after a second, with a line on
 * stderr that names the holder. Until the lock is had again, further waits end at once. Returns 0, -ETIMEDOUT or
 * another negative errno. */
int roci_registry_lock(struct roci_registry *reg);
/* Likewise, but does not wait and says nothing. -EAGAIN: somebody has the lock. */
int roci_registry_try_lock(struct roci_registry *reg);
void roci_registry_unlock(struct roci_registry *reg);

#endif
