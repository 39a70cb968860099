/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "libdir.h"
#include "preload.h"

/* Sets `name` to "first:second", or to the one that is not empty. */
static int set_joined(const char *name, const char *first, const char *second)
{
	char *value;
	if (!first || !*first || !second || !*second)
		return setenv(name, first && *first ? first : second, 1);
	if (asprintf(&value, "%s:%s", first, second) < 0)
		return -1;
	int result = setenv(name, value, 1);
	free(value);
	return result;
}

/* Libraries that are preloaded already stay in front: a sanitizer must come first. */
int preload_environment(const struct command *command)
{
	struct libdir dirs;
	if (libdir_find(&dirs)) {
		complain(command, "Rocinante's libibverbs.so.1 is missing from %s; install Rocinante again",
			 dirs.expected);
		return -1;
	}
	if (strpbrk(dirs.preload, " ;") || strchr(dirs.verbs, ':')) {
		complain(command,
			 "the loader cannot preload a path with a space, colon or semicolon: %s; move Rocinante to "
			 "another folder",
			 dirs.verbs);
		return -1;
	}
	if (set_joined("LD_PRELOAD", getenv("LD_PRELOAD"), dirs.preload) ||
	    set_joined("LD_LIBRARY_PATH", dirs.search, getenv("LD_LIBRARY_PATH"))) {
		complain(command, "out of memory");
		return -1;
	}
	return 0;
}
