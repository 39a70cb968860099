/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/fd_limit.h"

#include <sys/resource.h>

#define WANTED 65536
#define OTHER  256 /* for connections, folders, devices */

unsigned fd_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur < WANTED) {
		rlim_t before = limit.rlim_cur;
		limit.rlim_cur = limit.rlim_max < WANTED ? limit.rlim_max : WANTED;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur > WANTED)
		limit.rlim_cur = WANTED;
	return limit.rlim_cur > OTHER ? (unsigned)(limit.rlim_cur - OTHER) : 0;
}

uint16_t fd_limit_share(unsigned *available, uint16_t entries)
{
	unsigned all = *available / FD_LIMIT_ENTRY, share = all / 2;

	if (share < FD_LIMIT_MIN_ENTRIES)
		share = all < FD_LIMIT_MIN_ENTRIES ? all : FD_LIMIT_MIN_ENTRIES;
	if (share > entries)
		share = entries;
	*available -= share * FD_LIMIT_ENTRY;
	return share ? (uint16_t)share : 1;
}
