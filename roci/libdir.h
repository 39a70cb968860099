/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds our libibverbs.so.1 and librdmacm.so.1, starting at the folder of this program. */
#ifndef ROCI_LIBDIR_H
#define ROCI_LIBDIR_H

#include <limits.h>

struct libdir {
	char verbs[PATH_MAX];       /* path of libibverbs.so.1 */
	char preload[2 * PATH_MAX]; /* that path, and that of librdmacm.so.1 if there is one: "A:B" */
	char search[2 * PATH_MAX];  /* their folders: "A:B" */
	char system[PATH_MAX];      /* the roci that has the system's libraries (machine.h); empty: this is it */
	char expected[PATH_MAX];    /* the folder of an installation, for messages */
};

/* Tries the build tree first, then an installation. Returns 0, or -1 with only `expected` filled in; that
 * is empty, too, where /proc is not mounted. */
int libdir_find(struct libdir *dirs);

#endif
