/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table: every address of the host that is fit for use, the most useful first. */
#ifndef ROCI_DEVICE_GID_H
#define ROCI_DEVICE_GID_H

#include <stdint.h>

#include "engine/limits.h"

struct roci_gid_entry {
	uint8_t gid[16];
	uint32_t ifindex;
	uint32_t if_mtu;   /* bytes */
	uint32_t path_mtu; /* the IB MTU it allows: 256..4096 bytes */
	uint8_t mac[6];
	char ifname[16];
};

struct roci_gids {
	struct roci_gid_entry entries[ROCI_MAX_GIDS];
	int count;
};

/* The table of the host as it is now: primary IPv4, other IPv4, global IPv6, link-local, loopback. Works without a
 * device. Returns the number of entries, at most `max`, or a negative errno. */
int roci_gid_table(struct roci_gid_entry *entries, int max);

/* Returns the index of an address of this host, on interface `ifindex` (0: on any); -1: it is not of this host. */
int roci_gids_find(const struct roci_gids *gids, const uint8_t gid[16], uint32_t ifindex);

#define ROCI_GID_TEXT 46 /* INET6_ADDRSTRLEN */
/* Writes the address as people write it. */
void roci_gid_text(const uint8_t gid[16], char text[ROCI_GID_TEXT]);

/* Writes the device's GUID, in network order: the EUI-64 (RFC 4291, appendix A) of the first hardware address in the
 * table, or, where no interface has one, of a locally administered constant. */
void roci_gid_guid(const struct roci_gid_entry *entries, int count, uint8_t guid[8]);

#endif
