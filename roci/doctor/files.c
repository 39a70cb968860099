/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/files.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void build_path(char path[PATH_MAX], const struct doctor_host *host, const char *format, va_list arguments)
{
	size_t len = (size_t)snprintf(path, PATH_MAX, "%s", host->root);

	if (len < PATH_MAX)
		vsnprintf(path + len, PATH_MAX - len, format, arguments);
}

FILE *file_open(const struct doctor_host *host, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	build_path(path, host, format, arguments);
	va_end(arguments);
	return fopen(path, "re");
}

bool file_line(const struct doctor_host *host, char *line, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	FILE *file;
	bool got;

	va_start(arguments, format);
	build_path(path, host, format, arguments);
	va_end(arguments);
	file = fopen(path, "re");
	got = file && fgets(line, (int)size, file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
	return got && *line;
}

bool file_access(const struct doctor_host *host, int mode, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	build_path(path, host, format, arguments);
	va_end(arguments);
	return !access(path, mode);
}

unsigned file_each(const struct doctor_host *host, const char *folder, void (*each)(void *context, const char *name),
		   void *context)
{
	char path[PATH_MAX];
	struct dirent **entries;
	unsigned count = 0;
	int n;

	snprintf(path, sizeof(path), "%s%s", host->root, folder);
	n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			each(context, entries[i]->d_name);
			count++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return count;
}
