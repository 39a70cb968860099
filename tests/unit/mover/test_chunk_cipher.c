/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"

#define LONGEST ((1u << 20) + 77)

static const uint8_t key[CHUNK_CIPHER_KEY_BYTES] = {1, 2, 3, [31] = 9};
static uint8_t content[LONGEST], data[LONGEST + CHUNK_CIPHER_TAG_BYTES], other[LONGEST + CHUNK_CIPHER_TAG_BYTES];

static const size_t lengths[] = {0, 1, 15, 16, 17, 127, 128, 129, 255, 256, 257, 4096, 65535, 65536, 1u << 20, LONGEST};

static void fill(void)
{
	for (size_t i = 0; i < LONGEST; i++)
		content[i] = (uint8_t)(i * 31 + (i >> 8));
}

/* What one library seals the other opens, byte by byte the same. Where there is only OpenSSL, it is compared with
 * itself. */
static void both_libraries_agree(void **state)
{
	fill();
	for (unsigned encrypt = 0; encrypt < 2; encrypt++) {
		struct chunk_cipher best, plain;

		assert_int_equal(chunk_cipher_init(&best, key, encrypt), 0);
		assert_int_equal(chunk_cipher_init_openssl(&plain, key, encrypt), 0);
		print_message("%s\n", chunk_cipher_is_wide(&best) ? "VAES and OpenSSL" : "OpenSSL only");
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			size_t len = lengths[i];

			memcpy(data, content, len);
			memcpy(other, content, len);
			assert_int_equal(chunk_cipher_seal(&best, i, data, len), 0);
			assert_int_equal(chunk_cipher_seal(&plain, i, other, len), 0);
			assert_memory_equal(data, other, len + CHUNK_CIPHER_TAG_BYTES);
			assert_int_equal(chunk_cipher_open(&plain, i, data, len), 0);
			assert_int_equal(chunk_cipher_open(&best, i, other, len), 0);
			assert_memory_equal(data, content, len);
			assert_memory_equal(other, content, len);
		}
		chunk_cipher_destroy(&best);
		chunk_cipher_destroy(&plain);
	}
}

static void any_change_is_noticed(void **state)
{
	fill();
	for (unsigned encrypt = 0; encrypt < 2; encrypt++) {
		struct chunk_cipher c;
		size_t len = 300;

		assert_int_equal(chunk_cipher_init(&c, key, encrypt), 0);
		for (size_t at = 0; at < len + CHUNK_CIPHER_TAG_BYTES; at++) {
			memcpy(data, content, len);
			assert_int_equal(chunk_cipher_seal(&c, 5, data, len), 0);
			data[at] ^= 0x40;
			assert_int_equal(chunk_cipher_open(&c, 5, data, len), -EBADMSG);
		}
		memcpy(data, content, len);
		assert_int_equal(chunk_cipher_seal(&c, 5, data, len), 0);
		assert_int_equal(chunk_cipher_open(&c, 6, data, len), -EBADMSG);
		chunk_cipher_destroy(&c);
	}
}

/* Test case 14 of McGrew and Viega, "The Galois/Counter Mode of Operation": 16 zero bytes under a zero key and nonce.
 */
static void a_known_answer(void **state)
{
	static const uint8_t zeros[CHUNK_CIPHER_KEY_BYTES],
		sealed[] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5,
			    0xd3, 0xba, 0xf3, 0x9d, 0x18, 0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99,
			    0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
	struct chunk_cipher c;

	assert_int_equal(chunk_cipher_init(&c, zeros, true), 0);
	memset(data, 0, 16);
	assert_int_equal(chunk_cipher_seal(&c, 0, data, 16), 0);
	assert_memory_equal(data, sealed, sizeof(sealed));
	chunk_cipher_destroy(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_libraries_agree),
		cmocka_unit_test(any_change_is_noticed),
		cmocka_unit_test(a_known_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
