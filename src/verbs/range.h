/* SPDX-License-Identifier: BSD-2-Clause */
/* Is there memory where the program says? */
#ifndef ROCI_VERBS_RANGE_H
#define ROCI_VERBS_RANGE_H

#include <stdbool.h>
#include <stddef.h>

/* 0: the whole range exists and may be read (or written, if `write`), and its pages are present now. EFAULT. */
int vb_range_check(void *addr, size_t len, bool write);

/* For src/rdmacm: true if the range may be read. */
__attribute__((visibility("default"))) bool roci_verbs_may_read(const void *addr, size_t len);

#endif
