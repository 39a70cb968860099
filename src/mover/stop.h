/* SPDX-License-Identifier: BSD-2-Clause */
/* How loops learn of mover_stop(). */
#ifndef ROCI_MOVER_STOP_H
#define ROCI_MOVER_STOP_H

#include <stdbool.h>

/* Readable once mover_stop() has been called; belongs to the process. -1 where there is none. */
int mover_stop_fd(void);
bool mover_stopped(void);

#endif
