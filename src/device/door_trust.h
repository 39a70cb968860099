/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which users a side door takes packets from: this process's own, and those who have UDP port 4791 of the address that
 * the packet came to. The latter receive, and could forge, what comes from the network anyway. From all others a packet
 * is refused: it could claim to come from any address, which no other socket of an ordinary user can.
 */
#ifndef ROCI_DEVICE_DOOR_TRUST_H
#define ROCI_DEVICE_DOOR_TRUST_H

#include <stdbool.h>

#include "device/gid.h"

#define ROCI_DOOR_TRUST_USERS 4 /* of one port; mostly there is one */

/* roci_door_trust_init() first. */
struct roci_door_trust {
	const char *tables; /* the folder of udp and udp6 */
	uint32_t unmapped;  /* roci_unmapped_user() */
	uint64_t read_at;   /* 0: never */
	struct roci_door_users {
		uint8_t gid[16];
		unsigned fit; /* of their sockets: roci_port_fit() */
		uint32_t users[ROCI_DOOR_TRUST_USERS];
		unsigned count;
	} ports[ROCI_MAX_GIDS];
};

void roci_door_trust_init(struct roci_door_trust *trust);

/* Whether a packet to `gid` may come from user `uid`. Who has the ports of all addresses is read at once, again once in
 * a second, and where somebody else sends ten times: he may have one by now, or flood us. A gid that is not in the
 * table is nobody's. A user without a number of his own (`unmapped`) is refused, be it ours. */
bool roci_door_trusts(struct roci_door_trust *trust, uint64_t now, const struct roci_gids *gids, uint32_t uid,
		      const uint8_t gid[16]);

#endif
