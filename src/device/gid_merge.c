/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table while addresses come and go. Pure: what the host has goes in, what changed comes out. */
#include <assert.h>
#include <string.h>

#include "device/gid.h"
#include "wire/gid.h"

enum family { FAMILY_IPV4, FAMILY_IPV6, FAMILY_LINK_LOCAL };

static enum family family_of(const uint8_t gid[16])
{
	if (roci_gid_is_ipv4(gid))
		return FAMILY_IPV4;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? FAMILY_LINK_LOCAL : FAMILY_IPV6;
}

int roci_gids_find(const struct roci_gids *gids, const uint8_t gid[16], uint32_t ifindex)
{
	for (int i = 0; i < gids->count; i++) {
		const struct roci_gid_entry *entry = &gids->entries[i];

		if (roci_gid_is_present(entry) && !memcmp(entry->gid, gid, 16) &&
		    (!ifindex || entry->ifindex == ifindex))
			return i;
	}
	return -1;
}

const struct roci_gid_entry *roci_gids_first(const struct roci_gids *gids)
{
	for (int i = 0; i < gids->count; i++)
		if (gids->entries[i].state == ROCI_GID_READY)
			return &gids->entries[i];
	return NULL;
}

/* Returns the place that an address had; -1: it is new. A link-local address is one only together
 * with its interface, whose number may be new after the interface was made again. */
static int place_of(const struct roci_gids *table, const struct roci_gid_entry *address)
{
	bool link_local = family_of(address->gid) == FAMILY_LINK_LOCAL;
	int found = -1;

	for (int i = 0; i < table->count; i++) {
		const struct roci_gid_entry *entry = &table->entries[i];

		if (entry->state != ROCI_GID_GONE || memcmp(entry->gid, address->gid, 16))
			continue;
		if (entry->ifindex == address->ifindex)
			return i;
		if (found < 0 && (!link_local || !strcmp(entry->ifname, address->ifname)))
			found = i;
	}
	return found;
}

static bool is_lost(const struct roci_gids *table, int i, uint32_t in_use)
{
	return table->entries[i].state == ROCI_GID_GONE && !(in_use >> i & 1);
}

/* Returns a place for a new address; -1: there is none. */
static int free_place(const struct roci_gids *table, const struct roci_gid_entry *address, uint32_t in_use)
{
	int oldest = -1;

	for (int i = 0; i < table->count; i++)
		if (is_lost(table, i, in_use) && !strcmp(table->entries[i].ifname, address->ifname) &&
		    family_of(table->entries[i].gid) == family_of(address->gid))
			return i;
	for (int i = 0; i < ROCI_MAX_GIDS; i++)
		if (table->entries[i].state == ROCI_GID_FREE)
			return i;
	for (int i = 0; i < table->count; i++)
		if (is_lost(table, i, in_use) &&
		    (oldest < 0 || table->entries[i].gone_at < table->entries[oldest].gone_at))
			oldest = i;
	return oldest;
}

static void put(struct roci_gids *table, int i, const struct roci_gid_entry *address)
{
	table->entries[i] = *address;
	if (table->count <= i)
		table->count = i + 1;
}

static bool is_same(const struct roci_gid_entry *a, const struct roci_gid_entry *b)
{
	return !memcmp(a->gid, b->gid, 16) && a->ifindex == b->ifindex;
}

static bool looks_the_same(const struct roci_gid_entry *a, const struct roci_gid_entry *b)
{
	if (!roci_gid_is_present(a) && !roci_gid_is_present(b))
		return true;
	return a->state == b->state && is_same(a, b) && !strcmp(a->ifname, b->ifname);
}

static void compare(const struct roci_gids *before, const struct roci_gids *after, struct roci_gid_change *change)
{
	for (int i = 0; i < ROCI_MAX_GIDS; i++) {
		const struct roci_gid_entry *old = &before->entries[i], *new = &after->entries[i];
		bool was = old->state == ROCI_GID_READY, is = new->state == ROCI_GID_READY, same = is_same(old, new);

		if (was && !(is && same))
			change->unready |= 1u << i;
		if (is && !(was && same))
			change->ready |= 1u << i;
		if (old->state != ROCI_GID_FREE && memcmp(old->gid, new->gid, 16))
			change->renewed |= 1u << i;
		change->visible |= !looks_the_same(old, new);
	}
}

struct roci_gid_change roci_gids_merge(struct roci_gids *table, const struct roci_gid_entry *now, int count,
				       uint32_t in_use)
{
	struct roci_gids before = *table;
	struct roci_gid_change change = {0};
	bool placed[ROCI_MAX_ADDRESSES] = {false};

	assert(count <= ROCI_MAX_ADDRESSES);
	table->merges++;
	for (int i = 0; i < table->count; i++) {
		if (!roci_gid_is_present(&table->entries[i]))
			continue;
		table->entries[i].state = ROCI_GID_GONE;
		table->entries[i].gone_at = table->merges;
	}
	for (int i = 0; i < count; i++) {
		int place = place_of(table, &now[i]);

		placed[i] = place >= 0;
		if (placed[i])
			put(table, place, &now[i]);
	}
	for (int i = 0; i < count; i++) {
		int place = placed[i] ? -1 : free_place(table, &now[i], in_use);

		if (place >= 0)
			put(table, place, &now[i]);
		else if (!placed[i])
			change.left_out++;
	}
	compare(&before, table, &change);
	return change;
}
