/* SPDX-License-Identifier: BSD-2-Clause */
/* "1 packet", "2 packets": for the texts of all rooms. */
#ifndef ROCI_WIRE_PLURAL_H
#define ROCI_WIRE_PLURAL_H

#include <stdint.h>

/* "" after 1, else "s". */
static inline const char *roci_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

#endif
