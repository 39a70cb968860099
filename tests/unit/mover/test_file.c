/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/journal.h"
#include "mover/tree.h"
#include "random.h"

#define CHUNK  65536u
#define CHUNKS 10
#define BYTES  ((CHUNKS - 1) * CHUNK + 100)

struct bench {
	struct room room;
	struct mover_tree *tree;
	uint8_t content[BYTES];
	struct mover_entry entry; /* "file", of BYTES */
};

static struct bench *bench_new(void)
{
	struct bench *b = test_calloc(1, sizeof(*b));
	uint64_t seed = 1;

	room_open(&b->room);
	assert_int_equal(mover_tree_open(b->room.path, &b->tree), 0);
	random_fill(&seed, b->content, BYTES);
	b->entry = entry_file("file", BYTES);
	return b;
}

static void bench_free(struct bench *b)
{
	mover_tree_close(b->tree);
	room_close(&b->room);
	test_free(b);
}

static size_t chunk_len(uint64_t index)
{
	return index == CHUNKS - 1 ? 100 : CHUNK;
}

static struct mover_digest chunk_digest(const struct bench *b, uint64_t index)
{
	return mover_digest_of(b->content + index * CHUNK, chunk_len(index));
}

static int put(const struct bench *b, struct mover_file *file, uint64_t index)
{
	struct mover_digest digest = chunk_digest(b, index);

	for (size_t done = 0; done < chunk_len(index);) {
		ssize_t n = pwrite(mover_file_fd(file), b->content + index * CHUNK + done, chunk_len(index) - done,
				   (off_t)(index * CHUNK + done));

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return mover_file_wrote(file, index, &digest);
}

static struct mover_file *begin(struct bench *b, bool compare, int expected)
{
	struct mover_file *file;

	assert_int_equal(mover_file_begin(b->tree, &b->entry, CHUNK, compare, NULL, &file), expected);
	assert_true((file != NULL) == (expected == MOVER_HAVE_NONE || expected == MOVER_HAVE_SOME));
	return file;
}

static int commit(struct bench *b, struct mover_file *file)
{
	int rc = 1;

	mover_file_commit(b->tree, &file, 1, &rc);
	return rc;
}

/* Sends what is not kept. Returns how many were. */
static unsigned finish(struct bench *b, struct mover_file *file)
{
	unsigned kept = 0;

	for (uint64_t i = 0; i < CHUNKS; i++) {
		const struct mover_digest *digest = mover_file_kept(file, i);
		struct mover_digest wanted = chunk_digest(b, i);

		if (digest && !memcmp(digest, &wanted, sizeof(wanted))) {
			kept++;
			continue;
		}
		if (digest)
			mover_file_forget(file, i, 1);
		assert_null(mover_file_kept(file, i));
		assert_int_equal(put(b, file, i), 0);
	}
	assert_int_equal(commit(b, file), 0);
	assert_true(room_holds(&b->room, "file", b->content, BYTES));
	assert_int_equal(room_count(&b->room, "."), 1);
	return kept;
}

static void a_file_appears_when_it_is_whole(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file;
	struct stat st;

	room_write(&b->room, "file", "old", 3);
	b->entry.mode = 07400;
	b->entry.mtime_s = -7;
	b->entry.mtime_ns = 999999999;
	file = begin(b, false, MOVER_HAVE_NONE);
	assert_int_equal(mover_file_chunk_count(file), CHUNKS);
	for (uint64_t i = CHUNKS; i-- > 0;) {
		assert_int_equal(put(b, file, i), 0);
		assert_true(room_holds(&b->room, "file", "old", 3));
	}
	assert_int_equal(commit(b, file), 0);
	assert_true(room_holds(&b->room, "file", b->content, BYTES));
	st = room_stat(&b->room, "file");
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_mtim.tv_sec, -7);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);
	assert_int_equal(room_count(&b->room, "."), 1);
	assert_int_equal(mover_tree_sync(b->tree, 0), 0);

	/* and then it is there already; its mode follows */
	b->entry.mode = 0604;
	begin(b, false, MOVER_HAVE_ALL);
	assert_int_equal(room_stat(&b->room, "file").st_mode & 07777, 0604);
	b->entry.mtime_ns--;
	mover_file_abandon(begin(b, false, MOVER_HAVE_NONE));
	b->entry.mtime_ns++;
	b->entry.size--;
	mover_file_abandon(begin(b, false, MOVER_HAVE_NONE));
	assert_int_equal(room_count(&b->room, "."), 1);
	bench_free(b);
}

/* What a dry run does. */
static void looking_changes_nothing(void **state)
{
	struct bench *b = bench_new();
	struct mover_entry deep = entry_file("none/file", 5), same;
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
	struct stat st;

	assert_int_equal(put(b, file, 1), 0);
	mover_file_abandon(file);
	assert_int_equal(mover_file_probe(b->tree, &b->entry, false), MOVER_HAVE_NONE);
	b->entry.size = 5; /* for which the partial would be begun anew */
	assert_int_equal(mover_file_probe(b->tree, &b->entry, false), MOVER_HAVE_NONE);
	b->entry.size = BYTES;
	assert_int_equal(mover_file_probe(b->tree, &deep, false), MOVER_HAVE_NONE);
	assert_int_equal(room_count(&b->room, "."), 2);
	assert_int_equal(finish(b, begin(b, false, MOVER_HAVE_SOME)), 1);

	same = b->entry;
	same.mode = 0600;
	assert_int_equal(mover_file_probe(b->tree, &same, false), MOVER_HAVE_ALL);
	assert_int_equal(mover_file_probe(b->tree, &same, true), MOVER_HAVE_NONE);
	st = room_stat(&b->room, "file");
	assert_int_equal(st.st_mode & 07777, 0640);
	same.size--;
	assert_int_equal(mover_file_probe(b->tree, &same, false), MOVER_HAVE_NONE);
	room_mkdir(&b->room, "none");
	same = entry_file("none", 5);
	assert_int_equal(mover_file_probe(b->tree, &same, false), -EISDIR);
	same = entry_file("file/x", 5);
	assert_int_equal(mover_file_probe(b->tree, &same, false), -ENOTDIR);
	same = entry_file("../x", 5);
	assert_int_equal(mover_file_probe(b->tree, &same, false), -EINVAL);
	assert_int_equal(room_count(&b->room, "."), 2);
	bench_free(b);
}

static void a_link_is_replaced_not_followed(void **state)
{
	struct bench *b = bench_new();

	room_write(&b->room, "victim", "v", 1);
	assert_int_equal(symlinkat("victim", b->room.fd, "file"), 0);
	b->entry.size = 1;
	assert_int_equal(commit(b, begin(b, false, MOVER_HAVE_NONE)), 0);
	assert_true(S_ISREG(room_stat(&b->room, "file").st_mode));
	assert_true(room_holds(&b->room, "victim", "v", 1));
	assert_true(room_holds(&b->room, "file", "\0", 1)); /* never written: a hole */
	bench_free(b);
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

/* Somebody else who may write here plants things under the temporary names. */
static void planted_temporary_names(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct bench *b = bench_new();
		struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
		char part[64], victim[] = "victim";

		temp_name(file, part, sizeof(part));
		mover_file_abandon(file);
		assert_int_equal(room_count(&b->room, "."), 0);
		room_write(&b->room, victim, "v", 1);
		if (i == 0)
			assert_int_equal(symlinkat(victim, b->room.fd, part), 0);
		else if (i == 1)
			assert_int_equal(linkat(b->room.fd, victim, b->room.fd, part, 0), 0);
		else if (i == 2)
			assert_int_equal(mkfifoat(b->room.fd, part, 0600), 0);
		else if (!geteuid()) {
			room_write(&b->room, part, "junk", 4);
			assert_int_equal(fchownat(b->room.fd, part, 65534, 65534, 0), 0);
		}
		file = begin(b, false, MOVER_HAVE_NONE);
		for (uint64_t k = 0; k < CHUNKS; k++)
			assert_int_equal(put(b, file, k), 0);
		assert_int_equal(commit(b, file), 0);
		assert_true(room_holds(&b->room, victim, "v", 1));
		assert_true(room_holds(&b->room, "file", b->content, BYTES));
		assert_int_equal(room_stat(&b->room, "file").st_uid, geteuid());
		bench_free(b);
	}
}

static void an_interrupted_transfer_is_resumed(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);

	for (uint64_t i = 0; i < CHUNKS; i += 2)
		assert_int_equal(put(b, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(room_count(&b->room, "."), 2);
	assert_false(room_has(&b->room, "file"));
	file = begin(b, false, MOVER_HAVE_SOME);
	assert_non_null(mover_file_kept(file, 0));
	assert_null(mover_file_kept(file, 1));
	assert_null(mover_file_kept(file, CHUNKS));
	assert_null(mover_file_kept(file, UINT64_MAX));
	assert_int_equal(put(b, file, CHUNKS - 1), 0);
	mover_file_abandon(file);
	assert_int_equal(finish(b, begin(b, false, MOVER_HAVE_SOME)), 6);
	bench_free(b);
}

/* Where the journal cannot grow any more, what it has is still worth resuming; and where it has nothing, nothing stays.
 * The limit stands for a full disk: it is met by what is to be appended. */
static void a_journal_that_cannot_be_flushed(void **state)
{
	struct bench *b = bench_new();

	signal(SIGXFSZ, SIG_IGN);
	for (unsigned recorded = 0; recorded <= 3; recorded += 3) {
		struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
		struct rlimit before, limit;

		for (uint64_t i = 0; i < recorded; i++)
			assert_int_equal(put(b, file, i), 0);
		if (recorded) {
			mover_file_abandon(file);
			file = begin(b, false, MOVER_HAVE_SOME);
		}
		for (uint64_t i = recorded; i < CHUNKS; i++)
			assert_int_equal(put(b, file, i), 0);
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
		limit = before;
		limit.rlim_cur = JOURNAL_HEADER_BYTES + recorded * JOURNAL_RECORD_BYTES;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		mover_file_abandon(file);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(room_count(&b->room, "."), recorded ? 2 : 0);
	}
	assert_int_equal(finish(b, begin(b, false, MOVER_HAVE_SOME)), 3);
	bench_free(b);
}

/* Nobody waits for it any more while it reads what is there: that stays as it was. */
static void looking_at_what_is_there_can_be_stopped(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
	atomic_bool stop = true;

	for (uint64_t i = 2; i < CHUNKS; i += 3)
		assert_int_equal(put(b, file, i), 0);
	mover_file_abandon(file);
	for (int compare = 0; compare < 2; compare++) {
		assert_int_equal(mover_file_begin(b->tree, &b->entry, CHUNK, compare, &stop, &file), -ECANCELED);
		assert_null(file);
	}
	file = begin(b, false, MOVER_HAVE_SOME);
	assert_int_equal(mover_file_next_kept(file, 0), 2);
	assert_int_equal(mover_file_next_kept(file, 2), 2);
	assert_int_equal(mover_file_next_kept(file, 3), 5);
	mover_file_forget(file, 5, 1);
	assert_int_equal(mover_file_next_kept(file, 3), 8);
	assert_int_equal(mover_file_next_kept(file, 9), MOVER_NO_CHUNK);
	assert_int_equal(finish(b, file), 2);
	/* the file that is there */
	assert_int_equal(mover_file_begin(b->tree, &b->entry, CHUNK, true, &stop, &file), -ECANCELED);
	assert_int_equal(room_count(&b->room, "."), 1);
	bench_free(b);
}

/* The process is killed, with the file in each state it can be in. */
static void killed_at_any_chunk(void **state)
{
	struct bench *b = bench_new();

	for (uint64_t n = 0; n <= CHUNKS; n++) {
		pid_t pid = fork();
		int status;
		struct mover_file *file;

		if (!pid) {
			if (mover_file_begin(b->tree, &b->entry, CHUNK, false, NULL, &file) != MOVER_HAVE_NONE)
				_exit(1);
			for (uint64_t i = 0; i < n; i++)
				if (put(b, file, i))
					_exit(2);
			raise(SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_false(room_has(&b->room, "file"));
		/* So few bytes wait for the journal's next batch: nothing is kept, or all is. It is right either way.
		 */
		assert_int_equal(mover_file_begin(b->tree, &b->entry, CHUNK, false, NULL, &file), MOVER_HAVE_NONE);
		finish(b, file);
		assert_int_equal(unlinkat(b->room.fd, "file", 0), 0);
	}
	bench_free(b);
}

/* What the journal says is checked: here the temporary file was changed behind its back. */
static void a_partial_that_lies_is_not_believed(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
	uint8_t byte;

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(put(b, file, i), 0);
	byte = b->content[3 * CHUNK + 5] ^ 1;
	assert_int_equal(pwrite(mover_file_fd(file), &byte, 1, 3 * CHUNK + 5), 1);
	assert_int_equal(ftruncate(mover_file_fd(file), BYTES - 1), 0);
	mover_file_abandon(file);
	assert_int_equal(finish(b, begin(b, false, MOVER_HAVE_SOME)), CHUNKS - 2);
	bench_free(b);
}

/* Between two attempts the sender's file has changed: its size, its content, or where its holes are. */
static void the_source_has_changed_meanwhile(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);
	uint8_t *expected = test_calloc(1, BYTES + CHUNK);

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(put(b, file, i), 0);
	mover_file_abandon(file);
	/* shorter by a chunk, and the second but last is one now that is cut */
	b->entry.size = BYTES - CHUNK;
	file = begin(b, false, MOVER_HAVE_SOME);
	assert_non_null(mover_file_kept(file, CHUNKS - 3));
	assert_null(mover_file_kept(file, CHUNKS - 2));
	mover_file_abandon(file);
	/* longer: what is not kept is a hole, though the killed transfer had written there */
	b->entry.size = BYTES + CHUNK;
	file = begin(b, false, MOVER_HAVE_SOME);
	mover_file_forget(file, 4, 1);
	mover_file_forget(file, 4, 1);
	mover_file_forget(file, 77, UINT64_MAX);
	memcpy(expected, b->content, (CHUNKS - 2) * CHUNK);
	memset(expected + 4 * CHUNK, 0, CHUNK);
	assert_int_equal(commit(b, file), 0);
	assert_true(room_holds(&b->room, "file", expected, BYTES + CHUNK));
	test_free(expected);
	bench_free(b);
}

static void other_chunk_sizes_begin_anew(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);

	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(put(b, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(mover_file_begin(b->tree, &b->entry, 2 * CHUNK, false, NULL, &file), MOVER_HAVE_NONE);
	mover_file_abandon(file);
	assert_int_equal(room_count(&b->room, "."), 0);
	assert_int_equal(mover_file_begin(b->tree, &b->entry, 0, false, NULL, &file), -EINVAL);
	assert_int_equal(mover_file_begin(b->tree, &b->entry, 32u << 20, false, NULL, &file), -EINVAL);
	bench_free(b);
}

static void one_transfer_of_a_file_at_a_time(void **state)
{
	struct bench *b = bench_new();

	for (int small = 0; small < 2; small++) {
		struct mover_file *file = begin(b, false, MOVER_HAVE_NONE);

		begin(b, false, -EBUSY);
		begin(b, true, -EBUSY);
		assert_int_equal(mover_file_wrote(file, 0, &(struct mover_digest){{0}}), 0);
		mover_file_abandon(file);
		file = begin(b, false, MOVER_HAVE_NONE);
		mover_file_abandon(file);
		b->entry.size = 5;
	}
	assert_int_equal(room_count(&b->room, "."), 0);
	bench_free(b);
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

		entry.mtime_ns = (uint32_t)i; /* so that it is never there already */
		rc = mover_file_begin(tree, &entry, CHUNK, false, NULL, &file);
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

/* Several processes send other content under one name: in the end it is one of theirs, whole. */
static void races_leave_one_whole(void **state)
{
	struct bench *b = bench_new();
	uint8_t *content = test_malloc(2 * CHUNK);
	int status, fd;

	for (unsigned i = 0; i < 4; i++)
		if (!fork())
			_exit(many_at_once(b->room.path, i + 1));
	for (unsigned i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	fd = openat(b->room.fd, "file", O_RDONLY);
	assert_int_equal(read(fd, content, 2 * CHUNK), 2 * CHUNK);
	assert_memory_equal(content, content + 1, 2 * CHUNK - 1);
	close(fd);
	test_free(content);
	bench_free(b);
}

static void sparse_files_stay_sparse(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file;
	struct stat st;

	b->entry.size = 1ull << 40;
	file = begin(b, false, MOVER_HAVE_NONE);
	assert_int_equal(mover_file_chunk_count(file), (1ull << 40) / CHUNK);
	assert_int_equal(put(b, file, 5), 0);
	mover_file_abandon(file);
	file = begin(b, false, MOVER_HAVE_SOME);
	assert_int_equal(commit(b, file), 0);
	st = room_stat(&b->room, "file");
	assert_int_equal(st.st_size, 1ull << 40);
	assert_true(st.st_blocks * 512 <= 4 * CHUNK);
	/* sizes that lie */
	b->entry.size = UINT64_MAX;
	begin(b, false, -EFBIG);
	b->entry.size = INT64_MAX;
	{
		int rc = mover_file_begin(b->tree, &b->entry, CHUNK, false, NULL, &file);

		assert_true(rc == -EFBIG || rc == -EINVAL || rc == MOVER_HAVE_NONE);
		if (file)
			mover_file_abandon(file);
	}
	b->entry.mtime_ns = 1000000000;
	begin(b, false, -EINVAL);
	assert_int_equal(room_count(&b->room, "."), 1);
	bench_free(b);
}

static void streams_learn_their_size_at_the_end(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file;

	b->entry.kind = MOVER_STREAM;
	b->entry.size = 0;
	file = begin(b, false, MOVER_HAVE_NONE);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(put(b, file, i), 0);
	mover_file_abandon(file);
	assert_int_equal(room_count(&b->room, "."), 0);
	file = begin(b, true, MOVER_HAVE_NONE);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(put(b, file, i), 0);
	assert_int_equal(mover_file_set_size(file, UINT64_MAX), -EFBIG);
	assert_int_equal(mover_file_set_size(file, BYTES), 0);
	assert_int_equal(commit(b, file), 0);
	assert_true(room_holds(&b->room, "file", b->content, BYTES));
	bench_free(b);
}

static void comparing_by_content(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file;
	ino_t inode;

	/* nothing there, then the same, with another mode and time */
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_NONE)), 0);
	inode = room_stat(&b->room, "file").st_ino;
	b->entry.mtime_s = 5;
	b->entry.mode = 0444;
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_SOME)), CHUNKS);
	assert_int_equal(room_stat(&b->room, "file").st_ino, inode);
	assert_int_equal(room_stat(&b->room, "file").st_mode & 07777, 0444);
	assert_int_equal(room_stat(&b->room, "file").st_mtim.tv_sec, 5);
	/* one chunk differs */
	b->content[2 * CHUNK + 1] ^= 1;
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_SOME)), CHUNKS - 1);
	assert_int_not_equal(room_stat(&b->room, "file").st_ino, inode);
	/* interrupted in between: some chunks are in the temporary file, the others in the old one */
	b->content[0] ^= 1;
	b->content[7 * CHUNK] ^= 1;
	file = begin(b, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	assert_int_equal(put(b, file, 0), 0);
	mover_file_abandon(file);
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_SOME)), CHUNKS - 1);
	/* shorter and longer ones */
	assert_int_equal(truncate(room_path(&b->room, "file"), 5 * CHUNK + 1), 0);
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_SOME)), 5);
	room_write(&b->room, "file", b->content, BYTES);
	assert_int_equal(truncate(room_path(&b->room, "file"), BYTES + 1), 0);
	assert_int_equal(finish(b, begin(b, true, MOVER_HAVE_SOME)), CHUNKS);
	/* changed by somebody while it was compared: nothing wrong is made of it */
	b->content[1] ^= 1;
	file = begin(b, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	assert_int_equal(put(b, file, 0), 0);
	room_write(&b->room, "file", "short", 5);
	assert_true(commit(b, file) < 0);
	assert_true(room_holds(&b->room, "file", "short", 5));
	bench_free(b);
}

static void sparse_files_stay_sparse_when_compared(void **state)
{
	struct bench *b = bench_new();
	struct mover_file *file;

	memset(b->content, 0, BYTES);
	b->content[0] = b->content[BYTES - 1] = 1;
	room_write(&b->room, "file", "", 0);
	assert_int_equal(truncate(room_path(&b->room, "file"), BYTES), 0);
	file = begin(b, true, MOVER_HAVE_SOME);
	mover_file_forget(file, 0, 1);
	mover_file_forget(file, 2, UINT64_MAX); /* the sender has a hole there, and chunk 1 as it is */
	assert_int_equal(mover_write_sparse(mover_file_fd(file), b->content, BYTES, 0), 0);
	assert_int_equal(commit(b, file), 0);
	assert_true(room_holds(&b->room, "file", b->content, BYTES));
	assert_int_equal(room_stat(&b->room, "file").st_blocks * 512, 2 * 4096);
	bench_free(b);
}

static void empty_files(void **state)
{
	struct bench *b = bench_new();

	b->entry.size = 0;
	for (int compare = 0; compare < 2; compare++) {
		struct mover_file *file = begin(b, compare, MOVER_HAVE_NONE);

		assert_int_equal(mover_file_chunk_count(file), 0);
		assert_int_equal(commit(b, file), 0);
		assert_true(room_holds(&b->room, "file", "", 0));
		assert_int_equal(room_count(&b->room, "."), 1);
	}
	bench_free(b);
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
	struct bench *b = bench_new();
	struct mover_file *files[GROUP];
	int results[GROUP];
	char name[64];
	struct timespec start;
	double begin_us = 0, commit_us = 0, sync_us;

	for (int i = 0; i < FOLDERS; i++) {
		struct mover_entry entry;

		snprintf(name, sizeof(name), "folder%d", i);
		entry = entry_folder(name, 0755);
		assert_int_equal(mover_tree_folder(b->tree, &entry), 0);
	}
	for (int i = 0; i < FILES; i += GROUP) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		for (int k = 0; k < GROUP; k++) {
			struct mover_entry entry;

			snprintf(name, sizeof(name), "folder%d/file%d", (i + k) / (FILES / FOLDERS), i + k);
			entry = entry_file(name, 100);
			assert_int_equal(mover_file_begin(b->tree, &entry, 1 << 20, false, NULL, &files[k]),
					 MOVER_HAVE_NONE);
			assert_int_equal(pwrite(mover_file_fd(files[k]), b->content, 100, 0), 100);
			assert_int_equal(mover_file_wrote(files[k], 0, &(struct mover_digest){{0}}), 0);
		}
		begin_us += since(&start);
		clock_gettime(CLOCK_MONOTONIC, &start);
		mover_file_commit(b->tree, files, GROUP, results);
		commit_us += since(&start);
		for (int k = 0; k < GROUP; k++)
			assert_int_equal(results[k], 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(mover_tree_sync(b->tree, 0), 0);
	sync_us = since(&start);
	print_message(
		"10,000 files: begin and write %.1f us each, commit with sync %.1f us each, sync of names %.1f ms\n",
		begin_us / FILES, commit_us / FILES, sync_us / 1e3);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < FILES; i++) {
		struct mover_entry entry;

		snprintf(name, sizeof(name), "folder%d/file%d", i / (FILES / FOLDERS), i);
		entry = entry_file(name, 100);
		assert_int_equal(mover_file_begin(b->tree, &entry, 1 << 20, false, NULL, &files[0]), MOVER_HAVE_ALL);
	}
	print_message("finding them unchanged: %.1f us each\n", since(&start) / FILES);
	for (int i = 0; i < FOLDERS; i++) {
		snprintf(name, sizeof(name), "folder%d", i);
		assert_int_equal(room_count(&b->room, name), FILES / FOLDERS);
	}
	bench_free(b);
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

/* As root at once, else as the root of a user namespace. */
static int own_mounts(void)
{
	char map[32];

	if (!unshare(CLONE_NEWNS))
		return 0;
	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) || write_text("/proc/self/uid_map", map);
}

/* On a file system that holds six chunks. */
static int on_a_full_disk(const struct bench *old)
{
	struct bench *b = (struct bench *)old;
	struct mover_entry small = entry_file("small", 10), sparse = entry_file("sparse", 1 << 30);
	struct mover_file *file, *other;
	uint64_t n = 0;
	int rc;

	if (own_mounts() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", b->room.path, "tmpfs", 0, "size=384k"))
		return 77;
	if (mover_tree_open(b->room.path, &b->tree))
		return 1;
	if (mover_file_begin(b->tree, &b->entry, CHUNK, false, NULL, &file) != MOVER_HAVE_NONE)
		return 2;
	while (n < CHUNKS && !(rc = put(b, file, n)))
		n++;
	if (n < 2 || n == CHUNKS || rc != -ENOSPC)
		return 3;
	/* a file that is nearly all hole could still be begun */
	if (mover_file_begin(b->tree, &sparse, CHUNK, false, NULL, &other) == MOVER_HAVE_NONE)
		mover_file_abandon(other);
	else if (other)
		return 4;
	if (mover_file_begin(b->tree, &small, CHUNK, false, NULL, &other) < 0)
		return 5;
	mover_file_abandon(other);
	mover_file_abandon(file);
	/* with room again, it goes on from there */
	if (mount("none", b->room.path, NULL, MS_REMOUNT, "size=8m"))
		return 6;
	if (mover_file_begin(b->tree, &b->entry, CHUNK, false, NULL, &file) != MOVER_HAVE_SOME)
		return 7;
	for (uint64_t i = 0; i < CHUNKS; i++) {
		if (!!mover_file_kept(file, i) != (i < n))
			return 8;
		if (i >= n && put(b, file, i))
			return 9;
	}
	mover_file_commit(b->tree, &file, 1, &rc);
	return rc ? 10 : 0;
}

static void a_full_disk(void **state)
{
	struct bench *b = bench_new();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(on_a_full_disk(b));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	bench_free(b);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_when_it_is_whole),
		cmocka_unit_test(looking_changes_nothing),
		cmocka_unit_test(a_link_is_replaced_not_followed),
		cmocka_unit_test(planted_temporary_names),
		cmocka_unit_test(an_interrupted_transfer_is_resumed),
		cmocka_unit_test(a_journal_that_cannot_be_flushed),
		cmocka_unit_test(looking_at_what_is_there_can_be_stopped),
		cmocka_unit_test(killed_at_any_chunk),
		cmocka_unit_test(a_partial_that_lies_is_not_believed),
		cmocka_unit_test(the_source_has_changed_meanwhile),
		cmocka_unit_test(other_chunk_sizes_begin_anew),
		cmocka_unit_test(one_transfer_of_a_file_at_a_time),
		cmocka_unit_test(races_leave_one_whole),
		cmocka_unit_test(sparse_files_stay_sparse),
		cmocka_unit_test(sparse_files_stay_sparse_when_compared),
		cmocka_unit_test(streams_learn_their_size_at_the_end),
		cmocka_unit_test(comparing_by_content),
		cmocka_unit_test(empty_files),
		cmocka_unit_test(ten_thousand_small_files),
		cmocka_unit_test(a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
