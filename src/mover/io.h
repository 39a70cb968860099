/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes at a position (everything, or an error), past the page cache or not. */
#ifndef ROCI_MOVER_IO_H
#define ROCI_MOVER_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads `len` bytes. 0, -EIO if the file has fewer, or -errno. */
int mover_read_at(int fd, void *to, size_t len, uint64_t at);

/* 0 or -errno. */
int mover_write_at(int fd, const void *from, size_t len, uint64_t at);

/* Writes only the 4 KiB blocks that are not all zeros; the others stay holes. 0 or -errno. */
int mover_write_sparse(int fd, const void *from, size_t len, uint64_t at);

/* Sets or clears O_DIRECT. True: it has changed. */
bool mover_change_direct(int fd, bool direct);

#endif
