/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libdir.h"

#define INSTALLED "../" ROCI_LIBDIR "/rocinante"
#define MOVED     "../lib/rocinante"

/* Relative to the directory of this program: the build tree (BUILD/roci/roci), then an installation (PREFIX/bin/roci)
 * that may have been moved as a whole. `system` is the second program of each; the rows without it serve that one. */
static const struct {
	const char *verbs, *rdmacm, *system;
} places[] = {
	{"../src/verbs", "../src/rdmacm", "system/roci"},
	{INSTALLED, INSTALLED, INSTALLED "/roci"},
	{MOVED, MOVED, MOVED "/roci"},
	{"../../src/verbs", "../../src/rdmacm", NULL},
	{".", ".", NULL},
};

static bool own_directory(char dir[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	if (len <= 0)
		return false;
	dir[len] = '\0';
	char *slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* Finds the real path of BASE/RELATIVE/FILE. Returns false if that does not exist. */
static bool find(const char *base, const char *relative, const char *file, char path[PATH_MAX])
{
	char wanted[PATH_MAX];
	if ((size_t)snprintf(wanted, sizeof(wanted), "%s/%s/%s", base, relative, file) >= sizeof(wanted))
		return false;
	/* Resolve the directory only: the file may be a symlink to a name with a longer version. */
	char *slash = strrchr(wanted, '/'), dir[PATH_MAX];
	if (access(wanted, R_OK))
		return false;
	*slash = '\0';
	return realpath(wanted, dir) && (size_t)snprintf(path, PATH_MAX, "%s/%s", dir, file) < PATH_MAX;
}

static int dir_length(const char *path)
{
	return (int)(strrchr(path, '/') - path);
}

int libdir_find(struct libdir *dirs)
{
	char base[PATH_MAX], rdmacm[PATH_MAX];
	memset(dirs, 0, sizeof(*dirs));
	if (!own_directory(base))
		return -1;
	snprintf(dirs->expected, sizeof(dirs->expected), "%.2000s/%s", base, INSTALLED);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!find(base, places[i].verbs, "libibverbs.so.1", dirs->verbs))
			continue;
		int len = dir_length(dirs->verbs);
		if (places[i].system)
			snprintf(dirs->system, sizeof(dirs->system), "%.2000s/%s", base, places[i].system);
		if (find(base, places[i].rdmacm, "librdmacm.so.1", rdmacm)) {
			snprintf(dirs->preload, sizeof(dirs->preload), "%s:%s", dirs->verbs, rdmacm);
			snprintf(dirs->search, sizeof(dirs->search), "%.*s:%.*s", len, dirs->verbs, dir_length(rdmacm),
				 rdmacm);
		} else {
			snprintf(dirs->preload, sizeof(dirs->preload), "%s", dirs->verbs);
			snprintf(dirs->search, sizeof(dirs->search), "%.*s", len, dirs->verbs);
		}
		return 0;
	}
	return -1;
}
