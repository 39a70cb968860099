/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mover/walk.h"

/* What was left out: "path: why\n" for each. */
static char warnings[16384];

static void warn(void *context, const char *path, const char *why)
{
	size_t at = strlen(warnings);

	snprintf(warnings + at, sizeof(warnings) - at, "%s: %s\n", path, why);
}

static int walk_rc(const char *const *paths, size_t count, struct mover_walk **walk, size_t *bad)
{
	warnings[0] = 0;
	return mover_walk_create(paths, count, NULL, warn, NULL, walk, bad);
}

static struct mover_walk *walk_one(const char *path)
{
	struct mover_walk *walk;
	size_t bad;

	assert_int_equal(walk_rc(&path, 1, &walk, &bad), 0);
	return walk;
}

static const char *name_at(const struct mover_walk *walk, size_t index)
{
	static char name[MOVER_PATH_MAX + 1];
	const struct mover_entry *entry = mover_walk_entry(walk, index);

	memcpy(name, entry->name, entry->name_len);
	name[entry->name_len] = 0;
	return name;
}

static void expect_names(const struct mover_walk *walk, size_t count, const char *const *names)
{
	for (size_t i = 0; i < count && i < mover_walk_count(walk); i++)
		assert_string_equal(name_at(walk, i), names[i]);
	assert_int_equal(mover_walk_count(walk), count);
}

#define EXPECT(walk, ...)                                                                                              \
	do {                                                                                                           \
		const char *const names_[] = {__VA_ARGS__};                                                            \
		expect_names(walk, sizeof(names_) / sizeof(*names_), names_);                                          \
	} while (0)

static void fill_room(struct room *room)
{
	room_open(room);
	room_mkdir(room, "dir");
	room_mkdir(room, "dir/b");
	room_write(room, "dir/b/x", "12345", 5);
	room_write(room, "dir/b-", "", 0); /* '-' sorts before '/' */
	room_write(room, "dir/a\n\xff", "1", 1);
	assert_int_equal(symlinkat("../nowhere", room->fd, "dir/link"), 0);
	room_mkdir(room, "dir/empty");
	room_write(room, "file", "123", 3);
}

static void folders_before_what_is_in_them_in_byte_order(void **state)
{
	struct room room;
	struct mover_walk *walk;
	const struct mover_entry *entry;

	fill_room(&room);
	assert_int_equal(fchmodat(room.fd, "dir/b/x", 0421, 0), 0);
	assert_int_equal(utimensat(room.fd, "dir/b/x", (struct timespec[2]){{0, 0}, {-5, 999999999}}, 0), 0);
	walk = walk_one(room_path(&room, "dir"));
	EXPECT(walk, "dir", "dir/a\n\xff", "dir/b", "dir/b/x", "dir/b-", "dir/empty", "dir/link");
	assert_string_equal(warnings, "");
	assert_int_equal(mover_walk_bytes(walk), 6);
	entry = mover_walk_entry(walk, 3);
	assert_int_equal(entry->kind, MOVER_FILE);
	assert_int_equal(entry->size, 5);
	assert_int_equal(entry->mode, 0421);
	assert_int_equal(entry->mtime_s, -5);
	assert_int_equal(entry->mtime_ns, 999999999);
	assert_int_equal(mover_walk_entry(walk, 2)->kind, MOVER_FOLDER);
	entry = mover_walk_entry(walk, 6);
	assert_int_equal(entry->kind, MOVER_SYMLINK);
	assert_int_equal(entry->target_len, 10);
	assert_int_equal(entry->size, 10);
	assert_memory_equal(entry->target, "../nowhere", 10);
	mover_walk_destroy(walk);
	room_close(&room);
}

static void arguments_with_and_without_their_name(void **state)
{
	struct room room;
	struct mover_walk *walk;
	char path[300];

	fill_room(&room);
	assert_int_equal(symlinkat("dir", room.fd, "to-dir"), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", room_path(&room, "dir"),
			 (const char *[]){"/", "/.", "//", "/b/.."}[i]);
		walk = walk_one(path);
		EXPECT(walk, "a\n\xff", "b", "b/x", "b-", "empty", "link");
		mover_walk_destroy(walk);
	}
	walk = walk_one(room_path(&room, "dir/b"));
	EXPECT(walk, "b", "b/x");
	mover_walk_destroy(walk);
	walk = walk_one(room_path(&room, "file"));
	EXPECT(walk, "file");
	mover_walk_destroy(walk);
	/* a symbolic link is sent as such, unless a slash follows its name */
	walk = walk_one(room_path(&room, "to-dir"));
	EXPECT(walk, "to-dir");
	assert_int_equal(mover_walk_entry(walk, 0)->kind, MOVER_SYMLINK);
	mover_walk_destroy(walk);
	walk = walk_one(room_path(&room, "to-dir/"));
	assert_int_equal(mover_walk_count(walk), 6);
	assert_true(mover_walk_open(walk, 0) >= 0);
	mover_walk_destroy(walk);
	walk = walk_one(room_path(&room, "dir/empty/"));
	assert_int_equal(mover_walk_count(walk), 0);
	mover_walk_destroy(walk);
	/* from the current folder */
	assert_int_equal(fchdir(room.fd), 0);
	walk = walk_one("dir");
	assert_string_equal(name_at(walk, 0), "dir");
	mover_walk_destroy(walk);
	walk = walk_one(".");
	assert_string_equal(name_at(walk, 0), "dir");
	assert_int_equal(mover_walk_count(walk), 9);
	mover_walk_destroy(walk);
	assert_int_equal(chdir("/"), 0);
	room_close(&room);
}

static void expect_bad(size_t count, const char *const *paths, int rc, size_t bad)
{
	struct mover_walk *walk;
	size_t index = 99;

	assert_int_equal(walk_rc(paths, count, &walk, &index), rc);
	assert_null(walk);
	assert_int_equal(index, bad);
}

#define BAD(rc, bad, ...)                                                                                              \
	do {                                                                                                           \
		const char *const paths_[] = {__VA_ARGS__};                                                            \
		expect_bad(sizeof(paths_) / sizeof(*paths_), paths_, rc, bad);                                         \
	} while (0)

static void bad_arguments(void **state)
{
	struct room room;

	fill_room(&room);
	assert_int_equal(mkfifoat(room.fd, "fifo", 0600), 0);
	room_write(&room, ".roci-12.part", "", 0);
	assert_int_equal(fchdir(room.fd), 0);
	BAD(-ENOENT, 1, "file", "none");
	BAD(-ENOENT, 0, "none/", "file");
	BAD(-ENOENT, 0, "");
	BAD(-ENOTDIR, 0, "file/");
	BAD(-EOPNOTSUPP, 1, "file", "fifo");
	BAD(-EOPNOTSUPP, 0, "/dev/null");
	BAD(-EINVAL, 0, ".roci-12.part");
	BAD(-EEXIST, 1, "file", "file");
	BAD(-EEXIST, 2, "file", "dir/b", "dir/");
	BAD(-EEXIST, 1, "-", "-");
	assert_int_equal(chdir("/"), 0);
	room_close(&room);
}

static void what_is_no_file_is_told_and_left_out(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	struct room room;
	struct mover_walk *walk;
	char expected[1024];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	room_open(&room);
	room_mkdir(&room, "dir");
	room_write(&room, "dir/file", "", 0);
	room_write(&room, "dir/.roci-00.journal", "", 0);
	assert_int_equal(mkfifoat(room.fd, "dir/fifo", 0600), 0);
	assert_int_equal(chdir(room_path(&room, "dir")), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(chdir("/"), 0);
	close(fd);
	walk = walk_one(room_path(&room, "dir"));
	EXPECT(walk, "dir", "dir/file");
	snprintf(expected, sizeof(expected),
		 "%s/dir/.roci-00.journal: a component is reserved for unfinished transfers\n"
		 "%s/dir/fifo: a FIFO\n%s/dir/socket: a socket\n",
		 room.path, room.path, room.path);
	assert_string_equal(warnings, expected);
	assert_int_equal(mover_walk_unread(walk), 0);
	mover_walk_destroy(walk);
	room_close(&room);
}

/* In a child process as user nobody, because root may read everything. */
static int as_nobody(const struct room *room)
{
	const char *paths[] = {room_path(room, "dir"), room_path(room, "secret"), room_path(room, "dir/locked")};
	struct mover_walk *walk;
	size_t bad = 9;

	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 1;
	if (walk_rc(paths, 2, &walk, &bad) != -EACCES || bad != 1)
		return 2;
	if (walk_rc(paths + 2, 1, &walk, &bad) != -EACCES || bad != 0)
		return 3;
	if (walk_rc(paths, 1, &walk, &bad) || mover_walk_count(walk) != 3 || strcmp(name_at(walk, 2), "dir/z"))
		return 4;
	if (!strstr(warnings, "dir/locked: Permission denied") || mover_walk_open(walk, 1) != -EACCES)
		return 5;
	if (mover_walk_unread(walk) != 1)
		return 6;
	mover_walk_destroy(walk);
	return 0;
}

static void what_may_not_be_read(void **state)
{
	struct room room;
	int status;
	pid_t pid;

	room_open(&room);
	assert_int_equal(chmod(room.path, 0755), 0);
	room_mkdir(&room, "dir");
	room_mkdir(&room, "dir/locked");
	room_write(&room, "dir/f", "", 0);
	room_write(&room, "dir/z", "", 0);
	room_write(&room, "secret", "", 0);
	assert_int_equal(fchmodat(room.fd, "dir/locked", 0, 0) | fchmodat(room.fd, "secret", 0, 0) |
				 fchmodat(room.fd, "dir/f", 0, 0),
			 0);
	pid = fork();
	if (!pid)
		_exit(as_nobody(&room));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	room_close(&room);
}

static void opening_what_was_walked(void **state)
{
	struct room room;
	struct mover_walk *walk;
	char byte;
	int fd;

	fill_room(&room);
	walk = walk_one(room_path(&room, "dir"));
	fd = mover_walk_open(walk, 3);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '1');
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(mover_walk_unchanged(walk, 3, fd), 0);
	room_write(&room, "dir/b/x", "123456", 6);
	assert_int_equal(mover_walk_unchanged(walk, 3, fd), -ESTALE);
	close(fd);
	assert_int_equal(mover_walk_open(walk, 3), -ESTALE);

	/* replaced by another file, a symbolic link, a FIFO, a folder, or nothing */
	for (int i = 0; i < 5; i++) {
		unlinkat(room.fd, "dir/b-", 0);
		if (i == 0)
			room_write(&room, "dir/b-", "", 0);
		else if (i == 1)
			assert_int_equal(symlinkat("b/x", room.fd, "dir/b-"), 0);
		else if (i == 2)
			assert_int_equal(mkfifoat(room.fd, "dir/b-", 0600), 0);
		else if (i == 3)
			room_mkdir(&room, "dir/b-");
		assert_int_equal(mover_walk_open(walk, 4), -ESTALE);
		if (i == 3)
			assert_int_equal(unlinkat(room.fd, "dir/b-", AT_REMOVEDIR), 0);
	}
	/* a folder of its path is replaced by a symbolic link */
	assert_int_equal(renameat(room.fd, "dir/b", room.fd, "moved"), 0);
	assert_int_equal(symlinkat("../moved", room.fd, "dir/b"), 0);
	assert_int_equal(mover_walk_open(walk, 3), -ESTALE);
	mover_walk_destroy(walk);
	room_close(&room);
}

/* The argument's folder is opened once: its files are found when it gets another name, and a folder that gets its name
 * is not taken for it. */
static void an_argument_that_is_renamed(void **state)
{
	struct room room;
	struct mover_walk *walk;
	char byte;
	int fd;

	fill_room(&room);
	walk = walk_one(room_path(&room, "dir"));
	fd = mover_walk_open(walk, 3);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(renameat(room.fd, "dir", room.fd, "renamed"), 0);
	room_mkdir(&room, "dir");
	room_mkdir(&room, "dir/b");
	room_write(&room, "dir/b/x", "other", 5);
	fd = mover_walk_open(walk, 3);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '1');
	close(fd);
	mover_walk_destroy(walk);
	room_close(&room);
}

static void standard_input(void **state)
{
	const char *path = "-";
	struct mover_walk *walk;
	mode_t mask = umask(027);
	size_t bad;
	int fd;

	walk = walk_one("-");
	umask(mask);
	EXPECT(walk, "stdin");
	assert_int_equal(mover_walk_entry(walk, 0)->kind, MOVER_STREAM);
	assert_int_equal(mover_walk_entry(walk, 0)->mode, 0640);
	fd = mover_walk_open(walk, 0);
	assert_true(fd > 2);
	assert_int_equal(mover_walk_unchanged(walk, 0, fd), 0);
	close(fd);
	mover_walk_destroy(walk);
	assert_int_equal(mover_walk_create(&path, 1, "name", warn, NULL, &walk, &bad), 0);
	EXPECT(walk, "name");
	mover_walk_destroy(walk);
	assert_int_equal(mover_walk_create(&path, 1, "../name", warn, NULL, &walk, &bad), -EINVAL);
}

/* As deep as names may be, with one spare descriptor. */
static void depth_costs_no_descriptors(void **state)
{
	struct room room;
	struct mover_walk *walk;
	char command[128];
	int at, next;

	room_open(&room);
	at = dup(room.fd);
	for (int i = 0; i < 2100; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY);
		close(at);
		at = next;
	}
	close(at);
	walk = walk_one(room_path(&room, "d"));
	assert_int_equal(mover_walk_count(walk), 2048); /* "d" and 2,047 times "/d" are 4,095 bytes */
	assert_int_equal(mover_walk_entry(walk, 2047)->name_len, 4095);
	assert_non_null(strstr(warnings, "too long"));
	assert_int_equal(mover_walk_unread(walk), 1);
	mover_walk_destroy(walk);
	/* too deep for the names that room_close() would use */
	snprintf(command, sizeof(command), "rm -rf %s/d", room.path);
	assert_int_equal(system(command), 0);
	room_close(&room);
}

static void data_of_a_sparse_file(void **state)
{
	enum { MB = 1 << 20 };
	struct room room;
	uint64_t begin, end;
	struct stat st;
	int fd;

	room_open(&room);
	fd = openat(room.fd, "sparse", O_RDWR | O_CREAT, 0600);
	assert_int_equal(mover_walk_data(fd, 0, 0, &begin, &end), 0);
	assert_int_equal(ftruncate(fd, 8 * MB), 0);
	assert_int_equal(mover_walk_data(fd, 0, 8 * MB, &begin, &end), 0);
	assert_int_equal(pwrite(fd, "x", 1, 2 * MB), 1);
	assert_int_equal(pwrite(fd, "x", 1, 8 * MB - 1), 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_blocks * 512 < MB);
	assert_int_equal(mover_walk_data(fd, 0, 8 * MB, &begin, &end), 1);
	assert_int_equal(begin, 2 * MB);
	assert_in_range(end, 2 * MB + 1, 2 * MB + 65536);
	assert_int_equal(mover_walk_data(fd, end, 8 * MB, &begin, &end), 1);
	assert_in_range(begin, 8 * MB - 65536, 8 * MB - 1);
	assert_int_equal(end, 8 * MB);
	assert_int_equal(mover_walk_data(fd, end, 8 * MB, &begin, &end), 0);
	assert_int_equal(mover_walk_data(fd, 0, MB, &begin, &end), 0);
	assert_int_equal(mover_walk_data(fd, 2 * MB, 2 * MB + 10, &begin, &end), 1);
	assert_int_equal(end, 2 * MB + 10);
	close(fd);
	/* a descriptor for which lseek(2) knows no holes */
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(mover_walk_data(fd, 5, 10, &begin, &end), 1);
	close(fd);
	room_close(&room);
}

/* To find that a file in memory has no hole takes as long as it has pages, so nobody looks where its blocks say it. */
static void data_of_a_file_in_memory(void **state)
{
	enum { MB = 1 << 20 };
	int fd = memfd_create("file", MFD_CLOEXEC);
	uint64_t begin, end;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * MB), 0);
	assert_int_equal(pwrite(fd, "x", 1, 2 * MB), 1);
	assert_int_equal(mover_walk_data(fd, 0, 4 * MB, &begin, &end), 1);
	assert_int_equal(begin, 2 * MB);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 4 * MB, 4 * MB), 0);
	assert_int_equal(mover_walk_data(fd, MB, 4 * MB, &begin, &end), 1);
	assert_int_equal(begin, MB);
	assert_int_equal(end, 4 * MB);
	close(fd);
}

static void ten_thousand(void **state)
{
	struct room room;
	struct mover_walk *walk;
	struct timespec a, b;
	char name[64];

	room_open(&room);
	for (int i = 0; i < 10000; i++) {
		if (i % 500 == 0) {
			snprintf(name, sizeof(name), "folder%d", i / 500);
			room_mkdir(&room, name);
		}
		snprintf(name, sizeof(name), "folder%d/file%d", i / 500, i);
		room_write(&room, name, "x", 1);
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	walk = walk_one(room_path(&room, "."));
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_int_equal(mover_walk_count(walk), 10020);
	print_message("walk of 10,020 entries: %.1f ms\n",
		      (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (size_t i = 0; i < mover_walk_count(walk); i++)
		if (mover_walk_entry(walk, i)->kind == MOVER_FILE)
			close(mover_walk_open(walk, i));
	clock_gettime(CLOCK_MONOTONIC, &b);
	print_message("opening each: %.1f us\n",
		      ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) / 10000);
	mover_walk_destroy(walk);
	room_close(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_before_what_is_in_them_in_byte_order),
		cmocka_unit_test(arguments_with_and_without_their_name),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(what_is_no_file_is_told_and_left_out),
		cmocka_unit_test(what_may_not_be_read),
		cmocka_unit_test(opening_what_was_walked),
		cmocka_unit_test(an_argument_that_is_renamed),
		cmocka_unit_test(standard_input),
		cmocka_unit_test(depth_costs_no_descriptors),
		cmocka_unit_test(data_of_a_sparse_file),
		cmocka_unit_test(data_of_a_file_in_memory),
		cmocka_unit_test(ten_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
