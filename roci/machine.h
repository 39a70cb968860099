/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which libraries this process has. `roci` is linked twice, of the same objects. The one that people call looks for
 * libibverbs.so.1 and librdmacm.so.1 in our folder first (DT_RPATH), so it has roci0 from its start. But it sees no
 * device of the machine, and not the machine's /sys/class/infiniband. The other one (libdir.h: `system`) has the
 * system's libraries, and is executed where the machine is what matters.
 */
#ifndef ROCI_MACHINE_H
#define ROCI_MACHINE_H

#include <stdbool.h>

/* Whether the kernel has an RDMA device, or does not tell. */
bool machine_may_have_device(void);

/* Executes this command line again with the system's libraries, so call it before anything is read or started. Returns
 * 0 if they are loaded already, or -1 with the cause in `why`. Libraries that `roci run` preloads stay in front. */
int machine_execute(char why[512]);

#endif
