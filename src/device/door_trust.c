/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/door_trust.h"

#include <string.h>
#include <unistd.h>

#include "device/port_holder.h"

#define KEEP_NS  1000000000 /* what was read is believed for so long */
#define PAUSE_NS 100000000  /* between readings */

void roci_door_trust_init(struct roci_door_trust *trust)
{
	*trust = (struct roci_door_trust){.tables = ROCI_PORT_TABLES,
					  .unmapped = roci_unmapped_user(ROCI_UID_MAP, ROCI_OVERFLOW_UID)};
}

static bool is_user(const struct roci_door_users *port, uint32_t uid)
{
	for (unsigned i = 0; i < port->count; i++)
		if (port->users[i] == uid)
			return true;
	return false;
}

/* A socket that fits closer hides the others from what comes to the address. */
static void add_user(struct roci_door_users *port, const struct roci_port_holder *holder)
{
	unsigned fit = roci_port_fit(holder->gid, port->gid);

	if (!fit || fit < port->fit)
		return;
	if (fit > port->fit)
		port->count = 0;
	port->fit = fit;
	if (!is_user(port, holder->uid) && port->count < ROCI_DOOR_TRUST_USERS)
		port->users[port->count++] = holder->uid;
}

static bool see(void *context, const struct roci_port_holder *holder)
{
	struct roci_door_trust *trust = context;

	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		add_user(&trust->ports[i], holder);
	return true;
}

static void read_holders(struct roci_door_trust *trust, uint64_t now, const struct roci_gids *gids)
{
	trust->read_at = now;
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++) {
		trust->ports[i].fit = trust->ports[i].count = 0;
		memcpy(trust->ports[i].gid, gids->entries[i].gid, 16);
	}
	roci_all_port_holders(trust->tables, see, trust);
}

bool roci_door_trusts(struct roci_door_trust *trust, uint64_t now, const struct roci_gids *gids, uint32_t uid,
		      const uint8_t gid[16])
{
	const struct roci_door_users *port;
	uint64_t age;
	int index;

	if (uid == trust->unmapped || uid == ROCI_NO_USER)
		return false;
	if (uid == getuid())
		return true;
	index = roci_gids_find(gids, gid, 0);
	if (index < 0)
		return false;
	port = &trust->ports[index];
	age = trust->read_at ? now - trust->read_at : UINT64_MAX;
	if (age > KEEP_NS || (age > PAUSE_NS && (memcmp(port->gid, gid, 16) || !is_user(port, uid))))
		read_holders(trust, now, gids);
	return !memcmp(port->gid, gid, 16) && is_user(port, uid);
}
