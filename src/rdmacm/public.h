/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public face: the functions of <rdma/rdma_cma.h>, <rdma/rdma_verbs.h> and <rdma/rsocket.h>, exported. versions.map
 * names the version node of each.
 */
#ifndef ROCI_RDMACM_PUBLIC_H
#define ROCI_RDMACM_PUBLIC_H

#pragma GCC visibility push(default)

#include <rdma/rdma_cma.h>   /* IWYU pragma: export */
#include <rdma/rdma_verbs.h> /* IWYU pragma: export */
#include <rdma/rsocket.h>    /* IWYU pragma: export */

#pragma GCC visibility pop

#endif
