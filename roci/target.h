/* SPDX-License-Identifier: BSD-2-Clause */
/* The last argument of `roci send`: where to. */
#ifndef ROCI_TARGET_H
#define ROCI_TARGET_H

#include <stdint.h>

struct target {
	char host[256];
	uint16_t port;           /* 0: none was given */
	const char *ticket_file; /* of "@FILE": host and port are in there. Points into the argument */
};

/* Reads "HOST", "HOST:PORT", "IPV6", "[IPV6]", "[IPV6]:PORT" or "@FILE". 0, or -EINVAL with what is wrong in *why. */
int target_parse(const char *text, struct target *target, const char **why);

#endif
