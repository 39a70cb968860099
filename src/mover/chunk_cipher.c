/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/chunk_cipher.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "mover/gcm_wide.h"
#include "wire/bytes.h"

#define NONCE_BYTES 12

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

/* Where the result goes. NULL: nowhere, the data are additional data (EVP_EncryptInit(3), AEAD Interface). */
static uint8_t *target(const struct chunk_cipher *c, uint8_t *data)
{
	return c->encrypt ? data : NULL;
}

int chunk_cipher_seal(struct chunk_cipher *c, uint64_t number, uint8_t *data, size_t len)
{
	uint8_t nonce[NONCE_BYTES];
	int n;

	assert(len <= INT32_MAX);
	make_nonce(number, nonce);
	if (c->wide && c->encrypt)
		gcm_wide_seal(c->wide, nonce, data, len, data + len);
	else if (c->wide)
		gcm_wide_authenticate(c->wide, nonce, data, len, data + len);
	if (c->wide)
		return 0;
	if (!EVP_CipherInit_ex(c->seal, NULL, NULL, NULL, nonce, -1) ||
	    !EVP_CipherUpdate(c->seal, target(c, data), &n, data, (int)len) ||
	    !EVP_CipherFinal_ex(c->seal, data + len, &n) ||
	    !EVP_CIPHER_CTX_ctrl(c->seal, EVP_CTRL_AEAD_GET_TAG, CHUNK_CIPHER_TAG_BYTES, data + len)) {
		ERR_clear_error();
		return -ENOMEM;
	}
	return 0;
}

int chunk_cipher_open(struct chunk_cipher *c, uint64_t number, uint8_t *data, size_t len)
{
	uint8_t nonce[NONCE_BYTES], end[CHUNK_CIPHER_TAG_BYTES];
	int n;

	assert(len <= INT32_MAX);
	make_nonce(number, nonce);
	if (c->wide && c->encrypt)
		gcm_wide_open(c->wide, nonce, data, len, end);
	else if (c->wide)
		gcm_wide_authenticate(c->wide, nonce, data, len, end);
	if (c->wide)
		return CRYPTO_memcmp(end, data + len, sizeof(end)) ? -EBADMSG : 0;
	if (!EVP_CipherInit_ex(c->open, NULL, NULL, NULL, nonce, -1) ||
	    !EVP_CIPHER_CTX_ctrl(c->open, EVP_CTRL_AEAD_SET_TAG, CHUNK_CIPHER_TAG_BYTES, data + len) ||
	    !EVP_CipherUpdate(c->open, target(c, data), &n, data, (int)len) ||
	    EVP_CipherFinal_ex(c->open, end, &n) <= 0) {
		ERR_clear_error();
		return -EBADMSG;
	}
	return 0;
}
