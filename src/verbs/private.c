/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the private node IBVERBS_PRIVATE_nn. The node is internal to rdma-core, but vendor libraries
 * (libmlx5.so.1, libefa.so.1) need all its symbols to load, and programs load these libraries for their public helpers.
 * Here and in port.c (ibv_query_gid_type()) are the functions that programs call. The others are stubs, which
 * gen_symbols.py generates from the system's libibverbs.so.1.
 */
#include <errno.h>

#include "device/say.h"
#include "verbs/private.h"
#include "verbs/public.h"

/* Called by mlx5dv_open_device() and the like, which reject roci0 before. */
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data)
{
	return ibv_open_device(device);
}

/* For messages of vendor drivers about their devices. There are none. */
void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
}

int vb_private_stub(const char *name)
{
	roci_device_say("rocinante: libibverbs: a program called the private function %s, which roci0 does not have\n",
			name);
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Of the public node, but hidden from linkers: providers registered themselves with it before 2009. */
__attribute__((visibility("default"))) void vb_register_driver(const char *name, void *init);

void vb_register_driver(const char *name, void *init)
{
}
__asm__(".symver vb_register_driver, ibv_register_driver@IBVERBS_1.1");
