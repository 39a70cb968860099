/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree in a temporary folder, and one file "file" of ten chunks to receive into it. */
#ifndef ROCI_TESTS_FILE_FIXTURE_H
#define ROCI_TESTS_FILE_FIXTURE_H

#include "room.h"

#include "mover/tree.h"

#define CHUNK  65536u
#define CHUNKS 10
#define BYTES  ((CHUNKS - 1) * CHUNK + 100)

struct fixture {
	struct room room;
	struct mover_tree *tree;
	uint8_t content[BYTES];
	struct mover_entry entry; /* "file", of BYTES */
};

struct fixture *fixture_new(void);
void fixture_free(struct fixture *f);

/* Begins the file. mover_file_begin() has to return `expected`. */
struct mover_file *fixture_begin(struct fixture *f, bool compare, int expected);
/* Writes chunk `index`. 0 or -errno. */
int fixture_put(const struct fixture *f, struct mover_file *file, uint64_t index);
/* 0 or -errno. */
int fixture_commit(struct fixture *f, struct mover_file *file);
/* Writes what is not kept, commits, and checks the content. Returns how many chunks were kept. */
unsigned fixture_finish(struct fixture *f, struct mover_file *file);

#endif
