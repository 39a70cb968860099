/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/door_trust.h"

#include <unistd.h>

#include "device/port_holder.h"

#define KEEP_NS  1000000000 /* what was read is believed for so long */
#define PAUSE_NS 100000000  /* between readings */

static bool is_user(const struct roci_door_trust *trust, int port, uint32_t uid)
{
	for (unsigned i = 0; i < trust->ports[port].count; i++)
		if (trust->ports[port].users[i] == uid)
			return true;
	return false;
}

struct reading {
	struct roci_door_trust *trust;
	int port;
};

static bool see(void *context, const struct roci_port_holder *holder)
{
	struct reading *reading = context;
	unsigned *count = &reading->trust->ports[reading->port].count;

	if (!is_user(reading->trust, reading->port, holder->uid))
		reading->trust->ports[reading->port].users[(*count)++] = holder->uid;
	return *count < ROCI_DOOR_TRUST_USERS;
}

bool roci_door_trusts(struct roci_door_trust *trust, uint64_t now, const struct roci_gids *gids, uint32_t uid,
		      const uint8_t gid[16])
{
	struct reading reading = {trust, roci_gids_find(gids, gid, 0)};
	uint64_t age;

	if (uid == getuid())
		return true;
	if (reading.port < 0)
		return false;
	age = trust->ports[reading.port].read_at ? now - trust->ports[reading.port].read_at : UINT64_MAX;
	if (age > KEEP_NS || (age > PAUSE_NS && !is_user(trust, reading.port, uid))) {
		trust->ports[reading.port].count = 0;
		trust->ports[reading.port].read_at = now;
		roci_port_holders(gid, see, &reading);
	}
	return is_user(trust, reading.port, uid);
}
