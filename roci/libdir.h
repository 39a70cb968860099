/* SPDX-License-Identifier: BSD-2-Clause */
/* Where our libibverbs.so.1 and librdmacm.so.1 are, seen from this program. */
#ifndef ROCI_LIBDIR_H
#define ROCI_LIBDIR_H

#include <limits.h>

struct libdir {
	char verbs[PATH_MAX];       /* path of libibverbs.so.1 */
	char preload[2 * PATH_MAX]; /* it, and librdmacm.so.1 where there is one, with a colon between */
	char search[2 * PATH_MAX];  /* their directories, likewise */
	char expected[PATH_MAX];    /* the first place looked at, for the message */
};

/* Looks in the build tree first, then where they are installed. 0, or -1 with only `expected` filled in. */
int libdir_find(struct libdir *dirs);

#endif
