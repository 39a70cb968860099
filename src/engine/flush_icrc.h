/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ICRC a FLUSH gets. Soft-RoCE computes another one than the standard (roci_icrc_soft_roce_flush()), and drops a
 * FLUSH with the standard's. A QP begins with the standard's. A FLUSH that is not answered was lost, or its ICRC was of
 * the wrong kind, so the next try has the other kind. The kind that was answered stays.
 */
#ifndef ROCI_ENGINE_FLUSH_ICRC_H
#define ROCI_ENGINE_FLUSH_ICRC_H

#include <stdbool.h>

struct roci_flush_icrc {
	bool soft_roce;
};

/* A FLUSH got no answer and goes again. */
static inline void roci_flush_icrc_unanswered(struct roci_flush_icrc *f)
{
	f->soft_roce = !f->soft_roce;
}

#endif
