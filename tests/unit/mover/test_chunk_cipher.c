/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "mover/chunk_cipher.h"
#include "mover/give_way.h"

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
			assert_int_equal(chunk_cipher_seal(&best, NULL, i, data, len), 0);
			assert_int_equal(chunk_cipher_seal(&plain, NULL, i, other, len), 0);
			assert_memory_equal(data, other, len + CHUNK_CIPHER_TAG_BYTES);
			assert_int_equal(chunk_cipher_open(&plain, NULL, i, data, len), 0);
			assert_int_equal(chunk_cipher_open(&best, NULL, i, other, len), 0);
			assert_memory_equal(data, content, len);
			assert_memory_equal(other, content, len);
		}
		chunk_cipher_destroy(&best);
		chunk_cipher_destroy(&plain);
	}
}

/* One call of OpenSSL for all of it. */
static void pieces_are_one_message(void **state)
{
	static const uint8_t nonce[12] = {[11] = 7};

	fill();
	for (unsigned encrypt = 0; encrypt < 2; encrypt++) {
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
		struct chunk_cipher c;
		int n;

		assert_int_equal(chunk_cipher_init(&c, key, encrypt), 0);
		memcpy(data, content, LONGEST);
		assert_int_equal(chunk_cipher_seal(&c, NULL, 7, data, LONGEST), 0);
		memcpy(other, content, LONGEST);
		assert_true(ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce));
		assert_true(EVP_EncryptUpdate(ctx, encrypt ? other : NULL, &n, content, LONGEST));
		assert_true(EVP_EncryptFinal_ex(ctx, other + LONGEST, &n));
		assert_true(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, CHUNK_CIPHER_TAG_BYTES, other + LONGEST));
		assert_memory_equal(data, other, LONGEST + CHUNK_CIPHER_TAG_BYTES);
		EVP_CIPHER_CTX_free(ctx);
		chunk_cipher_destroy(&c);
	}
}

#define PIECE (32u << 10)

/* What `data` was before it was sealed or opened. NULL: its bytes stay as they are. */
static const uint8_t *before;
static const struct give_way *asked;
static unsigned gave;

void __wrap_give_way(struct give_way *g);
void __wrap_give_way(struct give_way *g)
{
	size_t at = ++gave * (size_t)PIECE;

	asked = g;
	if (!before)
		return;
	assert_memory_not_equal(data + at - 16, before + at - 16, 16); /* done */
	assert_memory_equal(data + at, before + at, 16);               /* not yet */
}

static void gave_way(const struct give_way *way)
{
	assert_int_equal(gave, LONGEST / PIECE); /* the last piece is shorter */
	assert_ptr_equal(asked, way);
	gave = 0;
}

static void it_gives_way_between_pieces(void **state)
{
	struct give_way way = {0};

	fill();
	for (unsigned i = 0; i < 4; i++) {
		bool encrypt = i & 1;
		struct chunk_cipher c;

		assert_int_equal((i & 2 ? chunk_cipher_init : chunk_cipher_init_openssl)(&c, key, encrypt), 0);
		memcpy(data, content, LONGEST);
		assert_int_equal(chunk_cipher_seal(&c, NULL, i, data, LONGEST), 0);
		assert_int_equal(chunk_cipher_open(&c, NULL, i, data, LONGEST), 0);
		assert_int_equal(gave, 0); /* nobody wants it */
		assert_int_equal(chunk_cipher_seal(&c, &way, i, data, PIECE), 0);
		assert_int_equal(gave, 0);
		memcpy(data, content, LONGEST);
		before = encrypt ? content : NULL;
		assert_int_equal(chunk_cipher_seal(&c, &way, i, data, LONGEST), 0);
		gave_way(&way);
		memcpy(other, data, sizeof(other));
		before = encrypt ? other : NULL;
		assert_int_equal(chunk_cipher_open(&c, &way, i, data, LONGEST), 0);
		gave_way(&way);
		before = NULL;
		assert_memory_equal(data, content, LONGEST);
		chunk_cipher_destroy(&c);
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
			assert_int_equal(chunk_cipher_seal(&c, NULL, 5, data, len), 0);
			data[at] ^= 0x40;
			assert_int_equal(chunk_cipher_open(&c, NULL, 5, data, len), -EBADMSG);
		}
		memcpy(data, content, len);
		assert_int_equal(chunk_cipher_seal(&c, NULL, 5, data, len), 0);
		assert_int_equal(chunk_cipher_open(&c, NULL, 6, data, len), -EBADMSG);
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
	assert_int_equal(chunk_cipher_seal(&c, NULL, 0, data, 16), 0);
	assert_memory_equal(data, sealed, sizeof(sealed));
	chunk_cipher_destroy(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_libraries_agree),
		cmocka_unit_test(pieces_are_one_message),
		cmocka_unit_test(it_gives_way_between_pieces),
		cmocka_unit_test(any_change_is_noticed),
		cmocka_unit_test(a_known_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
