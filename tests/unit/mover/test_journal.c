/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/journal.h"
#include "mover/kept.h"

#define CHUNK (1u << 20)

static struct mover_digest digest_of(uint64_t number)
{
	return mover_digest_of(&number, sizeof(number));
}

static int take(void *context, uint64_t index, const struct mover_digest *digest)
{
	struct kept_chunk chunk = {.index = index, .digest = *digest};

	return mover_kept_add(context, &chunk);
}

static int refuse(void *context, uint64_t index, const struct mover_digest *digest)
{
	return -ENOMEM;
}

static size_t file_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (size_t)st.st_size;
}

/* Reads the journal as another process would. */
static struct kept reread(int fd, struct journal *journal)
{
	struct mover_digest name = digest_of(99);
	struct kept kept = {0};

	assert_int_equal(mover_journal_open(journal, fd, CHUNK, &name, &(struct journal_owner){0}, take, &kept), 0);
	return kept;
}

static void what_is_added_is_read(void **state)
{
	static struct journal journal;
	int fd = memfd_create("journal", MFD_CLOEXEC);
	struct kept kept = reread(fd, &journal);

	assert_int_equal(kept.count, 0);
	for (uint64_t i = 0; i < 5000; i++) {
		struct mover_digest digest = digest_of(i);

		assert_int_equal(mover_journal_add(&journal, i * 3, &digest), 0);
	}
	assert_int_equal(mover_journal_flush(&journal), 0);
	assert_int_equal(file_bytes(fd), JOURNAL_HEADER_BYTES + 5000 * JOURNAL_RECORD_BYTES);
	kept = reread(fd, &journal);
	assert_int_equal(kept.count, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		struct mover_digest digest = digest_of(i);

		assert_int_equal(kept.chunks[i].index, i * 3);
		assert_memory_equal(&kept.chunks[i].digest, &digest, sizeof(digest));
	}
	mover_kept_clear(&kept);
	assert_int_equal(mover_journal_open(&journal, fd, CHUNK, &(struct mover_digest){0}, &(struct journal_owner){0},
					    refuse, NULL),
			 0);
	close(fd);
}

/* A kill loses the records that have not been written: at most 16 MiB of content. */
static void little_waits(void **state)
{
	static struct journal journal;
	int fd = memfd_create("journal", MFD_CLOEXEC);
	const struct mover_digest name = digest_of(99), digest = digest_of(1);

	for (uint32_t chunk = 64 << 10; chunk <= 16 << 20; chunk *= 4) {
		uint64_t lost = 0;
		size_t calls = 0, before;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(
			mover_journal_open(&journal, fd, chunk, &name, &(struct journal_owner){0}, refuse, NULL), 0);
		for (uint64_t i = 0; i < 1000; i++) {
			before = file_bytes(fd);
			assert_int_equal(mover_journal_add(&journal, i, &digest), 0);
			calls += file_bytes(fd) != before;
			lost = i + 1 - (file_bytes(fd) - JOURNAL_HEADER_BYTES) / JOURNAL_RECORD_BYTES;
			assert_true(lost * chunk < 16 << 20);
		}
		assert_true(calls <= 1000ull * chunk / (8 << 20) + 1 || chunk >= 8 << 20);
	}
	close(fd);
}

static void any_cut_keeps_the_records_before_it(void **state)
{
	static struct journal journal;
	uint8_t bytes[JOURNAL_HEADER_BYTES + 3 * JOURNAL_RECORD_BYTES];
	int fd = memfd_create("journal", MFD_CLOEXEC);
	struct kept kept = reread(fd, &journal);

	for (uint64_t i = 0; i < 3; i++)
		mover_journal_add(&journal, i, &(struct mover_digest){{1}});
	assert_int_equal(mover_journal_flush(&journal), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
		size_t whole = cut < JOURNAL_HEADER_BYTES ? 0 : (cut - JOURNAL_HEADER_BYTES) / JOURNAL_RECORD_BYTES;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, cut, 0), cut);
		kept = reread(fd, &journal);
		assert_int_equal(kept.count, whole);
		mover_kept_clear(&kept);
		/* and the journal continues from there */
		mover_journal_add(&journal, 7, &(struct mover_digest){{2}});
		assert_int_equal(mover_journal_flush(&journal), 0);
		kept = reread(fd, &journal);
		assert_int_equal(kept.count, whole + 1);
		assert_int_equal(kept.chunks[whole].index, 7);
		mover_kept_clear(&kept);
	}
	close(fd);
}

static void any_damage_loses_that_record_only(void **state)
{
	static struct journal journal;
	uint8_t byte;
	int fd = memfd_create("journal", MFD_CLOEXEC);
	struct kept kept = reread(fd, &journal);

	for (uint64_t i = 0; i < 3; i++)
		mover_journal_add(&journal, i, &(struct mover_digest){{1}});
	assert_int_equal(mover_journal_flush(&journal), 0);
	for (off_t at = JOURNAL_HEADER_BYTES; at < (off_t)file_bytes(fd); at++) {
		uint64_t damaged = (uint64_t)(at - JOURNAL_HEADER_BYTES) / JOURNAL_RECORD_BYTES;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		assert_int_equal(pwrite(fd, &(uint8_t){byte ^ 0x40}, 1, at), 1);
		kept = reread(fd, &journal);
		assert_int_equal(kept.count, 2);
		for (size_t i = 0; i < 2; i++)
			assert_int_not_equal(kept.chunks[i].index, damaged);
		mover_kept_clear(&kept);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	/* another file or chunk size: the journal starts over */
	for (off_t at = 0; at < JOURNAL_HEADER_BYTES; at++) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		assert_int_equal(pwrite(fd, &(uint8_t){byte ^ 1}, 1, at), 1);
		kept = reread(fd, &journal);
		assert_int_equal(kept.count, 0);
		assert_int_equal(file_bytes(fd), JOURNAL_HEADER_BYTES);
	}
	close(fd);
}

static void the_last_of_a_chunks_records_counts(void **state)
{
	struct kept kept = {0};
	static const uint64_t indexes[] = {5, 3, 5, 9, 3, 1, 5};

	for (uint8_t i = 0; i < 7; i++)
		assert_int_equal(mover_kept_add(&kept, &(struct kept_chunk){.index = indexes[i], .digest = {{i}}}), 0);
	mover_kept_sort(&kept);
	assert_int_equal(kept.count, 4);
	assert_int_equal(mover_kept_find(&kept, 5)->digest.bytes[0], 6);
	assert_int_equal(mover_kept_find(&kept, 3)->digest.bytes[0], 4);
	assert_int_equal(mover_kept_find(&kept, 1)->digest.bytes[0], 5);
	assert_int_equal(mover_kept_find(&kept, 9)->digest.bytes[0], 3);
	assert_null(mover_kept_find(&kept, 0));
	assert_null(mover_kept_find(&kept, 4));
	assert_null(mover_kept_find(&kept, UINT64_MAX));
	mover_kept_clear(&kept);
	mover_kept_sort(&kept);
	assert_null(mover_kept_find(&kept, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_read),
		cmocka_unit_test(little_waits),
		cmocka_unit_test(any_cut_keeps_the_records_before_it),
		cmocka_unit_test(any_damage_loses_that_record_only),
		cmocka_unit_test(the_last_of_a_chunks_records_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
