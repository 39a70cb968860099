/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static char room[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return ftw->level ? remove(path) : 0;
}

void room_empty(const char *dir)
{
	CHECK(!nftw(dir, remove_one, 32, FTW_PHYS | FTW_DEPTH));
}

static void leave(void)
{
	room_empty(room);
	rmdir(room);
}

const char *room_path(void)
{
	if (*room)
		return room;
	snprintf(room, sizeof(room), "%s/roci-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	CHECK(mkdtemp(room));
	atexit(leave);
	return room;
}
