/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather lists: user memory as the work request names it. */
#ifndef ROCI_ENGINE_SGL_H
#define ROCI_ENGINE_SGL_H

#include "engine/engine.h"

struct roci_sgl {
	const struct roci_sge *sges;
	unsigned count;
};

/* Bytes in all. */
uint64_t roci_sgl_len(const struct roci_sgl *sgl);
/* True where every element lies in a region of `pd` with the right `access` (0 or ROCI_ACCESS_LOCAL_WRITE). */
bool roci_sgl_check(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint32_t access);
/* Adds to *batch the spans that hold `len` bytes from `offset`. -EACCES: none was added. */
int roci_sgl_gather(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset, uint32_t len,
		    struct roci_tx_batch *batch);
/* Copies `len` bytes to `offset`; the list is long enough. With `last`, the final bytes become visible last. -EACCES.
 */
int roci_sgl_scatter(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset,
		     const uint8_t *src, uint32_t len, bool last);
/* memcpy() whose last byte (the last aligned 8 bytes where there are some) becomes visible after all the others, for
 * programs that poll on the end of a message. */
void roci_copy_last(void *dst, const void *src, size_t len);

#endif
