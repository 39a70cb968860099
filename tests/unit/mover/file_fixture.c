/* SPDX-License-Identifier: BSD-2-Clause */
#include "file_fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

struct fixture *fixture_new(void)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	uint64_t seed = 1;

	room_open(&f->room);
	assert_int_equal(mover_tree_open(f->room.path, &f->tree), 0);
	random_fill(&seed, f->content, BYTES);
	f->entry = entry_file("file", BYTES);
	return f;
}

void fixture_free(struct fixture *f)
{
	mover_tree_close(f->tree);
	room_close(&f->room);
	test_free(f);
}

static size_t chunk_len(uint64_t index)
{
	return index == CHUNKS - 1 ? 100 : CHUNK;
}

static struct mover_digest chunk_digest(const struct fixture *f, uint64_t index)
{
	return mover_digest_of(f->content + index * CHUNK, chunk_len(index));
}

int fixture_put(const struct fixture *f, struct mover_file *file, uint64_t index)
{
	struct mover_digest digest = chunk_digest(f, index);

	mover_file_use_cache(file); /* f->content is not at a page */
	for (size_t done = 0; done < chunk_len(index);) {
		ssize_t n = pwrite(mover_file_fd(file), f->content + index * CHUNK + done, chunk_len(index) - done,
				   (off_t)(index * CHUNK + done));

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return mover_file_wrote(file, index, &digest);
}

struct mover_file *fixture_begin(struct fixture *f, bool compare, int expected)
{
	struct mover_file *file;

	assert_int_equal(mover_file_begin(f->tree, &f->entry,
					  &(struct mover_begin){.chunk_bytes = CHUNK, .ticket = 1, .compare = compare},
					  NULL, &file),
			 expected);
	assert_true((file != NULL) == (expected == MOVER_HAVE_NONE || expected == MOVER_HAVE_SOME));
	return file;
}

int fixture_commit(struct fixture *f, struct mover_file *file)
{
	int rc = 1;

	mover_file_commit(f->tree, &file, 1, &rc);
	return rc;
}

unsigned fixture_finish(struct fixture *f, struct mover_file *file)
{
	unsigned kept = 0;

	for (uint64_t i = 0; i < CHUNKS; i++) {
		const struct mover_digest *digest = mover_file_kept(file, i);
		struct mover_digest wanted = chunk_digest(f, i);

		if (digest && !memcmp(digest, &wanted, sizeof(wanted))) {
			kept++;
			continue;
		}
		if (digest)
			mover_file_forget(file, i, 1);
		assert_null(mover_file_kept(file, i));
		assert_int_equal(fixture_put(f, file, i), 0);
	}
	assert_int_equal(fixture_commit(f, file), 0);
	assert_true(room_holds(&f->room, "file", f->content, BYTES));
	assert_int_equal(room_count(&f->room, "."), 1);
	return kept;
}
