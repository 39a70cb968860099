/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of an interrupted transfer, or of the file that has the name now. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/journal.h"

static void an_interrupted_transfer_is_resumed(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);

	for (uint64_t i = 0; i < CHUNKS; i += 2)
		assert_int_equal(fixture_put(f, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(room_count(&f->room, "."), 2);
	assert_false(room_has(&f->room, "file"));
	file = fixture_begin(f, false, MOVER_HAVE_SOME);
	assert_non_null(mover_file_kept(file, 0));
	assert_null(mover_file_kept(file, 1));
	assert_null(mover_file_kept(file, CHUNKS));
	assert_null(mover_file_kept(file, UINT64_MAX));
	assert_int_equal(fixture_put(f, file, CHUNKS - 1), 0);
	mover_file_abandon(file);
	assert_int_equal(fixture_finish(f, fixture_begin(f, false, MOVER_HAVE_SOME)), 6);
	fixture_free(f);
}

/* The journal cannot grow any more. If it has records, the transfer can be resumed; if it has none, nothing stays. The
 * limit of the file size stands for a full disk. */
static void a_journal_that_cannot_be_flushed(void **state)
{
	struct fixture *f = fixture_new();

	signal(SIGXFSZ, SIG_IGN);
	for (unsigned recorded = 0; recorded <= 3; recorded += 3) {
		struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
		struct rlimit before, limit;

		for (uint64_t i = 0; i < recorded; i++)
			assert_int_equal(fixture_put(f, file, i), 0);
		if (recorded) {
			mover_file_abandon(file);
			file = fixture_begin(f, false, MOVER_HAVE_SOME);
		}
		for (uint64_t i = recorded; i < CHUNKS; i++)
			assert_int_equal(fixture_put(f, file, i), 0);
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
		limit = before;
		limit.rlim_cur = JOURNAL_HEADER_BYTES + recorded * JOURNAL_RECORD_BYTES;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		mover_file_abandon(file);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(room_count(&f->room, "."), recorded ? 2 : 0);
	}
	assert_int_equal(fixture_finish(f, fixture_begin(f, false, MOVER_HAVE_SOME)), 3);
	fixture_free(f);
}

/* The session ends while a long file is read. What is there stays as it was. */
static void reading_what_is_there_can_be_stopped(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
	atomic_bool stop = true;

	for (uint64_t i = 2; i < CHUNKS; i += 3)
		assert_int_equal(fixture_put(f, file, i), 0);
	mover_file_abandon(file);
	for (int compare = 0; compare < 2; compare++) {
		assert_int_equal(mover_file_begin(f->tree, &f->entry,
						  &(struct mover_begin){.chunk_bytes = CHUNK, .compare = compare},
						  &stop, &file),
				 -ECANCELED);
		assert_null(file);
	}
	file = fixture_begin(f, false, MOVER_HAVE_SOME);
	assert_int_equal(mover_file_next_kept(file, 0), 2);
	assert_int_equal(mover_file_next_kept(file, 2), 2);
	assert_int_equal(mover_file_next_kept(file, 3), 5);
	mover_file_forget(file, 5, 1);
	assert_int_equal(mover_file_next_kept(file, 3), 8);
	assert_int_equal(mover_file_next_kept(file, 9), MOVER_NO_CHUNK);
	assert_int_equal(fixture_finish(f, file), 2);
	/* the same for the file that has the name */
	assert_int_equal(mover_file_begin(f->tree, &f->entry,
					  &(struct mover_begin){.chunk_bytes = CHUNK, .compare = true}, &stop, &file),
			 -ECANCELED);
	assert_int_equal(room_count(&f->room, "."), 1);
	fixture_free(f);
}

/* ... or while what the old file has is copied into the new one. What has come stays. */
static void copying_what_is_there_can_be_stopped(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;
	atomic_bool stop = false;

	assert_int_equal(fixture_finish(f, fixture_begin(f, false, MOVER_HAVE_NONE)), 0);
	f->content[0] ^= 1;
	assert_int_equal(mover_file_begin(f->tree, &f->entry,
					  &(struct mover_begin){.chunk_bytes = CHUNK, .ticket = 1, .compare = true},
					  &stop, &file),
			 MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	assert_int_equal(fixture_put(f, file, 0), 0);
	stop = true;
	assert_int_equal(fixture_commit(f, file), -ECANCELED);
	assert_int_equal(room_count(&f->room, "."), 3);
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), CHUNKS);
	fixture_free(f);
}

/* The process is killed after each chunk. */
static void killed_at_any_chunk(void **state)
{
	struct fixture *f = fixture_new();

	for (uint64_t n = 0; n <= CHUNKS; n++) {
		pid_t pid = fork();
		int status;
		struct mover_file *file;

		if (!pid) {
			if (mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL,
					     &file) != MOVER_HAVE_NONE)
				_exit(1);
			for (uint64_t i = 0; i < n; i++)
				if (fixture_put(f, file, i))
					_exit(2);
			raise(SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_false(room_has(&f->room, "file"));
		/* All records still wait for the journal's batch, so nothing is kept. */
		assert_int_equal(
			mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file),
			MOVER_HAVE_NONE);
		fixture_finish(f, file);
		assert_int_equal(unlinkat(f->room.fd, "file", 0), 0);
	}
	fixture_free(f);
}

/* The journal is checked against the temporary file, which was changed here. */
static void a_changed_temporary_file_is_noticed(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
	uint8_t byte;

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, file, i), 0);
	byte = f->content[3 * CHUNK + 5] ^ 1;
	assert_int_equal(pwrite(mover_file_fd(file), &byte, 1, 3 * CHUNK + 5), 1);
	assert_int_equal(ftruncate(mover_file_fd(file), BYTES - 1), 0);
	mover_file_abandon(file);
	assert_int_equal(fixture_finish(f, fixture_begin(f, false, MOVER_HAVE_SOME)), CHUNKS - 2);
	fixture_free(f);
}

/* Between two attempts the sender's file has changed: its size, its content, or its holes. */
static void remove_temporary_files(struct fixture *f)
{
	char path[MOVER_PATH_MAX + MOVER_COMPONENT_MAX + 2], *suffix;

	assert_true(mover_file_part(f->tree, &f->entry, path));
	assert_int_equal(unlinkat(f->room.fd, path, 0), 0);
	suffix = strstr(path, MOVER_PART_SUFFIX);
	assert_non_null(suffix);
	strcpy(suffix, MOVER_JOURNAL_SUFFIX);
	assert_int_equal(unlinkat(f->room.fd, path, 0), 0);
}

/* Somebody has removed the temporary file, and its name is that of another transfer's now, which is not complete. */
static void another_temporary_file_is_not_published(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *first = fixture_begin(f, false, MOVER_HAVE_NONE), *second;

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, first, i), 0);
	remove_temporary_files(f);
	second = fixture_begin(f, false, MOVER_HAVE_NONE);
	assert_int_equal(fixture_put(f, second, 0), 0);
	assert_int_equal(fixture_commit(f, first), -ESTALE);
	assert_false(room_has(&f->room, "file"));
	assert_int_equal(fixture_finish(f, second), 0);
	fixture_free(f);
}

static void the_source_has_changed(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);
	uint8_t *expected = test_calloc(1, BYTES + CHUNK);

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, file, i), 0);
	mover_file_abandon(file);
	/* shorter by a chunk: the last chunk is now a part of one that was whole */
	f->entry.size = BYTES - CHUNK;
	file = fixture_begin(f, false, MOVER_HAVE_SOME);
	assert_non_null(mover_file_kept(file, CHUNKS - 3));
	assert_null(mover_file_kept(file, CHUNKS - 2));
	mover_file_abandon(file);
	/* longer: what is not kept is a hole, though the interrupted transfer wrote there */
	f->entry.size = BYTES + CHUNK;
	file = fixture_begin(f, false, MOVER_HAVE_SOME);
	mover_file_forget(file, 4, 1);
	mover_file_forget(file, 4, 1);
	mover_file_forget(file, 77, UINT64_MAX);
	memcpy(expected, f->content, (CHUNKS - 2) * CHUNK);
	memset(expected + 4 * CHUNK, 0, CHUNK);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", expected, BYTES + CHUNK));
	test_free(expected);
	fixture_free(f);
}

static void another_chunk_size_starts_over(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file = fixture_begin(f, false, MOVER_HAVE_NONE);

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(fixture_put(f, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(
		mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = 2 * CHUNK}, NULL, &file),
		MOVER_HAVE_NONE);
	mover_file_abandon(file);
	assert_int_equal(room_count(&f->room, "."), 0);
	assert_int_equal(mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = 0}, NULL, &file),
			 -EINVAL);
	assert_int_equal(
		mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = 32u << 20}, NULL, &file),
		-EINVAL);
	fixture_free(f);
}

static void comparing_by_content(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;
	ino_t inode;

	/* no file, then the same file with another mode and time */
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_NONE)), 0);
	inode = room_stat(&f->room, "file").st_ino;
	f->entry.mtime_s = 5;
	f->entry.mode = 0444;
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), CHUNKS);
	assert_int_equal(room_stat(&f->room, "file").st_ino, inode);
	assert_int_equal(room_stat(&f->room, "file").st_mode & 07777, 0444);
	assert_int_equal(room_stat(&f->room, "file").st_mtim.tv_sec, 5);
	/* one chunk differs */
	f->content[2 * CHUNK + 1] ^= 1;
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), CHUNKS - 1);
	assert_int_not_equal(room_stat(&f->room, "file").st_ino, inode);
	/* interrupted: some chunks are in the temporary file, the others in the old one */
	f->content[0] ^= 1;
	f->content[7 * CHUNK] ^= 1;
	file = fixture_begin(f, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	assert_int_equal(fixture_put(f, file, 0), 0);
	mover_file_abandon(file);
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), CHUNKS - 1);
	/* shorter and longer ones */
	assert_int_equal(truncate(room_path(&f->room, "file"), 5 * CHUNK + 1), 0);
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), 5);
	room_write(&f->room, "file", f->content, BYTES);
	assert_int_equal(truncate(room_path(&f->room, "file"), BYTES + 1), 0);
	assert_int_equal(fixture_finish(f, fixture_begin(f, true, MOVER_HAVE_SOME)), CHUNKS - 1);
	/* changed by another program while it was compared: the commit fails */
	f->content[1] ^= 1;
	file = fixture_begin(f, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	assert_int_equal(fixture_put(f, file, 0), 0);
	room_write(&f->room, "file", "short", 5);
	assert_int_equal(fixture_commit(f, file), -ESTALE); /* not -EIO: the disk is well */
	assert_true(room_holds(&f->room, "file", "short", 5));
	fixture_free(f);
}

/* A sender that compares names any size: it learns the digests of whole chunks, and of the last one only if the file
 * ends there. */
static void no_digest_of_a_prefix(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;

	room_write(&f->room, "file", f->content, BYTES);
	for (uint64_t size = 1; size <= BYTES; size += CHUNK / 2 - 1) {
		f->entry.size = size;
		file = fixture_begin(f, true, size < CHUNK ? MOVER_HAVE_NONE : MOVER_HAVE_SOME);
		assert_null(mover_file_kept(file, size / CHUNK));
		mover_file_abandon(file);
	}
	f->entry.size = BYTES;
	file = fixture_begin(f, true, MOVER_HAVE_SOME);
	assert_non_null(mover_file_kept(file, CHUNKS - 1));
	mover_file_abandon(file);
	fixture_free(f);
}

/* What a transfer has left is not for the sender with another ticket, unless it has the same file, or the receiver lets
 * everybody compare. With the same file it may resume, but learns no digests. */
static void another_ticket_learns_no_digests(void **state)
{
	static const struct {
		uint64_t ticket;
		bool any, same_file, resumes, foreign;
	} cases[] = {{5, false, false, true, false},  {5, false, true, true, false},  {6, false, true, true, true},
		     {6, true, false, true, false},   {6, true, true, true, false},   {0, false, true, true, true},
		     {6, false, false, false, false}, {0, false, false, false, false}};
	struct fixture *f = fixture_new();
	const struct mover_entry entry = f->entry;
	struct mover_begin begin = {.chunk_bytes = CHUNK};
	struct mover_file *file;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin.ticket = 5;
		begin.any_ticket = false;
		f->entry = entry;
		assert_int_equal(mover_file_begin(f->tree, &f->entry, &begin, NULL, &file), MOVER_HAVE_NONE);
		assert_int_equal(fixture_put(f, file, 0), 0);
		mover_file_abandon(file);
		begin.ticket = cases[i].ticket;
		begin.any_ticket = cases[i].any;
		f->entry.mtime_ns += !cases[i].same_file;
		assert_int_equal(mover_file_begin(f->tree, &f->entry, &begin, NULL, &file),
				 cases[i].resumes ? MOVER_HAVE_SOME : MOVER_HAVE_NONE);
		assert_int_equal(mover_file_is_foreign(file), cases[i].foreign);
		mover_file_forget(file, 0, 1);
		mover_file_abandon(file);
	}
	fixture_free(f);
}

/* A wrong guess at a kept chunk leaves nothing to guess again, not even what has come since. */
static void a_sender_can_guess_once(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_begin begin = {.chunk_bytes = CHUNK, .ticket = 5};
	struct mover_file *file;

	assert_int_equal(mover_file_begin(f->tree, &f->entry, &begin, NULL, &file), MOVER_HAVE_NONE);
	assert_int_equal(fixture_put(f, file, 0), 0);
	mover_file_abandon(file);
	begin.ticket = 6;
	assert_int_equal(mover_file_begin(f->tree, &f->entry, &begin, NULL, &file), MOVER_HAVE_SOME);
	assert_true(mover_file_is_foreign(file));
	mover_file_discard(file);
	assert_int_equal(fixture_put(f, file, 1), 0);
	mover_file_abandon(file);
	assert_int_equal(mover_file_begin(f->tree, &f->entry, &begin, NULL, &file), MOVER_HAVE_NONE);
	assert_false(mover_file_is_foreign(file));
	mover_file_abandon(file);
	fixture_free(f);
}

static size_t count_kept(const struct mover_file *file)
{
	size_t count = 0;

	for (uint64_t i = 0; (i = mover_file_next_kept(file, i)) != MOVER_NO_CHUNK; i++)
		count++;
	return count;
}

/* A sender can make a file of 8 TiB that is one hole, and then offer it again. What is remembered of its 2^27 chunks is
 * bounded, for all files together, and the room comes back. */
static void memory_is_bounded_whatever_the_size(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file, *other;
	struct mover_entry entry = f->entry;

	room_write(&f->room, "other", f->content, BYTES);
	room_write(&f->room, "file", "", 0);
	f->entry.size = 8ull << 40;
	if (truncate(room_path(&f->room, "file"), 8ll << 40)) {
		fixture_free(f);
		skip(); /* not on this file system */
	}
	for (unsigned i = 0; i < 2; i++) {
		file = fixture_begin(f, true, MOVER_HAVE_SOME);
		assert_int_equal(count_kept(file), 2 << 20);
		entry.name = (const uint8_t *)"other";
		entry.name_len = 5;
		assert_int_equal(mover_file_begin(f->tree, &entry,
						  &(struct mover_begin){.chunk_bytes = CHUNK, .compare = true}, NULL,
						  &other),
				 MOVER_HAVE_NONE);
		mover_file_abandon(other);
		mover_file_abandon(file);
	}
	fixture_free(f);
}

static void sparse_files_stay_sparse_when_compared(void **state)
{
	struct fixture *f = fixture_new();
	struct mover_file *file;

	memset(f->content, 0, BYTES);
	f->content[0] = f->content[BYTES - 1] = 1;
	room_write(&f->room, "file", "", 0);
	assert_int_equal(truncate(room_path(&f->room, "file"), BYTES), 0);
	file = fixture_begin(f, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	mover_file_forget(file, 2, UINT64_MAX); /* the sender has a hole there; chunk 1 is right */
	assert_int_equal(mover_write_sparse(mover_file_fd(file), f->content, BYTES, 0), 0);
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", f->content, BYTES));
	assert_int_equal(room_stat(&f->room, "file").st_blocks * 512, 2 * 4096);
	fixture_free(f);
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -1;
	rc = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	close(fd);
	return rc;
}

/* A mount namespace: at once as root, otherwise in a user namespace. */
static int own_mounts(void)
{
	char map[32];

	if (!unshare(CLONE_NEWNS))
		return 0;
	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) || write_text("/proc/self/uid_map", map);
}

/* On a file system that holds six chunks. */
static int on_a_full_disk(const struct fixture *old)
{
	struct fixture *f = (struct fixture *)old;
	struct mover_entry small = entry_file("small", 10), sparse = entry_file("sparse", 1 << 30);
	struct mover_file *file, *other;
	uint64_t n = 0;
	int rc;

	if (own_mounts() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", f->room.path, "tmpfs", 0, "size=384k"))
		return 77;
	if (mover_tree_open(f->room.path, &f->tree))
		return 1;
	if (mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file) !=
	    MOVER_HAVE_NONE)
		return 2;
	while (n < CHUNKS && !(rc = fixture_put(f, file, n)))
		n++;
	if (n < 2 || n == CHUNKS || rc != -ENOSPC)
		return 3;
	/* a file that is nearly all hole could still be begun */
	if (mover_file_begin(f->tree, &sparse, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &other) ==
	    MOVER_HAVE_NONE)
		mover_file_abandon(other);
	else if (other)
		return 4;
	if (mover_file_begin(f->tree, &small, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &other) < 0)
		return 5;
	mover_file_abandon(other);
	mover_file_abandon(file);
	/* with room again, the transfer resumes */
	if (mount("none", f->room.path, NULL, MS_REMOUNT, "size=8m"))
		return 6;
	if (mover_file_begin(f->tree, &f->entry, &(struct mover_begin){.chunk_bytes = CHUNK}, NULL, &file) !=
	    MOVER_HAVE_SOME)
		return 7;
	for (uint64_t i = 0; i < CHUNKS; i++) {
		if (!!mover_file_kept(file, i) != (i < n))
			return 8;
		if (i >= n && fixture_put(f, file, i))
			return 9;
	}
	mover_file_commit(f->tree, &file, 1, &rc);
	return rc ? 10 : 0;
}

static void a_full_disk(void **state)
{
	struct fixture *f = fixture_new();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(on_a_full_disk(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fixture_free(f);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interrupted_transfer_is_resumed),
		cmocka_unit_test(a_journal_that_cannot_be_flushed),
		cmocka_unit_test(reading_what_is_there_can_be_stopped),
		cmocka_unit_test(copying_what_is_there_can_be_stopped),
		cmocka_unit_test(killed_at_any_chunk),
		cmocka_unit_test(a_changed_temporary_file_is_noticed),
		cmocka_unit_test(another_temporary_file_is_not_published),
		cmocka_unit_test(the_source_has_changed),
		cmocka_unit_test(another_chunk_size_starts_over),
		cmocka_unit_test(no_digest_of_a_prefix),
		cmocka_unit_test(another_ticket_learns_no_digests),
		cmocka_unit_test(a_sender_can_guess_once),
		cmocka_unit_test(memory_is_bounded_whatever_the_size),
		cmocka_unit_test(sparse_files_stay_sparse_when_compared),
		cmocka_unit_test(comparing_by_content),
		cmocka_unit_test(a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
