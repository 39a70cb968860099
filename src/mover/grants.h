/* SPDX-License-Identifier: BSD-2-Clause */
/* How many windows the next GRANT names. Pure.
 *
 * To register a window takes the kernel a millisecond or so the first time, because its pages have to be made. So the
 * first GRANT does not wait until many are registered: what is registered already goes at once; if nothing is, GRANTs
 * grow from one window, each as large as all before it and one more. They cannot all name one window: a GRANT costs a
 * credit, which comes back after a round trip. */
#ifndef ROCI_MOVER_GRANTS_H
#define ROCI_MOVER_GRANTS_H

#include <stdint.h>

#define GRANTS_AT_ONCE 16

/* `registered` of the `free` windows need no work; `granted` were granted before, in this session. At most `free`. */
static inline unsigned grants_next(unsigned registered, unsigned free, uint64_t granted)
{
	uint64_t count = registered > granted ? registered : granted + 1;

	if (count > GRANTS_AT_ONCE)
		count = GRANTS_AT_ONCE;
	return count < free ? (unsigned)count : free;
}

#endif
