/* SPDX-License-Identifier: BSD-2-Clause */
/* How many files may be open at once: every entry under way has some. */
#ifndef ROCI_MOVER_FD_LIMIT_H
#define ROCI_MOVER_FD_LIMIT_H

#define FD_LIMIT_MIN_ENTRIES 16 /* under way, however few descriptors there are */

/* Raises the soft limit (RLIMIT_NOFILE) as far as is of use and as the hard one lets it. Returns how many descriptors
 * there are for entries, beside those of connections, folders and devices; may be 0. */
unsigned fd_limit_raise(void);

#endif
