/* SPDX-License-Identifier: BSD-2-Clause */
/* How loops notice mover_stop(). */
#ifndef ROCI_MOVER_STOP_H
#define ROCI_MOVER_STOP_H

#include <stdbool.h>

/* Readable once mover_stop() has been called. One for the process; do not close or read it. -1: could not be made. */
int mover_stop_fd(void);
bool mover_stopped(void);

#endif
