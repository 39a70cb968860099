/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/admission.h"

#include <netinet/in.h>
#include <string.h>

static bool competes(const struct admission_place *place, const struct admission_place *next, bool same_address)
{
	return place->proved == next->proved && (!same_address || memcmp(place->from, next->from, 16) == 0);
}

static unsigned competitors(const struct admission_place *places, unsigned count, const struct admission_place *next,
			    bool same_address)
{
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++)
		found += competes(&places[i], next, same_address);
	return found;
}

int admission_choose(const struct admission_place *places, unsigned count, const struct admission_place *next,
		     uint32_t random)
{
	unsigned same = competitors(places, count, next, true), all = competitors(places, count, next, false);
	bool same_address = same >= ADMISSION_PER_ADDRESS;
	unsigned nth;

	if (!same_address && all < ADMISSION_MAX)
		return -1;
	nth = random % (same_address ? same : all);
	for (unsigned i = 0;; i++)
		if (competes(&places[i], next, same_address) && nth-- == 0)
			return (int)i;
}

void admission_address(const struct sockaddr *address, uint8_t from[16])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	memset(from, 0, 16);
	if (address->sa_family == AF_INET) {
		memset(from + 10, 0xff, 2);
		memcpy(from + 12, &v4->sin_addr, 4);
	} else if (address->sa_family == AF_INET6) {
		bool whole = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);

		memcpy(from, &v6->sin6_addr, whole ? 16 : 8);
	}
}
