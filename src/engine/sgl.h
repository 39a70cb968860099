/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather lists: the user memory that a work request names. */
#ifndef ROCI_ENGINE_SGL_H
#define ROCI_ENGINE_SGL_H

#include "engine/engine.h"

struct roci_sgl {
	const struct roci_sge *sges;
	unsigned count;
};

/* Bytes in all. */
uint64_t roci_sgl_len(const struct roci_sgl *sgl);
/* True where the first `len` bytes lie in regions of `pd` with the right `access` (0 or ROCI_ACCESS_LOCAL_WRITE). What
 * lies behind them is not used, and may lie anywhere. */
bool roci_sgl_check(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t len, uint32_t access);
/* Adds to *batch the spans that hold `len` bytes from `offset`. -EACCES: none was added. */
int roci_sgl_gather(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset, uint32_t len,
		    struct roci_tx_batch *batch);
/* Copies `len` bytes to `offset`; the list must be long enough. With `last`, as roci_copy_last(). -EACCES. */
int roci_sgl_scatter(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset,
		     const uint8_t *src, uint32_t len, bool last);
/* The same with the payload of a received packet, wherever it is. -EACCES; -EAGAIN: it cannot be had. */
int roci_sgl_place(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset,
		   const struct roci_packet *p, bool last);
/* The spans of the first `len` bytes, at most ROCI_MAX_SGE, to `out`. Returns their number, or -EACCES. `access`: as
 * for roci_mr_local(). */
int roci_sgl_spans(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset, uint64_t len,
		   uint32_t access, struct roci_span *out);
/* As memcpy(), but the last byte becomes visible after all others, or the last 8 bytes where they are aligned. Programs
 * poll on the end of a message. */
void roci_copy_last(void *dst, const void *src, size_t len);

#endif
