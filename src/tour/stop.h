/* SPDX-License-Identifier: BSD-2-Clause */
/* How the loops of the tour learn that they shall end. */
#ifndef ROCI_TOUR_STOP_H
#define ROCI_TOUR_STOP_H

#include <stdbool.h>

/* Makes the descriptor. Call it before the others. 0 or a negative errno. */
int tour_stop_init(void);
/* May be called by a signal's handler and by any thread. */
void tour_stop(void);
bool tour_stopped(void);
/* Readable from tour_stop() on. */
int tour_stop_fd(void);

#endif
