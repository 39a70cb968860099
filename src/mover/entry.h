/* SPDX-License-Identifier: BSD-2-Clause */
/* An entry: a file, folder, symbolic link or stream of a transfer. Names are bytes, relative, with '/' between
 * components. */
#ifndef ROCI_MOVER_ENTRY_H
#define ROCI_MOVER_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOVER_PATH_MAX      4095 /* bytes of a name, and of a symbolic link's target */
#define MOVER_COMPONENT_MAX 255

enum mover_kind {
	MOVER_FILE,
	MOVER_FOLDER,
	MOVER_SYMLINK,
	MOVER_STREAM, /* a file whose size is known only at its end */
};

struct mover_entry {
	enum mover_kind kind;
	uint32_t mode;       /* permission bits, 07777 */
	int64_t mtime_s;     /* since 1970; negative before */
	uint32_t mtime_ns;   /* 0 .. 999,999,999 */
	uint64_t size;       /* FILE: bytes, holes included; SYMLINK: length of the target; else 0 */
	const uint8_t *name; /* not terminated */
	uint16_t name_len;
	const uint8_t *target; /* SYMLINK only; not terminated */
	uint16_t target_len;
};

/* A receiver's temporary files are called prefix, hex digits, suffix. Entries may not have such names. */
#define MOVER_RESERVED_PREFIX ".roci-"
#define MOVER_PART_SUFFIX     ".part"
#define MOVER_JOURNAL_SUFFIX  ".journal"

/* Checks a name: 1 .. MOVER_PATH_MAX bytes, relative, no NUL; no component is empty, ".", "..", reserved, or longer
 * than MOVER_COMPONENT_MAX. Returns NULL if it is allowed, else what is wrong with it. */
const char *mover_name_wrong(const uint8_t *name, size_t len);

/* Whether the target of a symbolic link may lead out of the transfer's folder: it is absolute, or its ".." climb above
 * the folder, or one of them comes after a name (that may be a link itself, so that the climb begins elsewhere). */
bool mover_symlink_leads_out(const struct mover_entry *entry);

/* A 128-bit digest, XXH3-128 in its canonical (big-endian) form. */
struct mover_digest {
	uint8_t bytes[16];
};

struct mover_digest mover_digest_of(const void *data, size_t len);

#endif
