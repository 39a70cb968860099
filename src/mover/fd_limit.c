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
