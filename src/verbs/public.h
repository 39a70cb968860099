/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public API: <infiniband/verbs.h> with its functions exported, and functions that it does not declare.
 *
 * The version script, generated from versions.txt, has the version of each symbol. ALSO_1_0() gives a function two
 * versions, IBVERBS_1.1 and IBVERBS_1.0. Programs that ask for 1.0 today (NCCL, by dlvsym) use today's structures.
 * Binaries from before 2007, with other structures, are not supported.
 */
#ifndef ROCI_VERBS_PUBLIC_H
#define ROCI_VERBS_PUBLIC_H

#include <errno.h>

#pragma GCC visibility push(default)

#include "verbs/renames.h"      /* IWYU pragma: keep */
#include <infiniband/verbs.h>   /* IWYU pragma: export */
#include <infiniband/sa.h>      /* IWYU pragma: export */
#include <rdma/ib_user_sa.h>    /* IWYU pragma: export */
#include <rdma/ib_user_verbs.h> /* IWYU pragma: export */

#include "verbs/flush.h" /* IWYU pragma: export */
#include "verbs/why.h"   /* IWYU pragma: keep */

/* Macros of verbs.h; the functions behind them are defined here. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#define ibv_query_port vb_ibv_query_port
#define ibv_reg_mr     vb_ibv_reg_mr

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/* Of the private node, see private.c. */
enum vb_sysfs_gid_type { VB_SYSFS_GID_IB_ROCE_V1, VB_SYSFS_GID_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index, enum vb_sysfs_gid_type *type);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...);

#pragma GCC visibility pop

/* Stands before the definition of `name`. renames.h has the compiled names. */
#define ALSO_1_0(name)                                                                                                 \
	__asm__(".symver vb_" #name "," #name "@@IBVERBS_1.1\n\t"                                                      \
		".symver vb_" #name "," #name "@IBVERBS_1.0")

/*
 * Defines a public function, or an entry of struct verbs_context, that returns 0 or a positive errno: what it returns
 * is in errno, too, and `roci run --why` tells it. As Linux' SYSCALL_DEFINE: the number of parameters, the name, and
 * type, name of each parameter. VERB_DEFINE_COUNT() defines one that returns a count of type `result`, or a negative
 * errno. tests/abi/errno.c calls them all.
 */
#define VERB_DEFINE(n, name, ...)                                                                                      \
	static int name##_body(VERB_MAP##n(VERB_PARAM, __VA_ARGS__));                                                  \
	int name(VERB_MAP##n(VERB_PARAM, __VA_ARGS__))                                                                 \
	{                                                                                                              \
		int err = name##_body(VERB_MAP##n(VERB_ARG, __VA_ARGS__));                                             \
		if (__builtin_expect(err, 0))                                                                          \
			roci_verbs_refused(#name, err);                                                                \
		return err;                                                                                            \
	}                                                                                                              \
	static int name##_body(VERB_MAP##n(VERB_PARAM, __VA_ARGS__))
#define VERB_DEFINE_COUNT(n, result, name, ...)                                                                        \
	static result name##_body(VERB_MAP##n(VERB_PARAM, __VA_ARGS__));                                               \
	result name(VERB_MAP##n(VERB_PARAM, __VA_ARGS__))                                                              \
	{                                                                                                              \
		result count = name##_body(VERB_MAP##n(VERB_ARG, __VA_ARGS__));                                        \
		if (__builtin_expect(count < 0, 0))                                                                    \
			roci_verbs_refused(#name, (int)-count);                                                        \
		return count;                                                                                          \
	}                                                                                                              \
	static result name##_body(VERB_MAP##n(VERB_PARAM, __VA_ARGS__))

#define VERB_PARAM(type, name)           type name
#define VERB_ARG(type, name)             name
#define VERB_MAP1(with, type, name)      with(type, name)
#define VERB_MAP2(with, type, name, ...) with(type, name), VERB_MAP1(with, __VA_ARGS__)
#define VERB_MAP3(with, type, name, ...) with(type, name), VERB_MAP2(with, __VA_ARGS__)
#define VERB_MAP4(with, type, name, ...) with(type, name), VERB_MAP3(with, __VA_ARGS__)
#define VERB_MAP5(with, type, name, ...) with(type, name), VERB_MAP4(with, __VA_ARGS__)
#define VERB_MAP6(with, type, name, ...) with(type, name), VERB_MAP5(with, __VA_ARGS__)

#endif
