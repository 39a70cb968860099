/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/journal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "mover/io.h"

#define VERSION       2
#define READ_RECORDS  2048
#define HEADER_CHECK  (JOURNAL_HEADER_BYTES - 8)
#define RECORD_CHECK  (JOURNAL_RECORD_BYTES - 8)
#define RECORD_DIGEST 8
#define SAME_FILE     32 /* bytes of the header that say which file it is for */
#define TICKET        32
#define SOURCE        40

static const uint8_t magic[8] = "rocijrnl";

static void put_le64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

static uint64_t get_le64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

static void make_header(uint8_t header[JOURNAL_HEADER_BYTES], uint32_t chunk_bytes, const struct mover_digest *name,
			const struct journal_owner *owner)
{
	memset(header, 0, JOURNAL_HEADER_BYTES);
	memcpy(header, magic, sizeof(magic));
	put_le64(header + 8, (uint64_t)chunk_bytes << 32 | VERSION);
	memcpy(header + 16, name->bytes, sizeof(name->bytes));
	put_le64(header + TICKET, owner->ticket);
	put_le64(header + SOURCE, owner->source);
	put_le64(header + HEADER_CHECK, XXH3_64bits(header, HEADER_CHECK));
}

static bool wrote_it(const uint8_t header[JOURNAL_HEADER_BYTES], const struct journal_owner *owner)
{
	return owner->any || (owner->ticket && get_le64(header + TICKET) == owner->ticket);
}

/* Whether the records behind this header are for the file that `wanted` names, and of use to its sender. */
static bool header_fits(const uint8_t header[JOURNAL_HEADER_BYTES], const uint8_t wanted[JOURNAL_HEADER_BYTES],
			const struct journal_owner *owner)
{
	return !memcmp(header, wanted, SAME_FILE) &&
	       get_le64(header + HEADER_CHECK) == XXH3_64bits(header, HEADER_CHECK) &&
	       (wrote_it(header, owner) || get_le64(header + SOURCE) == owner->source);
}

static void make_record(uint8_t record[JOURNAL_RECORD_BYTES], uint64_t index, const struct mover_digest *digest)
{
	put_le64(record, index);
	memcpy(record + RECORD_DIGEST, digest->bytes, sizeof(digest->bytes));
	put_le64(record + RECORD_CHECK, XXH3_64bits(record, RECORD_CHECK));
}

static bool record_good(const uint8_t record[JOURNAL_RECORD_BYTES])
{
	return get_le64(record + RECORD_CHECK) == XXH3_64bits(record, RECORD_CHECK);
}

/* Returns the bytes read, fewer than `len` only at the end of the file, or -errno. */
static ssize_t read_at(int fd, void *to, size_t len, off_t at)
{
	size_t have = 0;

	while (have < len) {
		ssize_t got = pread(fd, (uint8_t *)to + have, len - have, at + (off_t)have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* Records are at multiples of their size. A cut one at the end is overwritten by the next. */
static int read_records(struct journal *journal, journal_record_fn *record, void *context)
{
	uint8_t batch[READ_RECORDS][JOURNAL_RECORD_BYTES];

	for (;;) {
		ssize_t got = read_at(journal->fd, batch, sizeof(batch), journal->end);
		size_t count;

		if (got < 0)
			return (int)got;
		count = (size_t)got / JOURNAL_RECORD_BYTES;
		for (size_t i = 0; i < count; i++) {
			struct mover_digest digest;
			int err;

			if (!record_good(batch[i]))
				continue;
			memcpy(digest.bytes, batch[i] + RECORD_DIGEST, sizeof(digest.bytes));
			err = record(context, get_le64(batch[i]), &digest);
			if (err)
				return err;
		}
		journal->end += (off_t)(count * JOURNAL_RECORD_BYTES);
		if ((size_t)got < sizeof(batch))
			return 0;
	}
}

int mover_journal_open(struct journal *journal, int fd, uint32_t chunk_bytes, const struct mover_digest *name,
		       const struct journal_owner *owner, journal_record_fn *record, void *context)
{
	uint8_t header[JOURNAL_HEADER_BYTES], wanted[JOURNAL_HEADER_BYTES];
	ssize_t got;

	journal->fd = fd;
	journal->chunk_bytes = chunk_bytes;
	journal->end = JOURNAL_HEADER_BYTES;
	journal->waiting = 0;
	make_header(wanted, chunk_bytes, name, owner);
	got = read_at(fd, header, sizeof(header), 0);
	if (got < 0)
		return (int)got;
	journal->foreign = false;
	if (got == sizeof(header) && header_fits(header, wanted, owner)) {
		journal->foreign = !wrote_it(header, owner);
		return read_records(journal, record, context);
	}
	if (ftruncate(fd, 0))
		return -errno;
	return mover_write_at(fd, wanted, sizeof(wanted), 0);
}

int mover_journal_flush(struct journal *journal)
{
	size_t len = journal->waiting * JOURNAL_RECORD_BYTES;
	int err;

	if (journal->fd < 0 || !len)
		return 0;
	err = mover_write_at(journal->fd, journal->records, len, (uint64_t)journal->end);
	if (err)
		return err;
	journal->end += (off_t)len;
	journal->waiting = 0;
	return 0;
}

int mover_journal_add(struct journal *journal, uint64_t index, const struct mover_digest *digest)
{
	if (journal->fd < 0)
		return 0;
	if (journal->waiting == JOURNAL_BATCH) { /* the last flush failed */
		int err = mover_journal_flush(journal);

		if (err)
			return err;
	}
	make_record(journal->records[journal->waiting++], index, digest);
	if (journal->waiting == JOURNAL_BATCH || (uint64_t)journal->waiting * journal->chunk_bytes > JOURNAL_LOSS_BYTES)
		return mover_journal_flush(journal);
	return 0;
}
