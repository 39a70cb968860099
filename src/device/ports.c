/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/ports.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "device/device.h"
#include "device/registry.h"
#include "wire/gid.h"

#define WINDOW          32 /* entries, from a port's home on, that it may be in */
#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232 /* to 60999, like Linux */
#define TRIES           512   /* random ports, before it gives up */
#define FREE_TRIES      8     /* of them without the registry's lock */

static unsigned home(unsigned ps, unsigned port)
{
	return (port + ps * 7919u) % ROCI_PORT_ENTRIES;
}

static struct roci_port_entry *at(const struct roci_registry *reg, unsigned ps, unsigned port, unsigned i)
{
	return &reg->file->ports.entries[(home(ps, port) + i) % ROCI_PORT_ENTRIES];
}

static uint64_t own_word(const struct roci_registry *reg)
{
	return (uint64_t)atomic_load(&reg->file->ports.incarnations[reg->slot]) << 32 | reg->slot;
}

static unsigned slot_of(uint64_t owner)
{
	return (uint32_t)owner;
}

/* Makes a consistent copy. Returns false where the entry is free or being written. */
static bool read_entry(const struct roci_port_entry *entry, struct roci_port_entry *copy)
{
	unsigned before = atomic_load_explicit(&entry->sequence, memory_order_acquire);

	memcpy(copy, entry, sizeof(*copy));
	atomic_thread_fence(memory_order_acquire);
	return !(before & 1) && atomic_load_explicit(&entry->sequence, memory_order_relaxed) == before && copy->owner;
}

/* Returns the sequence number that ends it. A writer that died halfway left an odd one. Ours becomes odd and then even,
 * whatever it was. (Inlined, its fence would be one that GCC says the thread sanitizer does not know.) */
__attribute__((noinline)) static unsigned begin_write(struct roci_port_entry *entry)
{
	unsigned sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed) | 1;

	atomic_store_explicit(&entry->sequence, sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	return sequence + 1;
}

/* The entry is ours. */
static void write_entry(struct roci_port_entry *entry, const struct roci_port_entry *value)
{
	const size_t skip = offsetof(struct roci_port_entry, ps);
	unsigned end = begin_write(entry);

	memcpy((char *)entry + skip, (const char *)value + skip, sizeof(*entry) - skip);
	atomic_store_explicit(&entry->sequence, end, memory_order_release);
}

static void release(struct roci_port_entry *entry)
{
	static const struct roci_port_entry nothing;

	write_entry(entry, &nothing); /* before it is free: who takes it has nobody's port meanwhile */
	atomic_store_explicit(&entry->owner, 0, memory_order_release);
}

static bool owner_lives(const struct roci_registry *reg, uint64_t owner)
{
	unsigned slot = slot_of(owner);

	return slot < ROCI_PORT_SLOTS &&
	       atomic_load_explicit(&reg->file->ports.incarnations[slot], memory_order_relaxed) == owner >> 32 &&
	       roci_registry_alive(reg, slot);
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

/* Another entry than `mine` keeps the port from us. shared: not one that shares it. */
static bool is_taken(const struct roci_registry *reg, const struct roci_port_entry *wanted, bool shared,
		     const struct roci_port_entry *mine)
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++) {
		const struct roci_port_entry *entry = at(reg, wanted->ps, wanted->port, i);

		if (entry != mine && read_entry(entry, &copy) && copy.ps == wanted->ps && copy.port == wanted->port &&
		    overlap(&copy, wanted) && !(copy.reuse && shared && !copy.listening) &&
		    owner_lives(reg, copy.owner))
			return true;
	}
	return false;
}

/* locked: the registry is, so nobody else takes entries of dead processes. */
static bool take_entry(struct roci_registry *reg, struct roci_port_entry *entry, bool locked)
{
	uint64_t owner = atomic_load_explicit(&entry->owner, memory_order_relaxed);

	if (!owner)
		return atomic_compare_exchange_strong(&entry->owner, &owner, own_word(reg));
	if (!locked || owner_lives(reg, owner))
		return false;
	begin_write(entry); /* what the dead process had is not ours */
	atomic_store_explicit(&entry->owner, own_word(reg), memory_order_relaxed);
	return true;
}

/* Two processes may do this at once, one of them with the lock. Each writes first and then looks, so one of them, or
 * both, find that the port is taken. */
static int take_port(struct roci_registry *reg, const struct roci_port_entry *wanted, bool shared, bool locked,
		     struct roci_port_entry **out)
{
	struct roci_port_entry *entry = NULL;
	unsigned i;

	if (is_taken(reg, wanted, shared, NULL))
		return -EADDRINUSE;
	for (i = 0; i < WINDOW; i++) {
		entry = at(reg, wanted->ps, wanted->port, i);
		if (take_entry(reg, entry, locked))
			break;
	}
	if (i == WINDOW)
		return -EADDRNOTAVAIL;
	write_entry(entry, wanted);
	atomic_thread_fence(memory_order_seq_cst);
	if (is_taken(reg, wanted, shared, entry)) {
		release(entry);
		return -EADDRINUSE;
	}
	*out = entry;
	return 0;
}

static int take_any_port(struct roci_registry *reg, struct roci_port_entry *wanted, bool locked,
			 struct roci_port_entry **out)
{
	int err = -EADDRNOTAVAIL;

	for (unsigned i = 0; err && i < (locked ? TRIES : FREE_TRIES); i++) {
		wanted->port = (uint16_t)(EPHEMERAL_FIRST + roci_random32() % EPHEMERAL_COUNT);
		err = take_port(reg, wanted, false, locked, out); /* not one that others have, whatever they allow */
	}
	return err ? -EADDRNOTAVAIL : 0;
}

static int take_locked(struct roci_registry *reg, struct roci_port_entry *wanted, bool any,
		       struct roci_port_entry **out)
{
	int err = roci_registry_lock(reg);

	if (err)
		return err;
	err = any ? take_any_port(reg, wanted, true, out) : take_port(reg, wanted, wanted->reuse, true, out);
	roci_registry_unlock(reg);
	return err;
}

int roci_ports_bind(struct roci_registry *reg, const struct roci_cm_bind *ask, unsigned *index, uint16_t *port)
{
	struct roci_port_entry wanted = {
		.ps = (uint16_t)ask->ps,
		.port = ask->port,
		.v6_only = ask->v6_only,
		.reuse = ask->reuse,
	};
	struct roci_port_entry *entry;
	bool any = !ask->port;
	int err;

	memcpy(wanted.gid, ask->gid, 16);
	err = any ? take_any_port(reg, &wanted, false, &entry) : -EAGAIN;
	if (err)
		err = take_locked(reg, &wanted, any, &entry);
	if (err)
		return err;
	*index = (unsigned)(entry - reg->file->ports.entries);
	*port = wanted.port;
	return 0;
}

/* Another owner listens to the same port and address. */
static bool listened_to(const struct roci_registry *reg, const struct roci_port_entry *mine)
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++) {
		const struct roci_port_entry *entry = at(reg, mine->ps, mine->port, i);

		if (entry != mine && read_entry(entry, &copy) && copy.listening && copy.ps == mine->ps &&
		    copy.port == mine->port && overlap(&copy, mine) && owner_lives(reg, copy.owner))
			return true;
	}
	return false;
}

int roci_ports_listen(struct roci_registry *reg, unsigned index)
{
	struct roci_port_entry *entry = &reg->file->ports.entries[index];
	int err = roci_registry_lock(reg);

	if (err)
		return err;
	if (listened_to(reg, entry))
		err = -EADDRINUSE;
	else /* one byte: for who takes any port meanwhile, the entry must not look as if it were being written */
		__atomic_store_n(&entry->listening, true, __ATOMIC_RELEASE);
	roci_registry_unlock(reg);
	return err;
}

void roci_ports_release(struct roci_registry *reg, unsigned index)
{
	/* Needs no lock: as long as the slot is ours, nobody else writes to the entry. */
	release(&reg->file->ports.entries[index]);
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
		if (closeness > best && owner_lives(reg, copy.owner)) {
			best = closeness;
			owner = slot_of(copy.owner);
		}
	}
	return owner;
}

bool roci_ports_listened_to(const struct roci_registry *reg, unsigned ps, uint16_t port)
{
	struct roci_port_entry copy;

	for (unsigned i = 0; i < WINDOW; i++)
		if (read_entry(at(reg, ps, port, i), &copy) && copy.ps == ps && copy.port == port && copy.listening &&
		    owner_lives(reg, copy.owner))
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
		    is_ipv4(&copy) != roci_gid_is_ipv4(address) && owner_lives(reg, copy.owner))
			return slot_of(copy.owner);
	return 0;
}
