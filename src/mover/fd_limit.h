/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of file descriptors. It bounds the entries under way, each of which has files open. */
#ifndef ROCI_MOVER_FD_LIMIT_H
#define ROCI_MOVER_FD_LIMIT_H

#include <stdint.h>

#define FD_LIMIT_MIN_ENTRIES 16 /* entries under way: fewer are slow */
#define FD_LIMIT_ENTRY       3  /* descriptors of one: the temporary file, its journal, the file that is compared */

/* Raises the soft limit (RLIMIT_NOFILE) as far as useful and as the hard limit allows. Returns how many descriptors
 * entries may use; others are for connections, folders and devices. May return 0. */
unsigned fd_limit_raise(void);

/* For how many entries a receiver's session that asks for `entries` gets descriptors; takes them from *available. One
 * session gets at most half of them, because others may come, but FD_LIMIT_MIN_ENTRIES as long as there are enough. If
 * there is none left, it gets 1 all the same: entries then follow one another. Pure. */
uint16_t fd_limit_share(unsigned *available, uint16_t entries);

#endif
