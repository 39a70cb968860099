/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/entry.h"

#include <string.h>

#ifdef ROCI_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* replaces XXH3_128bits() by one for this CPU */
#else
#include <xxhash.h>
#endif

static bool starts_with(const uint8_t *bytes, size_t len, const char *what)
{
	return len >= strlen(what) && !memcmp(bytes, what, strlen(what));
}

static bool ends_with(const uint8_t *bytes, size_t len, const char *what)
{
	return len >= strlen(what) && !memcmp(bytes + len - strlen(what), what, strlen(what));
}

/* Whether one component (without '/') is reserved for a receiver's temporary files. */
static bool is_reserved(const uint8_t *component, size_t len)
{
	return starts_with(component, len, MOVER_RESERVED_PREFIX) &&
	       (ends_with(component, len, MOVER_PART_SUFFIX) || ends_with(component, len, MOVER_JOURNAL_SUFFIX));
}

static const char *component_wrong(const uint8_t *component, size_t len)
{
	if (len == 0)
		return "it has an empty component";
	if (len > MOVER_COMPONENT_MAX)
		return "a component is longer than 255 bytes";
	if (len == 1 && component[0] == '.')
		return "it has a component \".\"";
	if (len == 2 && component[0] == '.' && component[1] == '.')
		return "it has a component \"..\"";
	if (is_reserved(component, len))
		return "a component is reserved for unfinished transfers";
	return NULL;
}

const char *mover_name_wrong(const uint8_t *name, size_t len)
{
	if (len == 0)
		return "it is empty";
	if (len > MOVER_PATH_MAX)
		return "it is longer than 4095 bytes";
	if (memchr(name, 0, len))
		return "it has a NUL byte";
	if (name[0] == '/')
		return "it is absolute";
	for (size_t begin = 0; begin <= len;) {
		const uint8_t *slash = begin < len ? memchr(name + begin, '/', len - begin) : NULL;
		size_t end = slash ? (size_t)(slash - name) : len;
		const char *wrong = component_wrong(name + begin, end - begin);

		if (wrong)
			return wrong;
		begin = end + 1;
	}
	return NULL;
}

bool mover_symlink_leads_out(const struct mover_entry *entry)
{
	const uint8_t *at = entry->target, *end = at + entry->target_len;
	size_t depth = 0; /* folders between the transfer's folder and the link */
	bool named = false;

	if (at < end && *at == '/')
		return true;
	for (size_t i = 0; i < entry->name_len; i++)
		depth += entry->name[i] == '/';
	while (at < end) {
		const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
		size_t len = (size_t)((slash ? slash : end) - at);

		if (len == 2 && at[0] == '.' && at[1] == '.') {
			if (named || !depth)
				return true;
			depth--;
		} else if (len && !(len == 1 && at[0] == '.')) {
			named = true;
		}
		at += len + (slash != NULL);
	}
	return false;
}

struct mover_digest mover_digest_of(const void *data, size_t len)
{
	struct mover_digest digest;
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, len));
	_Static_assert(sizeof(canonical.digest) == sizeof(digest.bytes), "XXH3-128 has 16 bytes");
	memcpy(digest.bytes, canonical.digest, sizeof(digest.bytes));
	return digest;
}
