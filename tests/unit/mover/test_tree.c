/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/tree.h"

#define CHUNK 65536

static bool no_rename_flags; /* as on NFS */

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (no_rename_flags && flags) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

/* `into` is the receiver's folder in `room`; "outside" is beside it. */
static struct mover_tree *open_tree(struct room *room)
{
	struct mover_tree *tree;

	room_open(room);
	room_mkdir(room, "outside");
	assert_int_equal(mover_tree_open(room_path(room, "into"), &tree), 0);
	return tree;
}

static int folder(struct mover_tree *tree, const char *name)
{
	struct mover_entry entry = entry_folder(name, 0755);

	return mover_tree_folder(tree, &entry, 0);
}

static int link_to(struct mover_tree *tree, const char *name, const char *target)
{
	struct mover_entry entry = entry_link(name, target);

	return mover_tree_symlink(tree, &entry);
}

static int begin(struct mover_tree *tree, const char *name)
{
	struct mover_entry entry = entry_file(name, 1);
	struct mover_file *file;
	int rc = mover_file_begin(tree, &entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file);

	if (file)
		mover_file_abandon(file);
	return rc;
}

/* 0, or the first error. */
static int seal(struct mover_tree *tree, const struct mover_entry *folders, size_t count)
{
	int results[8], rc = 0;

	mover_tree_finish(tree, folders, count, results);
	for (size_t i = 0; i < count && !rc; i++)
		rc = results[i];
	return rc;
}

static void a_folder_is_made_or_found(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room), *again;

	assert_int_equal(mover_tree_open(room_path(&room, "into"), &again), 0);
	mover_tree_close(again);
	assert_int_equal(mover_tree_open(room_path(&room, "none/into"), &again), -ENOENT);
	room_write(&room, "file", "", 0);
	assert_int_equal(mover_tree_open(room_path(&room, "file"), &again), -ENOTDIR);

	assert_int_equal(folder(tree, "a"), 0);
	assert_int_equal(folder(tree, "a"), 0);
	assert_int_equal(folder(tree, "a/b"), 0);
	assert_int_equal(folder(tree, "x/b"), -ENOENT);
	room_write(&room, "into/a/file", "", 0);
	assert_int_equal(folder(tree, "a/file"), -ENOTDIR);
	assert_int_equal(folder(tree, "a/file/x"), -ENOTDIR);
	assert_true(S_ISDIR(room_stat(&room, "into/a/b").st_mode));
	mover_tree_close(tree);
	room_close(&room);
}

static void names_that_lead_out_are_refused(void **state)
{
	static const char *const names[] = {"../outside/x", "/tmp/x",       "a/../../x",        "..", ".", "", "a//b",
					    "a/",           ".roci-1.part", "a/.roci-2.journal"};
	struct room room;
	struct mover_tree *tree = open_tree(&room);

	assert_int_equal(folder(tree, "a"), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(folder(tree, names[i]), -EINVAL);
		assert_int_equal(link_to(tree, names[i], "x"), -EINVAL);
		assert_int_equal(begin(tree, names[i]), -EINVAL);
	}
	assert_int_equal(room_count(&room, "into"), 1);
	assert_int_equal(room_count(&room, "into/a"), 0);
	mover_tree_close(tree);
	room_close(&room);
}

/* A symbolic link, from the peer or from before, leads nowhere: with openat2(2) and without. */
static void links_lead_nowhere(void **state)
{
	for (int without = 0; without < 2; without++) {
		struct room room;
		struct mover_tree *tree = open_tree(&room);
		struct mover_entry out = entry_folder("out", 0700), deep = entry_folder("out/sub", 0700);
		int rc;

		mover_beneath_without_openat2(without);
		room_mkdir(&room, "outside/sub");
		assert_int_equal(link_to(tree, "out", "../outside"), 0);
		assert_int_equal(link_to(tree, "here", "."), 0);
		assert_int_equal(folder(tree, "out"), -ENOTDIR);
		for (int i = 0; i < 4; i++) {
			rc = begin(tree, (const char *[]){"out/file", "out/sub/file", "here/file", "here/x/y"}[i]);
			assert_true(rc == -ELOOP || rc == -ENOTDIR);
			rc = folder(tree, (const char *[]){"out/d", "out/sub/d", "here/d", "here/x/y"}[i]);
			assert_true(rc == -ELOOP || rc == -ENOTDIR);
		}
		assert_int_not_equal(seal(tree, &out, 1), 0);
		assert_int_not_equal(seal(tree, &deep, 1), 0);
		assert_int_equal(room_stat(&room, "outside").st_mode & 07777, 0755);
		assert_int_equal(room_count(&room, "outside"), 1);
		assert_int_equal(room_count(&room, "into"), 2);
		mover_beneath_without_openat2(false);
		mover_tree_close(tree);
		room_close(&room);
	}
}

/* A folder that has been used is replaced by a symbolic link. */
static void a_folder_that_becomes_a_link(void **state)
{
	for (int without = 0; without < 2; without++) {
		struct room room;
		struct mover_tree *tree = open_tree(&room);
		struct mover_entry entry = entry_file("a/b/file", 1);
		struct mover_file *file;
		int rc;

		mover_beneath_without_openat2(without);
		assert_int_equal(folder(tree, "a") | folder(tree, "a/b"), 0);
		assert_int_equal(begin(tree, "a/b/first"), MOVER_HAVE_NONE);
		assert_int_equal(
			mover_file_begin(tree, &entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file),
			MOVER_HAVE_NONE);
		assert_int_equal(renameat(room.fd, "into/a/b", room.fd, "into/moved"), 0);
		assert_int_equal(symlinkat("../../outside", room.fd, "into/a/b"), 0);
		rc = begin(tree, "a/b/second");
		assert_true(rc == -ELOOP || rc == -ENOTDIR);
		/* a file that was begun is not committed through it */
		assert_int_equal(pwrite(mover_file_fd(file), "x", 1, 0), 1);
		mover_file_commit(tree, &file, 1, &rc);
		assert_int_equal(rc, -ESTALE);
		assert_int_equal(room_count(&room, "outside"), 0);
		assert_int_equal(room_count(&room, "into/moved"), 0);
		mover_beneath_without_openat2(false);
		mover_tree_close(tree);
		room_close(&room);
	}
}

/* In a batch a folder is looked up once. Nothing gets a name in one that has been moved since. */
static void a_folder_that_moves_in_a_batch(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	struct mover_entry entry = entry_file("a/second", 1);
	struct mover_begin with = {.chunk_bytes = CHUNK};
	struct mover_file *file;
	int rc;

	assert_int_equal(folder(tree, "a"), 0);
	mover_tree_begin_batch(tree);
	assert_int_equal(begin(tree, "a/first"), MOVER_HAVE_NONE);
	assert_int_equal(renameat(room.fd, "into/a", room.fd, "into/moved"), 0);
	assert_int_equal(mover_file_begin(tree, &entry, &with, NULL, &file), MOVER_HAVE_NONE);
	assert_int_equal(pwrite(mover_file_fd(file), "x", 1, 0), 1);
	mover_file_commit(tree, &file, 1, &rc);
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(room_count(&room, "into/moved"), 0);
	mover_tree_begin_batch(tree);
	assert_int_equal(begin(tree, "a/third"), -ENOENT);
	/* a new one has the name */
	assert_int_equal(folder(tree, "a"), 0);
	assert_int_equal(mover_file_begin(tree, &entry, &with, NULL, &file), MOVER_HAVE_NONE);
	mover_file_commit(tree, &file, 1, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(room_count(&room, "into/a"), 1);
	mover_tree_close(tree);
	room_close(&room);
}

static void links_are_stored_as_they_stand(void **state)
{
	static const char *const targets[] = {"../../etc/passwd", "/", "\xff\n", "loop", "x"};
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	char target[64];
	struct mover_entry entry = entry_link("loop", "a\0b");
	struct stat st;

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		assert_int_equal(link_to(tree, "loop", targets[i]), 0);
		assert_int_equal(link_to(tree, "loop", targets[i]), 1);
		assert_int_equal(readlinkat(room.fd, "into/loop", target, sizeof(target)), strlen(targets[i]));
		assert_memory_equal(target, targets[i], strlen(targets[i]));
	}
	st = room_stat(&room, "into/loop");
	assert_int_equal(st.st_mtim.tv_sec, 1234567890);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	room_write(&room, "into/file", "", 0);
	assert_int_equal(link_to(tree, "file", "x"), 0);
	assert_true(S_ISLNK(room_stat(&room, "into/file").st_mode));
	/* what a symbolic link does not replace */
	room_mkdir(&room, "into/dir");
	assert_int_equal(mkfifoat(room.fd, "into/fifo", 0600), 0);
	assert_int_equal(link_to(tree, "dir", "x"), -EISDIR);
	assert_int_equal(link_to(tree, "fifo", "x"), -EEXIST);
	assert_int_equal(link_to(tree, "none", ""), -EINVAL);
	entry.target_len = 3;
	assert_int_equal(mover_tree_symlink(tree, &entry), -EINVAL);
	assert_int_equal(room_count(&room, "into"), 4);
	mover_tree_close(tree);
	room_close(&room);
}

static void what_a_file_never_replaces(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room);

	room_mkdir(&room, "into/dir");
	assert_int_equal(mkfifoat(room.fd, "into/fifo", 0600), 0);
	assert_int_equal(begin(tree, "dir"), -EISDIR);
	assert_int_equal(begin(tree, "fifo"), -EEXIST);
	assert_int_equal(begin(tree, "none/file"), -ENOENT);
	if (!mknodat(room.fd, "into/device", S_IFCHR | 0600, 0x103)) {
		assert_int_equal(begin(tree, "device"), -EEXIST);
		assert_int_equal(room_count(&room, "into"), 3);
	}
	mover_tree_close(tree);
	room_close(&room);
}

static void sealing_sets_modes_and_times_deepest_first(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	struct mover_entry entries[] = {entry_folder("a", 0500), entry_folder("a/b", 07000),
					entry_folder("a/b/c", 0751), entry_folder("a-", 0777)};
	struct stat st;

	entries[1].mtime_s = -1;
	entries[1].mtime_ns = 999999999;
	for (int i = 0; i < 4; i++)
		assert_int_equal(mover_tree_folder(tree, &entries[i], 0), 0);
	assert_int_equal(seal(tree, entries, 4), 0);
	assert_int_equal(room_stat(&room, "into/a").st_mode & 07777, 0500);
	assert_int_equal(room_stat(&room, "into/a/b").st_mode & 07777, 0); /* setuid and the like are ignored */
	assert_int_equal(room_stat(&room, "into/a/b/c").st_mode & 07777, 0751);
	assert_int_equal(room_stat(&room, "into/a-").st_mode & 07777, 0777);
	st = room_stat(&room, "into/a/b");
	assert_int_equal(st.st_mtim.tv_sec, -1);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);
	assert_int_equal(room_stat(&room, "into/a").st_mtim.tv_sec, 1234567890);
	/* again, into the existing folders */
	for (int i = 0; i < 4; i++)
		assert_int_equal(mover_tree_folder(tree, &entries[i], 0), 0);
	assert_int_equal(begin(tree, "a/b/c/file"), MOVER_HAVE_NONE);
	assert_int_equal(seal(tree, entries, 4), 0);
	assert_int_equal(mover_tree_sync(tree, 0), 0);
	mover_tree_close(tree);
	room_close(&room);
}

/* --keep: nothing that exists is replaced, and nothing that appears while the file comes. */
static void what_exists_is_kept(void **state)
{
	const struct mover_begin how = {.chunk_bytes = CHUNK, .compare = true};
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	struct mover_entry entry = entry_file("file", 0), link = entry_link("link", "target");
	struct mover_file *file;
	int err;

	mover_tree_keep_existing(tree);
	assert_int_equal(mover_file_begin(tree, &entry, &how, NULL, &file), MOVER_HAVE_NONE);
	mover_file_commit(tree, &file, 1, &err);
	assert_int_equal(err, 0);
	assert_int_equal(mover_tree_symlink(tree, &link), 0);
	/* the same */
	assert_int_equal(mover_file_begin(tree, &entry, &how, NULL, &file), MOVER_HAVE_ALL);
	assert_int_equal(mover_tree_symlink(tree, &link), 1);
	/* others */
	entry.mtime_s++;
	link.target = (const uint8_t *)"tarGet";
	assert_int_equal(mover_file_begin(tree, &entry, &how, NULL, &file), -EEXIST);
	assert_int_equal(mover_file_probe(tree, &entry, false), -EEXIST);
	assert_int_equal(mover_tree_symlink(tree, &link), -EEXIST);
	entry = entry_file("link", 0);
	assert_int_equal(mover_file_begin(tree, &entry, &how, NULL, &file), -EEXIST);
	/* it appears */
	entry = entry_file("new", 0);
	assert_int_equal(mover_file_begin(tree, &entry, &how, NULL, &file), MOVER_HAVE_NONE);
	room_write(&room, "into/new", "mine", 4);
	mover_file_commit(tree, &file, 1, &err);
	assert_int_equal(err, -EEXIST);
	assert_true(room_holds(&room, "into/new", "mine", 4));
	assert_int_equal(room_count(&room, "into"), 3); /* no temporary files */
	mover_tree_close(tree);
	room_close(&room);
}

static void what_exists_is_kept_without_rename_flags(void **state)
{
	no_rename_flags = true;
	what_exists_is_kept(state);
	no_rename_flags = false;
}

/* The umask belongs to the user of the receiver: no sender gives rights to others. */
static void the_umask_is_respected(void **state)
{
	struct room room;
	struct mover_entry folder = entry_folder("dir", 0777), entry = entry_file("dir/file", 0);
	struct mover_file *file;
	struct mover_tree *tree;
	int err;

	room_open(&room);
	umask(027);
	assert_int_equal(mover_tree_open(room_path(&room, "into"), &tree), 0);
	umask(0);
	entry.mode = 0666;
	assert_int_equal(mover_tree_folder(tree, &folder, 0), 0);
	for (unsigned i = 0; i < 2; i++) { /* a new file, and one that is replaced */
		assert_int_equal(
			mover_file_begin(tree, &entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file),
			MOVER_HAVE_NONE);
		mover_file_commit(tree, &file, 1, &err);
		assert_int_equal(err, 0);
		assert_int_equal(room_stat(&room, "into/dir/file").st_mode & 07777, 0640);
		entry.mtime_s++;
	}
	/* unchanged: its mode becomes right */
	entry.mtime_s--;
	entry.mode = 0755;
	assert_int_equal(mover_file_begin(tree, &entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file),
			 MOVER_HAVE_ALL);
	assert_int_equal(room_stat(&room, "into/dir/file").st_mode & 07777, 0750);
	assert_int_equal(seal(tree, &folder, 1), 0);
	assert_int_equal(room_stat(&room, "into/dir").st_mode & 07777, 0750);
	mover_tree_close(tree);
	room_close(&room);
}

/* The same as user nobody, for whom modes count. */
static void sealing_without_being_root(void **state)
{
	struct room room;
	int status;
	pid_t pid;

	room_open(&room);
	assert_int_equal(chmod(room.path, 0777), 0);
	pid = fork();
	if (!pid) {
		struct mover_entry entries[] = {entry_folder("a", 0100), entry_folder("a/b", 0),
						entry_folder("a/b/c", 0300)};
		struct mover_tree *tree;

		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(1);
		if (mover_tree_open(room_path(&room, "into"), &tree))
			_exit(2);
		for (int turn = 0; turn < 2; turn++) {
			for (int i = 0; i < 3; i++)
				if (mover_tree_folder(tree, &entries[i], 0))
					_exit(3 + i);
			if (begin(tree, "a/b/c/file") != MOVER_HAVE_NONE)
				_exit(6);
			if (seal(tree, entries, 3))
				_exit(7);
		}
		mover_tree_close(tree);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(room_stat(&room, "into/a/b").st_mode & 07777, 0);
	assert_int_equal(room_stat(&room, "into/a/b/c").st_mode & 07777, 0300);
	room_close(&room);
}

/* Replaces fsync(2): one call `fails`, or calls `inside` before it returns. */
static struct {
	int fails;
	void (*inside)(void);
	unsigned calls;
} disk;

int fsync(int fd)
{
	int fails = disk.fails;
	void (*inside)(void) = disk.inside;

	disk.calls++;
	disk.fails = 0;
	disk.inside = NULL;
	if (inside)
		inside();
	errno = fails;
	return fails ? -1 : 0;
}

/* Two sessions have changed one folder, and the first to end syncs it. The kernel reports a failure only once. */
static void a_sync_that_fails_fails_for_all(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	unsigned before = mover_tree_sync_failures(tree);

	assert_int_equal(folder(tree, "first") | folder(tree, "second"), 0);
	disk.fails = EIO;
	disk.calls = 0;
	assert_int_equal(mover_tree_sync(tree, before), -EIO);
	assert_int_equal(disk.calls, 1);
	assert_int_equal(mover_tree_sync(tree, before), -EIO);
	/* a session that began after that sees no failure */
	before = mover_tree_sync_failures(tree);
	assert_int_equal(folder(tree, "third"), 0);
	assert_int_equal(mover_tree_sync(tree, before), 0);
	assert_int_equal(disk.calls, 2);
	mover_tree_close(tree);
	room_close(&room);
}

static struct {
	struct mover_tree *tree;
	pthread_t thread;
	atomic_bool sync_over, early;
} other;

static void *sync_too(void *argument)
{
	assert_int_equal(mover_tree_sync(other.tree, 0), 0);
	other.early = !other.sync_over;
	return argument;
}

static void begin_another(void)
{
	assert_int_equal(pthread_create(&other.thread, NULL, sync_too, NULL), 0);
	usleep(20000); /* a chance to be early */
	other.sync_over = true;
}

/* A session that ends during a sync by another one waits for it: the sync may include its changes. */
static void nobody_ends_before_the_sync(void **state)
{
	struct room room;

	other.tree = open_tree(&room);
	assert_int_equal(folder(other.tree, "a"), 0);
	disk.inside = begin_another;
	assert_int_equal(mover_tree_sync(other.tree, 0), 0);
	assert_int_equal(pthread_join(other.thread, NULL), 0);
	assert_true(other.sync_over);
	assert_false(other.early);
	mover_tree_close(other.tree);
	room_close(&room);
}

/* In a folder where we may write, another user's file or symbolic link is replaced if it differs; a folder stays. */
static int among_anothers(const char *path)
{
	struct mover_entry entry = entry_folder("a", 0755), link = entry_link("a/link", "x");
	struct mover_entry file_entry = entry_file("a/file", 1);
	struct mover_tree *tree;
	struct mover_file *file;
	int rc;

	if (setgid(65534) || setuid(65534) || mover_tree_open(path, &tree))
		return 1;
	if (mover_tree_folder(tree, &entry, 0))
		return 2;
	for (int compare = 0; compare < 2; compare++) { /* of the same time, then of the same content */
		file_entry.name = (const uint8_t *)(compare ? "a/two" : "a/one");
		file_entry.name_len = 5;
		rc = mover_file_begin(tree, &file_entry,
				      &(struct mover_begin){.chunk_bytes = CHUNK, .compare = compare}, NULL, &file);
		if (rc != (compare ? MOVER_HAVE_SOME : MOVER_HAVE_NONE))
			return 3;
		if (!compare && pwrite(mover_file_fd(file), "x", 1, 0) != 1)
			return 4;
		mover_file_commit(tree, &file, 1, &rc);
		if (rc)
			return 5;
	}
	if (mover_tree_symlink(tree, &link))
		return 6;
	if (seal(tree, &entry, 1) != -EPERM)
		return 7;
	mover_tree_close(tree);
	return 0;
}

static void what_is_another_users(void **state)
{
	static const char *const names[] = {"a/one", "a/two", "a/link"};
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {1234567890, 123456789}};
	struct room room;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	room_open(&room);
	assert_int_equal(chmod(room.path, 0777), 0);
	room_mkdir(&room, "a");
	assert_int_equal(fchmodat(room.fd, "a", 0777, 0), 0);
	for (int i = 0; i < 2; i++) {
		room_write(&room, names[i], "x", 1);
		assert_int_equal(fchmodat(room.fd, names[i], 0444, 0), 0);
		assert_int_equal(utimensat(room.fd, names[i], times, 0), 0);
	}
	assert_int_equal(symlinkat("x", room.fd, "a/link"), 0);
	pid = fork();
	if (!pid)
		_exit(among_anothers(room.path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(room_stat(&room, names[i]).st_uid, 65534);
		assert_int_equal(room_stat(&room, names[i]).st_mtim.tv_nsec, 123456789);
	}
	assert_int_equal(room_stat(&room, "a/one").st_mode & 07777, 0640);
	assert_int_equal(room_stat(&room, "a/two").st_mode & 07777, 0640);
	assert_true(room_holds(&room, "a/two", "x", 1));
	assert_int_equal(room_count(&room, "a"), 3);
	room_close(&room);
}

static void setgid_of_a_folder_here_stays(void **state)
{
	struct room room;
	struct mover_tree *tree = open_tree(&room);
	struct mover_entry entry = entry_folder("a", 0711);

	room_mkdir(&room, "into/a");
	assert_int_equal(fchmodat(room.fd, "into/a", 02755, 0), 0);
	assert_int_equal(mover_tree_folder(tree, &entry, 0), 0);
	assert_int_equal(seal(tree, &entry, 1), 0);
	assert_int_equal(room_stat(&room, "into/a").st_mode & 07777, 02711);
	mover_tree_close(tree);
	room_close(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_is_made_or_found),
		cmocka_unit_test(names_that_lead_out_are_refused),
		cmocka_unit_test(links_lead_nowhere),
		cmocka_unit_test(a_folder_that_becomes_a_link),
		cmocka_unit_test(a_folder_that_moves_in_a_batch),
		cmocka_unit_test(links_are_stored_as_they_stand),
		cmocka_unit_test(what_a_file_never_replaces),
		cmocka_unit_test(what_exists_is_kept),
		cmocka_unit_test(what_exists_is_kept_without_rename_flags),
		cmocka_unit_test(the_umask_is_respected),
		cmocka_unit_test(sealing_sets_modes_and_times_deepest_first),
		cmocka_unit_test(sealing_without_being_root),
		cmocka_unit_test(a_sync_that_fails_fails_for_all),
		cmocka_unit_test(nobody_ends_before_the_sync),
		cmocka_unit_test(what_is_another_users),
		cmocka_unit_test(setgid_of_a_folder_here_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
