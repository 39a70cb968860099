/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mover/folder.h"

#define MANY (2 * FOLDER_CHANGED)

static dev_t watched; /* how often this file system was synced as a whole */
static unsigned synced;

int syncfs(int fd)
{
	struct stat st;

	synced += !fstat(fd, &st) && st.st_dev == watched;
	return (int)syscall(SYS_syncfs, fd);
}

static void change(struct folders *folders, const char *where, int number)
{
	struct folder *folder;
	const char *leaf;
	char name[40];

	snprintf(name, sizeof(name), "%s%d/file", where, number);
	assert_int_equal(mover_folder_get(folders, name, &folder, &leaf), 0);
	mover_folder_changed(folders, folder);
	mover_folder_put(folders, folder);
}

/* A mount in the receiver's folder. More of its folders change than are synced one by one: all of it is synced, whether
 * or not folders of the receiver's own file system have changed before. */
static void many_folders_of_another_file_system(void **state)
{
	struct folders folders;
	struct room room;
	char name[40];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip(); /* not root */
	room_open(&room);
	room_mkdir(&room, "mount");
	assert_int_equal(mount("tmpfs", room_path(&room, "mount"), "tmpfs", 0, NULL), 0);
	watched = room_stat(&room, "mount").st_dev;
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "mount/%d", i);
		room_mkdir(&room, name);
		room_mkdir(&room, strchr(name, '/') + 1);
	}
	for (int here_first = 0; here_first < 2; here_first++) {
		assert_int_equal(mover_folders_create(&folders, open(room.path, O_RDONLY | O_DIRECTORY)), 0);
		synced = 0;
		for (int i = 0; here_first && i < MANY; i++)
			change(&folders, "", i);
		for (int i = 0; i < MANY; i++)
			change(&folders, "mount/", i);
		assert_int_equal(mover_folders_sync(&folders, 0), 0);
		assert_int_equal(synced, 1);
		assert_int_equal(mover_folders_sync(&folders, 0), 0);
		assert_int_equal(synced, 1);
		mover_folders_destroy(&folders);
	}
	assert_int_equal(umount2(room_path(&room, "mount"), MNT_DETACH), 0);
	room_close(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(many_folders_of_another_file_system)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
