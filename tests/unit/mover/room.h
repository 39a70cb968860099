/* SPDX-License-Identifier: BSD-2-Clause */
/* A temporary folder for a test, and short functions to fill and to inspect it. Paths are relative to it. A failure
 * ends the test. */
#ifndef ROCI_TESTS_ROOM_H
#define ROCI_TESTS_ROOM_H

#include "../test.h" /* IWYU pragma: export */

#include <stdbool.h>
#include <sys/stat.h>

#include "mover/entry.h"

struct room {
	char path[64];
	int fd;
};

void room_open(struct room *room);
void room_close(struct room *room); /* removes it with its content */

/* The absolute path of a name in it. Valid for the next three calls. */
const char *room_path(const struct room *room, const char *name);

void room_write(const struct room *room, const char *name, const void *bytes, size_t len);
void room_mkdir(const struct room *room, const char *name);

bool room_has(const struct room *room, const char *name);
struct stat room_stat(const struct room *room, const char *name);
bool room_holds(const struct room *room, const char *name, const void *bytes, size_t len);
/* How many names are in a folder of it, without "." and "..". */
size_t room_count(const struct room *room, const char *name);

/* Entries with mode 0640 and a fixed time. They keep the pointer `name`. */
struct mover_entry entry_file(const char *name, uint64_t size);
struct mover_entry entry_folder(const char *name, uint32_t mode);
struct mover_entry entry_link(const char *name, const char *target);

#endif
