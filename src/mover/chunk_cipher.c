/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/chunk_cipher.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "mover/gcm_wide.h"
#include "mover/give_way.h"
#include "wire/bytes.h"

#define NONCE_BYTES 12
#define PIECE_BYTES (32u << 10) /* take ten to thirty microseconds */

static EVP_CIPHER_CTX *create(const uint8_t *key, bool seal)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (ctx && EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, NULL, seal))
		return ctx;
	ERR_clear_error();
	EVP_CIPHER_CTX_free(ctx);
	return NULL;
}

int chunk_cipher_init_openssl(struct chunk_cipher *c, const uint8_t key[CHUNK_CIPHER_KEY_BYTES], bool encrypt)
{
	*c = (struct chunk_cipher){.encrypt = encrypt};
	c->seal = create(key, true);
	c->open = create(key, false);
	if (c->seal && c->open)
		return 0;
	chunk_cipher_destroy(c);
	return -ENOMEM;
}

int chunk_cipher_init(struct chunk_cipher *c, const uint8_t key[CHUNK_CIPHER_KEY_BYTES], bool encrypt)
{
	struct gcm_wide *wide = gcm_wide_create(key);

	if (!wide)
		return chunk_cipher_init_openssl(c, key, encrypt);
	*c = (struct chunk_cipher){.wide = wide, .encrypt = encrypt};
	return 0;
}

void chunk_cipher_destroy(struct chunk_cipher *c)
{
	gcm_wide_destroy(c->wide);
	EVP_CIPHER_CTX_free(c->seal);
	EVP_CIPHER_CTX_free(c->open);
	*c = (struct chunk_cipher){0};
}

bool chunk_cipher_ready(const struct chunk_cipher *c)
{
	return c->wide || (c->seal && c->open);
}

bool chunk_cipher_is_wide(const struct chunk_cipher *c)
{
	return c->wide;
}

static void make_nonce(uint64_t number, uint8_t nonce[NONCE_BYTES])
{
	memset(nonce, 0, NONCE_BYTES);
	roci_put_be64(nonce + NONCE_BYTES - 8, number);
}

static enum gcm_wide_use use(const struct chunk_cipher *c, bool seal)
{
	return !c->encrypt ? GCM_WIDE_AUTHENTICATE : seal ? GCM_WIDE_SEAL : GCM_WIDE_OPEN;
}

static bool begin(struct chunk_cipher *c, bool seal, uint64_t number)
{
	uint8_t nonce[NONCE_BYTES];

	make_nonce(number, nonce);
	if (c->wide)
		gcm_wide_begin(c->wide, use(c, seal), nonce);
	return c->wide || EVP_CipherInit_ex(seal ? c->seal : c->open, NULL, NULL, NULL, nonce, -1);
}

/* Without encryption the result goes nowhere: the data are additional data (EVP_EncryptInit(3), AEAD Interface). */
static bool update(struct chunk_cipher *c, bool seal, uint8_t *data, size_t len)
{
	int n;

	if (c->wide)
		gcm_wide_update(c->wide, use(c, seal), data, len);
	return c->wide || EVP_CipherUpdate(seal ? c->seal : c->open, c->encrypt ? data : NULL, &n, data, (int)len);
}

static bool run(struct chunk_cipher *c, struct give_way *way, bool seal, uint64_t number, uint8_t *data, size_t len)
{
	bool ok = begin(c, seal, number);

	for (size_t at = 0, n; at < len && ok; at += n) {
		n = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;
		ok = update(c, seal, data + at, n);
		if (ok && way && at + n < len)
			give_way(way);
	}
	return ok;
}

static bool make_tag(struct chunk_cipher *c, uint8_t tag[CHUNK_CIPHER_TAG_BYTES])
{
	int n;

	if (c->wide)
		gcm_wide_finish(c->wide, use(c, true), tag);
	return c->wide || (EVP_CipherFinal_ex(c->seal, tag, &n) &&
			   EVP_CIPHER_CTX_ctrl(c->seal, EVP_CTRL_AEAD_GET_TAG, CHUNK_CIPHER_TAG_BYTES, tag));
}

static bool check_tag(struct chunk_cipher *c, uint8_t tag[CHUNK_CIPHER_TAG_BYTES])
{
	uint8_t end[CHUNK_CIPHER_TAG_BYTES];
	int n;

	if (c->wide) {
		gcm_wide_finish(c->wide, use(c, false), end);
		return !CRYPTO_memcmp(end, tag, sizeof(end));
	}
	return EVP_CIPHER_CTX_ctrl(c->open, EVP_CTRL_AEAD_SET_TAG, CHUNK_CIPHER_TAG_BYTES, tag) &&
	       EVP_CipherFinal_ex(c->open, end, &n) > 0;
}

int chunk_cipher_seal(struct chunk_cipher *c, struct give_way *way, uint64_t number, uint8_t *data, size_t len)
{
	if (run(c, way, true, number, data, len) && make_tag(c, data + len))
		return 0;
	ERR_clear_error();
	return -ENOMEM;
}

int chunk_cipher_open(struct chunk_cipher *c, struct give_way *way, uint64_t number, uint8_t *data, size_t len)
{
	if (run(c, way, false, number, data, len) && check_tag(c, data + len))
		return 0;
	ERR_clear_error();
	return -EBADMSG;
}
