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

/* All zero at first. */
struct roci_door_trust {
	struct {
		uint64_t read_at; /* 0: never */
		uint32_t users[ROCI_DOOR_TRUST_USERS];
		unsigned count;
	} ports[ROCI_MAX_GIDS];
};

/* Whether a packet to `gid` may come from user `uid`. Who has the port is read again once in a second, and where
 * somebody else sends ten times: he may have it by now, or flood us. A gid that is not in the table is nobody's. */
bool roci_door_trusts(struct roci_door_trust *trust, uint64_t now, const struct roci_gids *gids, uint32_t uid,
		      const uint8_t gid[16]);

#endif
