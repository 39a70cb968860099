/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of file descriptors. It bounds the entries under way, each of which has files open. */
#ifndef ROCI_MOVER_FD_LIMIT_H
#define ROCI_MOVER_FD_LIMIT_H

#define FD_LIMIT_MIN_ENTRIES 16 /* entries under way, even if there are too few descriptors */

/* Raises the soft limit (RLIMIT_NOFILE) as far as useful and as the hard limit allows. Returns how many descriptors
 * entries may use; others are for connections, folders and devices. May return 0. */
unsigned fd_limit_raise(void);

#endif
