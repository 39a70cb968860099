/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/gcm_wide.h"

#ifdef ROCI_IPSEC_MB

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#define LIBRARY "libIPSec_MB.so.1"
#define NEEDED  (IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ | IMB_FEATURE_SELF_TEST_PASS)

struct gcm_wide {
	struct gcm_key_data key;
	struct gcm_context_data context;
};

/* The library's table of functions, chosen by the processor. Read only once it has been made; lives as long as the
 * process, as the library does. NULL: there is no library, or the processor has no such instructions. */
static IMB_MGR *manager;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_manager_of(void *library)
{
	__typeof__(&alloc_mb_mgr) alloc = (__typeof__(alloc))dlsym(library, "alloc_mb_mgr");
	__typeof__(&init_mb_mgr_auto) init = (__typeof__(init))dlsym(library, "init_mb_mgr_auto");
	__typeof__(&imb_get_errno) get_errno = (__typeof__(get_errno))dlsym(library, "imb_get_errno");
	__typeof__(&free_mb_mgr) free_manager = (__typeof__(free_manager))dlsym(library, "free_mb_mgr");
	IMB_MGR *m = alloc && init && get_errno && free_manager ? alloc(0) : NULL;
	IMB_ARCH arch;

	if (!m)
		return;
	init(m, &arch);
	if (get_errno(m) == 0 && (m->features & NEEDED) == NEEDED)
		manager = m;
	else
		free_manager(m);
}

/* It has 20 MB: only what sends or receives loads it, not every command, and what they do without it is only slower. */
static void make_manager(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (library)
		make_manager_of(library);
	if (library && !manager)
		dlclose(library);
}

void gcm_wide_load(void)
{
	pthread_once(&once, make_manager);
}

struct gcm_wide *gcm_wide_create(const uint8_t key[GCM_WIDE_KEY_BYTES])
{
	struct gcm_wide *g;

	gcm_wide_load();
	if (!manager)
		return NULL;
	g = aligned_alloc(_Alignof(struct gcm_wide), sizeof(*g));
	if (g)
		IMB_AES256_GCM_PRE(manager, key, &g->key);
	return g;
}

void gcm_wide_destroy(struct gcm_wide *g)
{
	if (g)
		OPENSSL_cleanse(g, sizeof(*g));
	free(g);
}

void gcm_wide_begin(struct gcm_wide *g, enum gcm_wide_use use, const uint8_t nonce[GCM_WIDE_NONCE_BYTES])
{
	if (use == GCM_WIDE_AUTHENTICATE)
		IMB_AES256_GMAC_INIT(manager, &g->key, &g->context, nonce, GCM_WIDE_NONCE_BYTES);
	else
		IMB_AES256_GCM_INIT(manager, &g->key, &g->context, nonce, nonce, 0);
}

void gcm_wide_update(struct gcm_wide *g, enum gcm_wide_use use, uint8_t *data, size_t len)
{
	switch (use) {
	case GCM_WIDE_SEAL: IMB_AES256_GCM_ENC_UPDATE(manager, &g->key, &g->context, data, data, len); break;
	case GCM_WIDE_OPEN: IMB_AES256_GCM_DEC_UPDATE(manager, &g->key, &g->context, data, data, len); break;
	case GCM_WIDE_AUTHENTICATE: IMB_AES256_GMAC_UPDATE(manager, &g->key, &g->context, data, len); break;
	}
}

void gcm_wide_finish(struct gcm_wide *g, enum gcm_wide_use use, uint8_t tag[GCM_WIDE_TAG_BYTES])
{
	switch (use) {
	case GCM_WIDE_SEAL: IMB_AES256_GCM_ENC_FINALIZE(manager, &g->key, &g->context, tag, GCM_WIDE_TAG_BYTES); break;
	case GCM_WIDE_OPEN: IMB_AES256_GCM_DEC_FINALIZE(manager, &g->key, &g->context, tag, GCM_WIDE_TAG_BYTES); break;
	case GCM_WIDE_AUTHENTICATE:
		IMB_AES256_GMAC_FINALIZE(manager, &g->key, &g->context, tag, GCM_WIDE_TAG_BYTES);
		break;
	}
}

#else

void gcm_wide_load(void)
{
}

struct gcm_wide *gcm_wide_create(const uint8_t key[GCM_WIDE_KEY_BYTES])
{
	return NULL;
}

void gcm_wide_destroy(struct gcm_wide *g)
{
}

void gcm_wide_begin(struct gcm_wide *g, enum gcm_wide_use use, const uint8_t nonce[GCM_WIDE_NONCE_BYTES])
{
}

void gcm_wide_update(struct gcm_wide *g, enum gcm_wide_use use, uint8_t *data, size_t len)
{
}

void gcm_wide_finish(struct gcm_wide *g, enum gcm_wide_use use, uint8_t tag[GCM_WIDE_TAG_BYTES])
{
}

#endif
