/* SPDX-License-Identifier: BSD-2-Clause */
/* What protects the content of windows: AES-256-GCM (NIST SP 800-38D), in place. Without encryption the content is only
 * authenticated, as additional data (GMAC). The nonce is the number of the window's descriptor, which the sender uses
 * once; only the sender seals. */
#ifndef ROCI_MOVER_CHUNK_CIPHER_H
#define ROCI_MOVER_CHUNK_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_CIPHER_KEY_BYTES 32
#define CHUNK_CIPHER_TAG_BYTES 16

struct gcm_wide;
struct give_way;

struct chunk_cipher {
	struct gcm_wide *wide;                 /* NULL: OpenSSL does it. The key is in it, or */
	struct evp_cipher_ctx_st *seal, *open; /* in these */
	bool encrypt;
};

/* 0 or -ENOMEM. A key is for one of the two uses. */
int chunk_cipher_init(struct chunk_cipher *c, const uint8_t key[CHUNK_CIPHER_KEY_BYTES], bool encrypt);
/* The same, without the library that is faster. */
int chunk_cipher_init_openssl(struct chunk_cipher *c, const uint8_t key[CHUNK_CIPHER_KEY_BYTES], bool encrypt);
/* Whether the faster library does it. */
bool chunk_cipher_is_wide(const struct chunk_cipher *c);
void chunk_cipher_destroy(struct chunk_cipher *c);
bool chunk_cipher_ready(const struct chunk_cipher *c);

/* The tag follows the data: data[len .. len + 15]. `way` is asked between two pieces of 32 KiB; it may be NULL. seal: 0
 * or -ENOMEM. open: 0 or -EBADMSG. */
int chunk_cipher_seal(struct chunk_cipher *c, struct give_way *way, uint64_t number, uint8_t *data, size_t len);
int chunk_cipher_open(struct chunk_cipher *c, struct give_way *way, uint64_t number, uint8_t *data, size_t len);

#endif
