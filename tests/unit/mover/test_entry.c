/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdlib.h>
#include <string.h>

#include "mover/entry.h"

static const char *wrong(const char *name)
{
	return mover_name_wrong((const uint8_t *)name, strlen(name));
}

static void good_names(void **state)
{
	static const char *const names[] = {
		"a",     "a/b",     "...",        "..a",           "a..",           "a/.b",
		" ",     "\n",      "\xff\xfe",   "-rf",           "a\\b",          "C:",
		".roci", ".roci-x", ".roci-.par", "x.roci-1.part", ".roci-1.part2",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_null(wrong(names[i]));
}

static void hostile_names(void **state)
{
	static const char *const names[] = {
		"",
		"/",
		"/etc/passwd",
		"//x",
		".",
		"..",
		"../x",
		"a/..",
		"a/../b",
		"a/../../b",
		"./a",
		"a/.",
		"a/./b",
		"a//b",
		"a/",
		"a//",
		".roci-0123.part",
		"a/.roci-0123.journal",
		".roci-0123.part/a",
		".roci-.part",
		".roci-x.link.part",
		"a/../",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_non_null(wrong(names[i]));
	assert_non_null(mover_name_wrong((const uint8_t *)"a\0b", 3));
	assert_non_null(mover_name_wrong((const uint8_t *)"a\0", 2));
	assert_non_null(mover_name_wrong((const uint8_t *)"\0", 1));
}

/* Allocates exactly the bytes of the name, so that a sanitizer sees a read beyond them. */
static const char *wrong_of_len(size_t component, size_t len)
{
	uint8_t *name = malloc(len);
	const char *why;

	assert_non_null(name);
	for (size_t i = 0; i < len; i++)
		name[i] = i % (component + 1) == component ? '/' : 'x';
	why = mover_name_wrong(name, len);
	free(name);
	return why;
}

static void lengths(void **state)
{
	assert_null(wrong_of_len(4096, 255));
	assert_non_null(wrong_of_len(4096, 256));
	assert_null(wrong_of_len(255, 4095));
	assert_non_null(wrong_of_len(255, 4097));
	assert_non_null(wrong_of_len(1, 4096)); /* ends in a slash, and is too long */
	assert_null(wrong_of_len(1, 4095));
}

static bool leads_out(const char *name, const char *target)
{
	const struct mover_entry entry = {.kind = MOVER_SYMLINK,
					  .name = (const uint8_t *)name,
					  .name_len = (uint16_t)strlen(name),
					  .target = (const uint8_t *)target,
					  .target_len = (uint16_t)strlen(target)};

	return mover_symlink_leads_out(&entry);
}

static void symlinks_that_lead_out(void **state)
{
	static const char *const out[][2] = {{"a", "/"},
					     {"a", "/etc/passwd"},
					     {"a", ".."},
					     {"a", "../a"},
					     {"a", "./../a"},
					     {"a/b", "../.."},
					     {"a/b", "..//../x"},
					     {"a/b/c", "../../../x"},
					     /* x may be a link to another folder */
					     {"a/b", "x/.."},
					     {"a/b/c", "../x/../y"}};
	static const char *const in[][2] = {{"a", "b"},      {"a", "."},         {"a", "b/c/"},           {"a/b", ".."},
					    {"a/b", "../c"}, {"a/b/c", "../.."}, {"a/b/c", "./..//../x"}, {"a", "..."},
					    {"a", "..b/x"}};

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		assert_true(leads_out(out[i][0], out[i][1]));
	for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
		assert_false(leads_out(in[i][0], in[i][1]));
}

static void digest_is_xxh3_128_big_endian(void **state)
{
	/* XXH3-128 of nothing, as published with the algorithm */
	static const uint8_t empty[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
					  0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
	struct mover_digest digest = mover_digest_of("", 0);

	assert_memory_equal(digest.bytes, empty, sizeof(empty));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_names),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(lengths),
		cmocka_unit_test(symlinks_that_lead_out),
		cmocka_unit_test(digest_is_xxh3_128_big_endian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
