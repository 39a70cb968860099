/* SPDX-License-Identifier: BSD-2-Clause */
/* AES-256-GCM by Intel's libIPSec_MB, which uses the widest vector instructions of the processor (VAES, VPCLMULQDQ).
 * OpenSSL does so from version 3.1 on, and only with AVX-512; before, it takes four times as long. */
#ifndef ROCI_MOVER_GCM_WIDE_H
#define ROCI_MOVER_GCM_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GCM_WIDE_KEY_BYTES   32
#define GCM_WIDE_NONCE_BYTES 12
#define GCM_WIDE_TAG_BYTES   16

struct gcm_wide;

/* Loads the library, which takes up to a millisecond; without this call the first gcm_wide_create() does. Any thread
 * may call it, also more than once. */
void gcm_wide_load(void);
/* NULL: there is no such library, the processor has no such instructions, or there is no memory. */
struct gcm_wide *gcm_wide_create(const uint8_t key[GCM_WIDE_KEY_BYTES]);
/* Forgets the key. NULL is allowed. */
void gcm_wide_destroy(struct gcm_wide *g);

enum gcm_wide_use {
	GCM_WIDE_SEAL,
	GCM_WIDE_OPEN,
	GCM_WIDE_AUTHENTICATE, /* GMAC: the data are additional data (NIST SP 800-38D s.3) */
};

/* begin, then update with piece after piece, in place, then finish, which gives the tag; whoever opens compares it.
 * They cannot fail. */
void gcm_wide_begin(struct gcm_wide *g, enum gcm_wide_use use, const uint8_t nonce[GCM_WIDE_NONCE_BYTES]);
void gcm_wide_update(struct gcm_wide *g, enum gcm_wide_use use, uint8_t *data, size_t len);
void gcm_wide_finish(struct gcm_wide *g, enum gcm_wide_use use, uint8_t tag[GCM_WIDE_TAG_BYTES]);

#endif
