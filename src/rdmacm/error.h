/* SPDX-License-Identifier: BSD-2-Clause */
/* The public convention: -1 with errno. Inside this room: 0 or a negative errno. */
#ifndef ROCI_RDMACM_ERROR_H
#define ROCI_RDMACM_ERROR_H

#include <errno.h>

/* Sets errno (from a positive or negative error number) and returns -1. */
static inline int cma_error(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}
/* The public result of 0 or a negative errno. */
static inline int cma_result(int err)
{
	return err ? cma_error(err) : 0;
}

#endif
