/* SPDX-License-Identifier: BSD-2-Clause */
/* Lesson 3 as a libibverbs with FLUSH builds it: the headers of Debian 12 have none, so ours stand in. */
#include "verbs/flush.h" /* IWYU pragma: export */

#ifndef HAVE_IBV_WR_FLUSH
#define HAVE_IBV_WR_FLUSH
#endif
#include "../../examples/03-every-operation.c"
#include "../../examples/loopback.c"
