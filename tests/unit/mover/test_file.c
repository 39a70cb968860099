/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of all kinds, from begin to commit; and several transfers of one file. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void a_file_appears_when_it_is_whole(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;
	struct stat st;

	room_write(&f->room, "file", "old", 3);
	f->entry.mode = 07400;
	f->entry.mtime_s = -7;
	f->entry.mtime_ns = 999999999;
	file = fixture_begin(f, false, MOVER_HAVE_NONE);
	assert_int_equal(mover_file_chunk_count(file), CHUNKS);
	for (uint64_t i = CHUNKS; i-- > 0;) {
		assert_int_equal(fixture_put(f, file, i), 0);
		assert_true(room_holds(&f->room, "file", "old", 3));
	}
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", f->content, BYTES));
	st = room_stat(&f->room, "file");
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_mtim.tv_sec, -7);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);
	assert_int_equal(room_count(&f->room, "."), 1);
	assert_int_equal(mover_tree_sync(f->tree, 0), 0);

	/* now it exists already; only its mode is set */
	f->entry.mode = 0604;
	fixture_begin(f, false, MOVER_HAVE_ALL);
	assert_int_equal(room_stat(&f->room, "file").st_mode & 07777, 0604);
	f->entry.mtime_ns--;
	mover_file_abandon(fixture_begin(f, false, MOVER_HAVE_NONE));
	f->entry.mtime_ns++;
	f->entry.size--;
	mover_file_abandon(fixture_begin(f, false, MOVER_HAVE_NONE));
	assert_int_equal(room_count(&f->room, "."), 1);
	fixture_free(f);
}

/* As in a dry run. */
static void a_probe_changes_nothing(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_entry deep = entry_file("none/file", 5), same;
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
	struct stat st;

	assert_int_equal(fixture_put(f, file, 1), 0);
	mover_file_abandon(file);
	assert_int_equal(mover_file_probe(f->tree, &f->entry, false), MOVER_HAVE_NONE);
	f->entry.size = 5; /* the temporary file would have to start over for it */
	assert_int_equal(mover_file_probe(f->tree, &f->entry, false), MOVER_HAVE_NONE);
	f->entry.size = BYTES;
	assert_int_equal(mover_file_probe(f->tree, &deep, false), MOVER_HAVE_NONE);
	assert_int_equal(room_count(&f->room, "."), 2);
	assert_int_equal(fixture_finish(f, fixture_begin(f, false, MOVER_HAVE_SOME)), 1);

	same = f->entry;
	same.mode = 0600;
	assert_int_equal(mover_file_probe(f->tree, &same, false), MOVER_HAVE_ALL);
	assert_int_equal(mover_file_probe(f->tree, &same, true), MOVER_HAVE_NONE);
	st = room_stat(&f->room, "file");
	assert_int_equal(st.st_mode & 07777, 0640);
	same.size--;
	assert_int_equal(mover_file_probe(f->tree, &same, false), MOVER_HAVE_NONE);
	room_mkdir(&f->room, "none");
	same = entry_file("none", 5);
	assert_int_equal(mover_file_probe(f->tree, &same, false), -EISDIR);
	same = entry_file("file/x", 5);
	assert_int_equal(mover_file_probe(f->tree, &same, false), -ENOTDIR);
	same = entry_file("../x", 5);
	assert_int_equal(mover_file_probe(f->tree, &same, false), -EINVAL);
	assert_int_equal(room_count(&f->room, "."), 2);
	fixture_free(f);
}

static void a_symlink_is_replaced_not_followed(void **state)
{
	struct fixture *f = fixture_new();

	room_write(&f->room, "victim", "v", 1);
	assert_int_equal(symlinkat("victim", f->room.fd, "file"), 0);
	f->entry.size = 1;
	assert_int_equal(fixture_commit(f, fixture_begin(f, false, MOVER_HAVE_NONE)), 0);
	assert_true(S_ISREG(room_stat(&f->room, "file").st_mode));
	assert_true(room_holds(&f->room, "victim", "v", 1));
	assert_true(room_holds(&f->room, "file", "\0", 1)); /* never written: a hole */
	fixture_free(f);
}

static void temp_name(const struct mover_file *file, char *name, size_t room)
{
	char proc[64], path[256];
	ssize_t len;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", mover_file_fd(file));
	len = readlink(proc, path, sizeof(path) - 1);
	assert_true(len > 0);
	path[len] = 0;
	snprintf(name, room, "%s", strrchr(path, '/') + 1);
}

/* Another user who may write here has put something under the temporary name. */
static void planted_temporary_names(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct fixture *f = fixture_new();
		struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
		char part[64], victim[] = "victim";

		temp_name(file, part, sizeof(part));
		mover_file_abandon(file);
		assert_int_equal(room_count(&f->room, "."), 0);
		room_write(&f->room, victim, "v", 1);
		if (i == 0)
			assert_int_equal(symlinkat(victim, f->room.fd, part), 0);
		else if (i == 1)
			assert_int_equal(linkat(f->room.fd, victim, f->room.fd, part, 0), 0);
		else if (i == 2)
			assert_int_equal(mkfifoat(f->room.fd, part, 0600), 0);
		else if (!geteuid()) {
			room_write(&f->room, part, "junk", 4);
			assert_int_equal(fchownat(f->room.fd, part, 65534, 65534, 0), 0);
		}
		file = fixture_begin(f, false, MOVER_HAVE_NONE);
		for (uint64_t k = 0; k < CHUNKS; k++)
			assert_int_equal(fixture_put(f, file, k), 0);
		assert_int_equal(fixture_commit(f, file), 0);
		assert_true(room_holds(&f->room, victim, "v", 1));
		assert_true(room_holds(&f->room, "file", f->content, BYTES));
		assert_int_equal(room_stat(&f->room, "file").st_uid, geteuid());
		fixture_free(f);
	}
}

static void one_transfer_of_a_file_at_a_time(void **state)
{
	struct fixture *f = fixture_new();

	for (int small = 0; small < 2; small++) {
		struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);

		fixture_begin(f, false, -EBUSY);
		fixture_begin(f, true, -EBUSY);
		assert_int_equal(mover_file_wrote(file, 0, &(struct mover_digest){{0}}), 0);
		mover_file_abandon(file);
		file = fixture_begin(f, false, MOVER_HAVE_NONE);
		mover_file_abandon(file);
		f->entry.size = 5;
	}
	assert_int_equal(room_count(&f->room, "."), 0);
	fixture_free(f);
}

static int many_at_once(const char *path, unsigned number)
{
	struct mover_entry entry = entry_file("file", 2 * CHUNK);
	struct mover_tree *tree;
	uint8_t *content = malloc(2 * CHUNK);
	unsigned stored = 0;

	memset(content, (int)number, 2 * CHUNK);
	entry.mtime_s = number;
	if (mover_tree_open(path, &tree))
		return 1;
	for (int i = 0; stored < 20; i++) {
		struct mover_file *file;
		int rc;

		entry.mtime_ns = (uint32_t)i; /* so that no file is unchanged */
		rc = mover_file_begin(tree, &entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file);
		if (rc == -EBUSY) {
			usleep(100);
			continue;
		}
		if (rc < 0)
			return 2;
		for (uint64_t k = 0; k < 2; k++) {
			struct mover_digest digest = mover_digest_of(content, CHUNK);

			if (mover_file_kept(file, k))
				mover_file_forget(file, k, 1);
			if (pwrite(mover_file_fd(file), content, CHUNK, (off_t)(k * CHUNK)) != CHUNK ||
			    mover_file_wrote(file, k, &digest))
				return 3;
		}
		if (i % 3 == 0) {
			mover_file_abandon(file);
			continue;
		}
		mover_file_commit(tree, &file, 1, &rc);
		if (rc)
			return 4;
		stored++;
	}
	mover_tree_close(tree);
	free(content);
	return 0;
}

/* Several processes receive different content under one name. In the end the file has the content of one of them. */
static void races_leave_one_whole(void **state)
{
	struct fixture *f = fixture_new();
	uint8_t *content = test_malloc(2 * CHUNK);
	int status, fd;

	for (unsigned i = 0; i < 4; i++)
		if (!fork())
			_exit(many_at_once(f->room.path, i + 1));
	for (unsigned i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	fd = openat(f->room.fd, "file", O_RDONLY);
	assert_int_equal(read(fd, content, 2 * CHUNK), 2 * CHUNK);
	assert_memory_equal(content, content + 1, 2 * CHUNK - 1);
	close(fd);
	test_free(content);
	fixture_free(f);
}

static void sparse_files_stay_sparse(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;
	struct stat st;

	f->entry.size = 1ull << 40;
	file = fixture_begin(f, false, MOVER_HAVE_NONE);
	assert_int_equal(mover_file_chunk_count(file), (1ull << 40) / CHUNK);
	assert_int_equal(fixture_put(f, file, 5), 0);
	mover_file_abandon(file);
	file = fixture_begin(f, false, MOVER_HAVE_SOME);
	assert_int_equal(fixture_commit(f, file), 0);
	st = room_stat(&f->room, "file");
	assert_int_equal(st.st_size, 1ull << 40);
	assert_true(st.st_blocks * 512 <= 4 * CHUNK);
	/* impossible sizes */
	f->entry.size = UINT64_MAX;
	fixture_begin(f, false, -EFBIG);
	f->entry.size = INT64_MAX;
	{
		int rc = mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file);

		assert_true(rc == -EFBIG || rc == -EINVAL || rc == MOVER_HAVE_NONE);
		if (file)
			mover_file_abandon(file);
	}
	f->entry.mtime_ns = 1000000000;
	fixture_begin(f, false, -EINVAL);
	assert_int_equal(room_count(&f->room, "."), 1);
	fixture_free(f);
}

static void streams_learn_their_size_at_the_end(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;

	f->entry.kind = MOVER_STREAM;
	f->entry.size = 0;
	file = fixture_begin(f, false, MOVER_HAVE_NONE);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(room_count(&f->room, "."), 0);
	file = fixture_begin(f, true, MOVER_HAVE_NONE);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, file, i), 0);
	assert_int_equal(mover_file_set_size(file, UINT64_MAX), -EFBIG);
	assert_int_equal(mover_file_set_size(file, BYTES), 0);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", f->content, BYTES));
	fixture_free(f);
}

static void empty_files(void **state)
{
	struct fixture *f = fixture_new();

	f->entry.size = 0;
	for (int compare = 0; compare < 2; compare++) {
		struct mover_file *file = fixture_begin(f, compare, MOVER_HAVE_NONE);

		assert_int_equal(mover_file_chunk_count(file), 0);
		assert_int_equal(fixture_commit(f, file), 0);
		assert_true(room_holds(&f->room, "file", "", 0));
		assert_int_equal(room_count(&f->room, "."), 1);
	}
	fixture_free(f);
}

static struct mover_file *begin_by(struct fixture *f, const struct mover_entry *entry, uint64_t maker, int expected)
{
	struct mover_begin begin = {.chunk_bytes = CHUNK, .maker = maker};
	struct mover_file *file;

	assert_int_equal(mover_file_begin(f->tree, entry, &begin, NULL, &file), expected);
	return file;
}

static void small_files_of_a_new_folder_get_one_name(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_entry folder = entry_folder("new", 0755), entry = entry_file("new/file", 3);
	struct mover_entry large = entry_file("new/large", 2 * CHUNK);
	struct mover_file *file, *other;

	assert_int_equal(mover_tree_folder(f->tree, &folder, 7), 0);
	file = begin_by(f, &entry, 7, MOVER_HAVE_NONE);
	if (room_count(&f->room, "new"))
		skip(); /* this file system knows no O_TMPFILE */
	assert_int_equal(pwrite(mover_file_fd(file), "abc", 3, 0), 3);
	other = begin_by(f, &entry, 7, MOVER_HAVE_NONE);
	assert_int_equal(pwrite(mover_file_fd(other), "xyz", 3, 0), 3);
	mover_file_abandon(begin_by(f, &entry, 7, MOVER_HAVE_NONE));
	assert_int_equal(room_count(&f->room, "new"), 0);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "new/file", "abc", 3));
	assert_int_equal(room_stat(&f->room, "new/file").st_mode & 07777, 0640);

	/* what has the name by now is replaced; another session looks at it first */
	assert_int_equal(fixture_commit(f, other), 0);
	assert_true(room_holds(&f->room, "new/file", "xyz", 3));
	begin_by(f, &entry, 8, MOVER_HAVE_ALL);
	assert_int_equal(room_count(&f->room, "new"), 1);

	/* modes that do not let the owner write, and a umask that takes what the receiver gave away before */
	entry = entry_file("new/read-only", 3);
	entry.mode = 0440;
	umask(077);
	file = begin_by(f, &entry, 7, MOVER_HAVE_NONE);
	umask(0);
	assert_int_equal(pwrite(mover_file_fd(file), "abc", 3, 0), 3);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "new/read-only", "abc", 3));
	assert_int_equal(room_stat(&f->room, "new/read-only").st_mode & 07777, 0440);
	assert_int_equal(unlinkat(f->room.fd, "new/read-only", 0), 0);

	/* what can be resumed has a name */
	mover_file_abandon(begin_by(f, &large, 7, MOVER_HAVE_NONE));
	file = begin_by(f, &large, 7, MOVER_HAVE_NONE);
	assert_int_equal(room_count(&f->room, "new"), 3);
	mover_file_abandon(file);
	fixture_free(f);
}

static void small_files_of_a_new_folder_keep_what_came_before(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_entry folder = entry_folder("new", 0755), entry = entry_file("new/file", 3);
	struct mover_file *file;

	assert_int_equal(mover_tree_folder(f->tree, &folder, 7), 0);
	file = begin_by(f, &entry, 7, MOVER_HAVE_NONE);
	room_mkdir(&f->room, "new/file");
	assert_int_equal(fixture_commit(f, file), -EISDIR);
	assert_int_equal(unlinkat(f->room.fd, "new/file", AT_REMOVEDIR), 0);
	mover_tree_keep_existing(f->tree);
	file = begin_by(f, &entry, 7, MOVER_HAVE_NONE);
	room_write(&f->room, "new/file", "old", 3);
	assert_int_equal(fixture_commit(f, file), -EEXIST);
	assert_true(room_holds(&f->room, "new/file", "old", 3));
	assert_int_equal(room_count(&f->room, "new"), 1);

	/* a folder that existed is nobody's */
	assert_int_equal(mover_tree_folder(f->tree, &folder, 8), 0);
	begin_by(f, &entry, 8, -EEXIST);
	fixture_free(f);
}

static double since(const struct timespec *begin_time)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin_time->tv_sec) * 1e6 + (double)(now.tv_nsec - begin_time->tv_nsec) / 1e3;
}

static void ten_thousand_small_files(void **state)
{
	enum { FILES = 10000, FOLDERS = 20, GROUP = 250 };
	struct fixture *f = fixture_new();
	struct mover_file *files[GROUP];
	int results[GROUP];
	char name[64];
	struct timespec start;
	double begin_us = 0, commit_us = 0, sync_us;

	for (int i = 0; i < FOLDERS; i++) {
		struct mover_entry entry;

		snprintf(name, sizeof(name), "folder%d", i);
		entry = entry_folder(name, 0755);
		assert_int_equal(mover_tree_folder(f->tree, &entry, 0), 0);
	}
	for (int i = 0; i < FILES; i += GROUP) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int k = 0; k < GROUP; k++) {
			struct mover_entry entry;

			snprintf(name, sizeof(name), "folder%d/file%d", (i + k) / (FILES / FOLDERS), i + k);
			entry = entry_file(name, 100);
			assert_int_equal(mover_file_begin(f->tree, &entry,
							  &(struct mover_begin){.chunk_bytes = 1 << 20}, NULL,
							  &files[k]),
					 MOVER_HAVE_NONE);
			assert_int_equal(pwrite(mover_file_fd(files[k]), f->content, 100, 0), 100);
			assert_int_equal(mover_file_wrote(files[k], 0, &(struct mover_digest){{0}}), 0);
		}
		begin_us += since(&start);
		clock_gettime(CLOCK_MONOTONIC, &start);
		mover_file_commit(f->tree, files, GROUP, results);
		commit_us += since(&start);
		for (int k = 0; k < GROUP; k++)
			assert_int_equal(results[k], 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(mover_tree_sync(f->tree, 0), 0);
	sync_us = since(&start);
	print_message(
		"10,000 files: begin and write %.1f us each, commit with sync %.1f us each, sync of names %.1f ms\n",
		begin_us / FILES, commit_us / FILES, sync_us / 1e3);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < FILES; i++) {
		struct mover_entry entry;

		snprintf(name, sizeof(name), "folder%d/file%d", i / (FILES / FOLDERS), i);
		entry = entry_file(name, 100);
		assert_int_equal(mover_file_begin(f->tree, &entry, &(struct mover_begin){.chunk_bytes = 1 << 20}, NULL,
						  &files[0]),
				 MOVER_HAVE_ALL);
	}
	print_message("finding them unchanged: %.1f us each\n", since(&start) / FILES);
	for (int i = 0; i < FOLDERS; i++) {
		snprintf(name, sizeof(name), "folder%d", i);
		assert_int_equal(room_count(&f->room, name), FILES / FOLDERS);
	}
	fixture_free(f);
}

static bool is_direct(const struct mover_file *file)
{
	return fcntl(mover_file_fd(file), F_GETFL) & O_DIRECT;
}

/* Whole chunks go past the page cache, the end goes through it. */
static void large_files_bypass_the_page_cache(void **state)
{
	const uint64_t size = (16u << 20) + 100, end = 16u << 20, at = 7 * CHUNK;
	struct fixture *f = fixture_new();
	uint8_t *expected = test_calloc(1, size), *pages = aligned_alloc(4096, CHUNK);
	struct mover_file *file;

	f->entry.size = end - 1;
	file = fixture_begin(f, false, MOVER_HAVE_NONE);
	assert_false(is_direct(file));
	mover_file_abandon(file);

	f->entry.size = size;
	file = fixture_begin(f, false, MOVER_HAVE_NONE);
	if (!is_direct(file))
		skip(); /* this file system has no O_DIRECT */
	assert_non_null(pages);
	memcpy(pages, f->content, CHUNK);
	memcpy(expected + at, f->content, CHUNK);
	memcpy(expected + end, f->content, 100);
	assert_int_equal(pwrite(mover_file_fd(file), pages, CHUNK, (off_t)at), CHUNK);
	mover_file_use_cache(file);
	assert_false(is_direct(file));
	assert_int_equal(pwrite(mover_file_fd(file), f->content, 100, (off_t)end), 100);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", expected, size));
	free(pages);
	test_free(expected);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_when_it_is_whole),
		cmocka_unit_test(a_probe_changes_nothing),
		cmocka_unit_test(a_symlink_is_replaced_not_followed),
		cmocka_unit_test(planted_temporary_names),
		cmocka_unit_test(one_transfer_of_a_file_at_a_time),
		cmocka_unit_test(races_leave_one_whole),
		cmocka_unit_test(sparse_files_stay_sparse),
		cmocka_unit_test(streams_learn_their_size_at_the_end),
		cmocka_unit_test(empty_files),
		cmocka_unit_test(small_files_of_a_new_folder_get_one_name),
		cmocka_unit_test(small_files_of_a_new_folder_keep_what_came_before),
		cmocka_unit_test(ten_thousand_small_files),
		cmocka_unit_test(large_files_bypass_the_page_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
