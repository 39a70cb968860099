/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/umask.h"

#include <stdio.h>

/* umask(2) returns the mask only by setting another, for all threads. So it is read from /proc. */
mode_t mover_umask(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned mask = 077;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "Umask: %o", &mask) == 1)
			break;
	if (status)
		fclose(status);
	return mask;
}
