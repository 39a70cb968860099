/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sgl.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/mr.h"

uint64_t roci_sgl_len(const struct roci_sgl *sgl)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < sgl->count; i++)
		len += sgl->sges[i].len;
	return len;
}

bool roci_sgl_check(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t len, uint32_t access)
{
	for (unsigned i = 0; i < sgl->count && len; i++) {
		const struct roci_sge *s = &sgl->sges[i];
		uint32_t n = s->len < len ? s->len : (uint32_t)len;

		if (!roci_mr_local(e, pd, s->lkey, s->addr, n, access))
			return false;
		len -= n;
	}
	return true;
}

int roci_sgl_spans(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset, uint64_t len,
		   uint32_t access, struct roci_span *out)
{
	int spans = 0;

	for (unsigned i = 0; i < sgl->count && len; i++) {
		const struct roci_sge *s = &sgl->sges[i];
		uint32_t n;
		void *p;

		if (offset >= s->len) {
			offset -= s->len;
			continue;
		}
		n = s->len - (uint32_t)offset;
		if (n > len)
			n = (uint32_t)len;
		p = roci_mr_local(e, pd, s->lkey, s->addr + offset, n, access);
		if (!p)
			return -EACCES;
		out[spans++] = (struct roci_span){p, n};
		len -= n;
		offset = 0;
	}
	return spans;
}

int roci_sgl_gather(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset, uint32_t len,
		    struct roci_tx_batch *batch)
{
	int spans = roci_sgl_spans(e, pd, sgl, offset, len, 0, batch->spans + batch->span_count);

	if (spans < 0)
		return spans;
	batch->span_count += (unsigned)spans;
	return 0;
}

void roci_copy_last(void *dst, const void *src, size_t len)
{
	char *d = dst;
	const char *s = src;
	size_t tail = len >= 8 && (uintptr_t)(d + len) % 8 == 0 ? 8 : 1;

	if (!len)
		return;
	memcpy(d, s, len - tail);
	atomic_thread_fence(memory_order_release);
	if (tail == 8) {
		uint64_t word;

		memcpy(&word, s + len - 8, 8);
		__atomic_store_n((uint64_t *)(void *)(d + len - 8), word, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(d + len - 1, s[len - 1], __ATOMIC_RELEASE);
	}
}

int roci_sgl_scatter(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset,
		     const uint8_t *src, uint32_t len, bool last)
{
	for (unsigned i = 0; i < sgl->count && len; i++) {
		const struct roci_sge *s = &sgl->sges[i];
		uint32_t n;
		void *p;

		if (offset >= s->len) {
			offset -= s->len;
			continue;
		}
		n = s->len - (uint32_t)offset;
		if (n > len)
			n = len;
		p = roci_mr_local(e, pd, s->lkey, s->addr + offset, n, ROCI_ACCESS_LOCAL_WRITE);
		if (!p)
			return -EACCES;
		if (last && n == len)
			roci_copy_last(p, src, n);
		else
			memcpy(p, src, n);
		src += n;
		len -= n;
		offset = 0;
	}
	return 0;
}

int roci_sgl_place(struct roci_engine *e, uint32_t pd, const struct roci_sgl *sgl, uint64_t offset,
		   const struct roci_packet *p, bool last)
{
	struct roci_span to[ROCI_MAX_SGE];
	int count;

	if (!p->far)
		return roci_sgl_scatter(e, pd, sgl, offset, p->payload, p->payload_len, last);
	count = roci_sgl_spans(e, pd, sgl, offset, p->payload_len, ROCI_ACCESS_LOCAL_WRITE, to);
	if (count < 0)
		return count;
	switch (e->local->fetch(e->driver, p->far, to, (unsigned)count, last)) {
	case 0: return 0;
	case -EFAULT: return -EFAULT;
	default: return -EAGAIN;
	}
}
