/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static bool is_same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Finds the library of this name that LD_PRELOAD names with its path. False: there is none, or it is ours. */
static bool find_other(const char *name, const char *ours, char library[PATH_MAX])
{
	const char *preload = getenv("LD_PRELOAD");
	size_t len;

	for (; preload && *preload; preload += len + !!preload[len]) {
		const char *slash;

		len = strcspn(preload, " :");
		if (len >= PATH_MAX)
			continue;
		memcpy(library, preload, len);
		library[len] = '\0';
		slash = strrchr(library, '/');
		if (slash && !strncmp(slash + 1, name, strlen(name)) && !is_same_file(library, ours))
			return true;
	}
	return false;
}

/* Another Rocinante may be preloaded: both of its libraries, of which libibverbs is known by a function of its own. */
bool preload_is_in_the_way(char library[PATH_MAX])
{
	struct libdir dirs;
	char *rdmacm;

	if (libdir_find(&dirs))
		return false;
	rdmacm = strchr(dirs.preload, ':');
	if (find_other("libibverbs.so.", dirs.verbs, library))
		return !dlsym(RTLD_DEFAULT, "roci_cm_create");
	return find_other("librdmacm.so.", rdmacm ? rdmacm + 1 : "", library);
}

/* Libraries that are preloaded already stay in front: a sanitizer must come first. */
int preload_environment(const struct command *command)
{
	char library[PATH_MAX];
	struct libdir dirs;
	if (preload_is_in_the_way(library)) {
		complain(command, PRELOAD_IN_THE_WAY, library);
		return -1;
	}
	if (libdir_find(&dirs)) {
		if (*dirs.expected)
			complain(command, "Rocinante's libibverbs.so.1 is missing from %s; install Rocinante again",
				 dirs.expected);
		else
			complain(command, "/proc/self/exe cannot be read, so it is not known where Rocinante's "
					  "libraries are; mount /proc, which roci0 needs as well");
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
