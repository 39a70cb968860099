/* SPDX-License-Identifier: BSD-2-Clause */
/* How ^C ends a command in good order. */
#ifndef ROCI_SIGNALS_H
#define ROCI_SIGNALS_H

/* From now on, SIGINT, SIGTERM and SIGHUP call `stop`, which must be safe in a signal's handler; the second signal of a
 * kind kills. SIGPIPE is ignored, so write(2) returns an error. */
void signals_catch(void (*stop)(void));

#endif
