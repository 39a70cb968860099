/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID table: every address of the host that is fit for use. A new table has the most useful first. While the device
 * is open the table follows the host (gid_merge.c): an entry keeps its index, and an address that comes back gets its
 * index again.
 */
#ifndef ROCI_DEVICE_GID_H
#define ROCI_DEVICE_GID_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/limits.h"

/* The addresses of a host that are looked at; the table has places for the most useful ROCI_MAX_GIDS. */
#define ROCI_MAX_ADDRESSES 256

enum roci_gid_state {
	ROCI_GID_FREE, /* an empty place */
	ROCI_GID_READY,
	ROCI_GID_TENTATIVE, /* IPv6 looks for duplicates (RFC 4862): it has its index, but cannot be used yet */
	ROCI_GID_GONE,      /* the host does not have it any more: programs see an empty place */
};

struct roci_gid_entry {
	uint8_t gid[16];
	enum roci_gid_state state;
	uint32_t ifindex;
	uint32_t if_mtu;   /* bytes */
	uint32_t path_mtu; /* the IB MTU it allows: 256..4096 bytes */
	uint32_t gone_at;  /* of a GONE entry: the table's `merges` then */
	uint8_t mac[6];
	char ifname[16];
};

struct roci_gids {
	struct roci_gid_entry entries[ROCI_MAX_GIDS];
	int count;       /* places up to the last that is not FREE */
	uint32_t merges; /* so far */
};

/* True where the host has the address. */
static inline bool roci_gid_is_present(const struct roci_gid_entry *entry)
{
	return entry->state == ROCI_GID_READY || entry->state == ROCI_GID_TENTATIVE;
}

/* The addresses of the host as it is now: primary IPv4, other IPv4, global IPv6, link-local, loopback. Tentative ones
 * stand where they will be when they are ready. Works without a device. Returns the number of entries, at most `max`,
 * or a negative errno. */
int roci_gid_table(struct roci_gid_entry *entries, int max);

/* Returns the index of an address that the host has, on interface `ifindex` (0: on any); -1: it is not of this host. */
int roci_gids_find(const struct roci_gids *gids, const uint8_t gid[16], uint32_t ifindex);
/* Returns the first entry that is READY; NULL: there is none, and the port is down. */
const struct roci_gid_entry *roci_gids_first(const struct roci_gids *gids);

/* What a merge changed. Bit i is index i. */
struct roci_gid_change {
	uint32_t unready; /* was READY, and is not; or is another address, or on another interface now */
	uint32_t ready;   /* is READY, and was not, or not this address on this interface */
	uint32_t renewed; /* is another address than before: nothing of the old one applies */
	bool visible;     /* programs see other GIDs or other interfaces */
	int left_out;     /* addresses that found no place */
};

/* Brings the table up to date with the `count` addresses that the host has now, as roci_gid_table() orders them.
 *
 * An address keeps its index, also when its interface changes (link-local ones: while the interface's name is the
 * same). One that the host lost keeps its place for its return. A new one takes the place of a lost one of its family
 * and interface (a DHCP server gave another address), else the first free place, else that of the one lost longest ago.
 * Places in `in_use` (bit i: index i) are not given away. */
struct roci_gid_change roci_gids_merge(struct roci_gids *table, const struct roci_gid_entry *now, int count,
				       uint32_t in_use);

#define ROCI_GID_TEXT 46 /* INET6_ADDRSTRLEN */
/* Writes the address as people write it. */
void roci_gid_text(const uint8_t gid[16], char text[ROCI_GID_TEXT]);

/* Writes the device's GUID, in network order: the EUI-64 (RFC 4291, appendix A) of the first hardware address in the
 * table, or, where no interface has one, of a locally administered constant. */
void roci_gid_guid(const struct roci_gid_entry *entries, int count, uint8_t guid[8]);

#endif
