/* SPDX-License-Identifier: BSD-2-Clause */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "libdir.h"
#include "rdma_link.h"

/* libibverbs looks there if there is no netlink, behind a filter of system calls, say. Our libibverbs.so.1 exchanges
 * the absolute path for one of roci0's (verbs/sysfs/sysfs.h). */
static bool has_verbs_in_sysfs(void)
{
	int class = open("/sys/class", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool has;

	if (class < 0)
		return false;
	has = !faccessat(class, "infiniband_verbs", F_OK, 0);
	close(class);
	return has;
}

bool machine_may_have_device(void)
{
	int fd = rdma_link_open(), any;

	if (fd < 0)
		return has_verbs_in_sysfs();
	any = rdma_link_any(fd);
	close(fd);
	return any != 0;
}

int machine_execute(char why[512])
{
	struct libdir dirs;

	if (libdir_find(&dirs) || !*dirs.system)
		return 0;
	execv(dirs.system, command_line);
	snprintf(why, 512, "cannot load the system's RDMA libraries: %.350s: %s; install Rocinante again", dirs.system,
		 strerror(errno));
	return -1;
}
