/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the RDMA device of a command: a device of the machine, or the embedded one. */
#ifndef ROCI_DEVICE_H
#define ROCI_DEVICE_H

#include <stdbool.h>

#include "mover/mover.h"

struct command;

#define EMBEDDED_DEVICE "roci0"

struct device_choice {
	const char *name; /* NULL: rdma_cm chooses */
	bool embedded;
	char reason[160]; /* why it is the embedded device: "requested", "this machine has no RDMA device" */
};

/* Chooses by `wish`: the name of a device; "embedded"; or "auto" (also NULL): a device of the machine if one works,
 * else the embedded one. A device of the machine needs the system's libraries, the embedded one needs ours (machine.h):
 * where the others are loaded, the program is executed again, so call this before anything is read or started. Returns
 * MOVER_OK, or MOVER_NO_DEVICE with the cause in `why`. */
enum mover_status device_choose(const struct command *command, const char *wish, struct device_choice *choice,
				char why[512]);

#endif
