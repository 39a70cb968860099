/* SPDX-License-Identifier: BSD-2-Clause */
/* A temporary folder for a test, and short ways to fill it and to look into it. Paths are relative to it; what fails
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
void room_close(struct room *room); /* removes it and all that is in it */

/* Of a path below it: absolute; valid until the fourth call from here. */
const char *room_path(const struct room *room, const char *name);

void room_write(const struct room *room, const char *name, const void *bytes, size_t len);
void room_mkdir(const struct room *room, const char *name);

bool room_has(const struct room *room, const char *name);
struct stat room_stat(const struct room *room, const char *name);
bool room_holds(const struct room *room, const char *name, const void *bytes, size_t len);
/* Names in a folder of it, "." and ".." not counted. */
size_t room_count(const struct room *room, const char *name);

/* Entries, with a mode of 0640 and a time of their own. `name` lives on. */
struct mover_entry entry_file(const char *name, uint64_t size);
struct mover_entry entry_folder(const char *name, uint32_t mode);
struct mover_entry entry_link(const char *name, const char *target);

#endif
