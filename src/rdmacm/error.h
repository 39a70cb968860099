/* SPDX-License-Identifier: BSD-2-Clause */
/* The public convention: -1 with errno. Inside this room: 0 or a negative errno. */
#ifndef ROCI_RDMACM_ERROR_H
#define ROCI_RDMACM_ERROR_H

#include <errno.h> /* IWYU pragma: export */

#include "verbs/why.h" /* IWYU pragma: export */

/* Sets errno (from a positive or negative error number) and returns -1: the function that uses it refuses the call, and
 * `roci run --why` tells it. */
#define cma_error(err) cma_error_in(__func__, err)
/* The public result of 0 or a negative errno. */
#define cma_result(err) cma_result_in(__func__, err)
/* A negative errno, with what the check has found: the field, its value, what is allowed. */
#define CMA_REFUSE(err, ...) (roci_verbs_why(__VA_ARGS__), (err))

static inline int cma_error_in(const char *call, int err)
{
	roci_verbs_refused(call, err < 0 ? -err : err);
	return -1;
}
static inline int cma_result_in(const char *call, int err)
{
	return err ? cma_error_in(call, err) : 0;
}

#endif
