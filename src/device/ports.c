/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/ports.h"

#include <errno.h>
#include <string.h>

#include "device/device.h"
#include "device/registry.h"
#include "wire/gid.h"

#define WINDOW          32 /* entries, from a port's home on, that it may be in */
#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232 /* to 60999, like Linux */
#define TRIES           512   /* random ports, before it gives up */

static unsigned home(unsigned ps, unsigned port)
{
	return (port + ps * 7919u) % ROCI_PORT_ENTRIES;
}

static struct roci_port_entry *at(const struct roci_registry *reg, unsigned ps, unsigned port, unsigned i)
{
	return &reg->file->ports.entries[(home(ps, port) + i) % ROCI_PORT_ENTRIES];
}

/* Makes a consistent copy. Returns false where the entry is free or being written. */
static bool read_entry(const struct roci_port_entry *entry, struct roci_port_entry *copy)
{
	unsigned before = atomic_load_explicit(&entry->sequence, memory_order_acquire);

	memcpy(copy, entry, sizeof(*copy));
	atomic_thread_fence(memory_order_acquire);
	return !(before & 1) && atomic_load_explicit(&entry->sequence, memory_order_relaxed) == before && copy->slot;
}

static void write_entry(struct roci_port_entry *entry, const struct roci_port_entry *value)
{
	/* A writer that died halfway left an odd number. Ours becomes odd and then even, whatever it was. */
	unsigned sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed) | 1;
	const size_t skip = sizeof(entry->sequence);

	atomic_store_explicit(&entry->sequence, sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy((char *)entry + skip, (const char *)value + skip, sizeof(*entry) - skip);
	atomic_store_explicit(&entry->sequence, sequence + 1, memory_order_release);
}

static bool owner_lives(const struct roci_registry *reg, const struct roci_port_entry *copy)
{
	return copy->slot < ROCI_PORT_SLOTS &&
	       atomic_load_explicit(&reg->file->ports.incarnations[copy->slot], memory_order_relaxed) ==
		       copy->incarnation &&
	       roci_registry_alive(reg, copy->slot);
}

/* ---- addresses ---- */

enum scope { SCOPE_ANY, SCOPE_ANY_V4, SCOPE_ANY_V6, SCOPE_ONE };

static enum scope scope_of(const uint8_t gid[16], bool v6_only)
{
	if (roci_gid_is_any(gid))
		return v6_only ? SCOPE_ANY_V6 : SCOPE_ANY;
	return roci_gid_is_any_ipv4(gid) ? SCOPE_ANY_V4 : SCOPE_ONE;
}

/* True where an address of scope `a` covers the single address. */
static bool covers(enum scope a, const uint8_t gid[16])
{
	return a == SCOPE_ANY || (a == SCOPE_ANY_V4) == roci_gid_is_ipv4(gid);
}

static bool overlap(const struct roci_port_entry *a, const struct roci_port_entry *b)
{
	enum scope sa = scope_of(a->gid, a->v6_only), sb = scope_of(b->gid, b->v6_only);

	if (sa == SCOPE_ONE && sb == SCOPE_ONE)
		return !memcmp(a->gid, b->gid, 16);
	if (sa == SCOPE_ONE)
		return covers(sb, a->gid);
	if (sb == SCOPE_ONE)
		return covers(sa, b->gid);
	return sa == SCOPE_ANY || sb == SCOPE_ANY || sa == sb;
}

/* ---- binding ---- */

void roci_ports_reset(struct roci_registry *reg)
{
	atomic_store(&reg->file->ports.incarnations[reg->slot], roci_random32() | 1);
}

bool roci_ports_slot_is_new(const struct roci_registry *reg, unsigned slot)
{
	return slot >= ROCI_PORT_SLOTS || !atomic_load(&reg->file->ports.incarnations[slot]);
}

/* The registry is locked. Returns a free entry for the port; NULL: none, and *err says why. */
static struct roci_port_entry *find_free(struct roci_registry *reg, const struct roci_port_entry *wanted, int *err)
{
	struct roci_port_entry *unused = NULL, copy;

	*err = 0;
	for (unsigned i = 0; i < WINDOW; i++) {
		struct roci_port_entry *entry = at(reg, wanted->ps, wanted->port, i);

		if (!read_entry(entry, &copy) || !owner_lives(reg, &copy)) {
			unused = unused ? unused : entry;
			continue;
		}
		if (copy.ps != wanted->ps || copy.port != wanted->port || !overlap(&copy, wanted))
			continue;
		if (!(copy.reuse && wanted->reuse && !copy.listening)) {
			*err = -EADDRINUSE;
			return NULL;
		}
	}
	if (!unused)
		*err = -EADDRNOTAVAIL;
	return unused;
}

static struct roci_port_entry *find_any_port(struct roci_registry *reg, struct roci_port_entry *wanted, int *err)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct roci_port_entry *entry;

		wanted->port = (uint16_t)(EPHEMERAL_FIRST + roci_random32() % EPHEMERAL_COUNT);
		wanted->reuse = false; /* a random port is not one that others have */
		entry = find_free(reg, wanted, err);
		if (entry)
			return entry;
	}
	*err = -EADDRNOTAVAIL;
	return NULL;
}

int roci_ports_bind(struct roci_registry *reg, const struct roci_cm_bind *ask, unsigned *index, uint16_t *port)
{
	struct roci_port_entry wanted = {
		.incarnation = atomic_load(&reg->file->ports.incarnations[reg->slot]),
		.slot = (uint16_t)reg->slot,
		.ps = (uint16_t)ask->ps,
		.port = ask->port,
		.v6_only = ask->v6_only,
		.reuse = ask->reuse,
	};
	struct roci_port_entry *entry;
	int err = roci_registry_lock(reg);

	if (err)
		return err;
	memcpy(wanted.gid, ask->gid, 16);
	entry = wanted.port ? find_free(reg, &wanted, &err) : find_any_port(reg, &wanted, &err);
	if (entry) {
		wanted.reuse = ask->reuse;
		write_entry(entry, &wanted);
		*index = (unsigned)(entry - reg->file->ports.entries);
		*port = wanted.port;
	}
	roci_registry_unlock(reg);
	return err;
}

/* Another owner listens to the same port and address. */
static bool listened_to(const struct roci_registry *reg, const struct roci_port_entry *mine)
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++) {
		const struct roci_port_entry *entry = at(reg, mine->ps, mine->port, i);

		if (entry != mine && read_entry(entry, &copy) && copy.listening && copy.ps == mine->ps &&
		    copy.port == mine->port && overlap(&copy, mine) && owner_lives(reg, &copy))
			return true;
	}
	return false;
}

int roci_ports_listen(struct roci_registry *reg, unsigned index)
{
	struct roci_port_entry *entry = &reg->file->ports.entries[index], value;
	int err = roci_registry_lock(reg);

	if (err)
		return err;
	if (listened_to(reg, entry)) {
		err = -EADDRINUSE;
	} else {
		memcpy(&value, entry, sizeof(value));
		value.listening = true;
		write_entry(entry, &value);
	}
	roci_registry_unlock(reg);
	return err;
}

void roci_ports_release(struct roci_registry *reg, unsigned index)
{
	/* Needs no lock: as long as the slot is ours, nobody else writes to the entry. */
	__atomic_store_n(&reg->file->ports.entries[index].slot, 0, __ATOMIC_RELEASE);
}

/* ---- routing ---- */

unsigned roci_ports_owner(const struct roci_registry *reg, unsigned ps, uint16_t port, const uint8_t address[16])
{
	struct roci_port_entry copy;
	unsigned owner = 0;
	int best = -1;

	for (unsigned i = 0; i < WINDOW; i++) {
		int closeness;

		if (!read_entry(at(reg, ps, port, i), &copy) || copy.ps != ps || copy.port != port || !copy.listening)
			continue;
		closeness = (int)scope_of(copy.gid, copy.v6_only);
		if (closeness == SCOPE_ONE ? memcmp(copy.gid, address, 16) != 0
					   : !covers((enum scope)closeness, address))
			continue;
		if (closeness > best && owner_lives(reg, &copy)) {
			best = closeness;
			owner = copy.slot;
		}
	}
	return owner;
}

bool roci_ports_listened_to(const struct roci_registry *reg, unsigned ps, uint16_t port)
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++)
		if (read_entry(at(reg, ps, port, i), &copy) && copy.ps == ps && copy.port == port && copy.listening &&
		    owner_lives(reg, &copy))
			return true;
	return false;
}

static bool is_ipv4(const struct roci_port_entry *entry)
{
	return roci_gid_is_ipv4(entry->gid);
}

unsigned roci_ports_other_family(const struct roci_registry *reg, unsigned ps, uint16_t port, const uint8_t address[16])
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++)
		if (read_entry(at(reg, ps, port, i), &copy) && copy.ps == ps && copy.port == port && copy.listening &&
		    is_ipv4(&copy) != roci_gid_is_ipv4(address) && owner_lives(reg, &copy))
			return copy.slot;
	return 0;
}
