/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the counters of a process, and says why there are none. */
#ifndef ROCI_STATS_FIND_H
#define ROCI_STATS_FIND_H

#include "device/stats_file.h"

#define STATS_WHY_CHARS 256

/* Reads the counters of process `pid`: from its own $ROCI_RUNDIR if it has one, or where processes of this user keep
 * them. Returns 0, or a negative errno with the reason and the next step in `why`. */
int stats_find(long pid, struct roci_stats_file *out, bool *alive, char why[STATS_WHY_CHARS]);

/* The same, and the directory of the file. */
int stats_find_in(long pid, struct roci_stats_file *out, bool *alive, char dir[ROCI_RUNDIR_MAX + 1],
		  char why[STATS_WHY_CHARS]);

/* Whether queue pairs of this process have a peer on this host with which roci0 exchanges no packets. */
bool stats_own_local_path(void);

/* The pids of this user whose counters there are, in order; at most `max`. Returns how many. */
size_t stats_list(long *pids, size_t max);

#endif
