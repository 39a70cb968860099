/* SPDX-License-Identifier: BSD-2-Clause */
/* Content into files: each segment is checked against its entry and its digest, and then written. */
#ifndef ROCI_MOVER_RECEIVER_STORE_H
#define ROCI_MOVER_RECEIVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct disk;
struct proto_segment;
struct receiver;
struct recv_window;
struct store_op;

struct store {
	struct disk *disk, *out; /* for files, and for standard output */
	struct store_op *free_ops, *all_ops;
};

/* 0 or -errno. */
int store_init(struct receiver *r);
/* Waits for the writes under way. Before the windows go, and before the files are given up. */
void store_destroy(struct receiver *r);
/* `bytes` is the content, in `window`. Both are NULL where the descriptor has no content. */
void store_segment(struct receiver *r, const struct proto_segment *segment, uint8_t *bytes, struct recv_window *window);
bool store_pump(struct receiver *r);

#endif
