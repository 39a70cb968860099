/* SPDX-License-Identifier: BSD-2-Clause */
/* Which RDMA device a command uses: one that the machine has, or the embedded one. */
#ifndef ROCI_DEVICE_H
#define ROCI_DEVICE_H

#include <stdbool.h>

#include "mover/mover.h"

struct command;

#define EMBEDDED_DEVICE "roci0"

struct device_choice {
	const char *name; /* NULL: whichever rdma_cm picks */
	bool embedded;
	char reason[160]; /* why the embedded one: "requested", "this machine has no RDMA device" */
};

/* `wish`: a name, "embedded", or "auto" (also NULL), which takes what the machine has, and the embedded device where
 * there is nothing that works. To get the embedded device the program executes itself again, with our libraries in
 * front of the system's: so call this before anything is read or started. Returns MOVER_OK, or MOVER_NO_DEVICE with the
 * cause in `why`. */
enum mover_status device_choose(const struct command *command, const char *wish, struct device_choice *choice,
				char why[512]);

#endif
