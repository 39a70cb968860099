/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 4096

int mover_read_at(int fd, void *to, size_t len, uint64_t at)
{
	while (len) {
		ssize_t got = pread(fd, to, len, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		to = (uint8_t *)to + got;
		at += (uint64_t)got;
		len -= (size_t)got;
	}
	return 0;
}

int mover_write_at(int fd, const void *from, size_t len, uint64_t at)
{
	while (len) {
		ssize_t put = pwrite(fd, from, len, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		from = (const uint8_t *)from + put;
		at += (uint64_t)put;
		len -= (size_t)put;
	}
	return 0;
}

static bool all_zero(const uint8_t *bytes, size_t len)
{
	return bytes[0] == 0 && (len == 1 || memcmp(bytes, bytes + 1, len - 1) == 0);
}

int mover_write_sparse(int fd, const void *from, size_t len, uint64_t at)
{
	const uint8_t *bytes = from;
	int err = 0;

	for (size_t begin = 0, n; begin < len && !err; begin += n) {
		n = len - begin < BLOCK_BYTES ? len - begin : BLOCK_BYTES;
		if (!all_zero(bytes + begin, n))
			err = mover_write_at(fd, bytes + begin, n, at + begin);
	}
	return err;
}

bool mover_change_direct(int fd, bool direct)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && direct != !!(flags & O_DIRECT) && !fcntl(fd, F_SETFL, flags ^ O_DIRECT);
}
