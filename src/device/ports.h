/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of rdma_cm services: which process of this user, in this network namespace, has bound which port of which
 * port space and address, and whether it listens. The table is part of the host registry. So a port is exclusive on the
 * host, and a request finds the process that listens.
 *
 * An entry counts as long as the process that made it lives: its slot is locked, and the slot's incarnation is the
 * same. Who wants a certain port, or the entry of a dead process, holds roci_registry_lock(). Any port that is free is
 * taken without it, which is two system calls less: a process makes an entry its own by compare-and-swap, and then
 * looks whether another one has got the same port meanwhile. Readers hold no lock: each entry has a sequence number.
 * Other processes write here too: readers check what they read.
 */
#ifndef ROCI_DEVICE_PORTS_H
#define ROCI_DEVICE_PORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/cm_ip.h"

#define ROCI_PORT_ENTRIES 65536
#define ROCI_PORT_SLOTS   1024 /* ROCI_SLOTS */

struct roci_port_entry {
	_Atomic uint64_t owner; /* its slot's incarnation, and in the lower half its slot; 0: free */
	atomic_uint sequence;   /* odd: the rest is being written; what is free has port 0 */
	uint16_t ps, port;
	bool v6_only, reuse, listening;
	uint8_t gid[16]; /* all zero: any; ::ffff:0.0.0.0: any IPv4 */
};

struct roci_port_table {
	atomic_uint incarnations[ROCI_PORT_SLOTS];
	struct roci_port_entry entries[ROCI_PORT_ENTRIES];
};

struct roci_registry;

struct roci_cm_bind {
	enum roci_port_space ps;
	uint16_t port;   /* 0: any that is free, of the ephemeral range */
	uint8_t gid[16]; /* as in struct roci_cm_listen */
	bool v6_only;    /* of the zero gid */
	bool reuse;      /* the port may be shared with others who say so and do not listen */
	bool connects;   /* nobody will listen there: port 0 may be one where another registry listens */
};

/* A new incarnation of our slot: the entries of earlier owners no longer count. */
void roci_ports_reset(struct roci_registry *reg);
/* No process has had the slot, so it has no QP either. Where one has, only roci_registry_alive() tells, which is a
 * system call. */
bool roci_ports_slot_is_new(const struct roci_registry *reg, unsigned slot);
/* Takes a port. *index is its entry, *port the port. -EADDRINUSE; -EADDRNOTAVAIL: no free port, or no room; -ETIMEDOUT:
 * a stopped process keeps the registry's lock, and a certain port is asked for. */
int roci_ports_bind(struct roci_registry *reg, const struct roci_cm_bind *ask, unsigned *index, uint16_t *port);
/* From now on requests for it come to this process. -EADDRINUSE: another owner of the port listens already;
 * -ETIMEDOUT as above. */
int roci_ports_listen(struct roci_registry *reg, unsigned index);
void roci_ports_release(struct roci_registry *reg, unsigned index);
/* Whether another process of this registry, or this one, listens to the port at any address. */
bool roci_ports_listened_to(const struct roci_registry *reg, unsigned ps, uint16_t port);
/* The slot of a living process that listens to the port at addresses of the other family than `address`; 0: none. */
unsigned roci_ports_other_family(const struct roci_registry *reg, unsigned ps, uint16_t port,
				 const uint8_t address[16]);
/* The slot of the living process that listens to this service on this address; 0: none. */
unsigned roci_ports_owner(const struct roci_registry *reg, unsigned ps, uint16_t port, const uint8_t address[16]);

#endif
