/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ROCI_DEVICE_SAY_H
#define ROCI_DEVICE_SAY_H

/* Writes a line to standard error, as a whole, and no cancellation point. stdio needs 8 KB of the stack for that, which
 * threads of programs may not have. */
__attribute__((format(printf, 1, 2))) void roci_device_say(const char *format, ...);

#endif
