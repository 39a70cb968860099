/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads small files of /proc and /sys. */
#ifndef ROCI_DOCTOR_FILES_H
#define ROCI_DOCTOR_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor/doctor.h"

/* Opens a file below host->root for reading. NULL and errno: it cannot be. */
__attribute__((format(printf, 2, 3))) FILE *file_open(const struct doctor_host *host, const char *format, ...);

/* Reads the first line, without its line break, into `line`. False: there is no such file, or it is empty. */
__attribute__((format(printf, 4, 5))) bool file_line(const struct doctor_host *host, char *line, size_t size,
						     const char *format, ...);

/* As access(2). */
__attribute__((format(printf, 3, 4))) bool file_access(const struct doctor_host *host, int mode, const char *format,
						       ...);

/* Calls `each` for each entry of a folder, sorted by name, without those that begin with a dot. Returns how many. */
unsigned file_each(const struct doctor_host *host, const char *folder, void (*each)(void *context, const char *name),
		   void *context);

#endif
