/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(): the device accesses registered memory by its virtual address in the process that registered it. So
 * copy-on-write is harmless, and no range needs a mark. A child starts without a device.
 */
#include "verbs/public.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
