/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of the private node IBVERBS_PRIVATE_nn that do something. The node is rdma-core's own: vendor libraries
 * (libmlx5.so.1, libefa.so.1) ask for all of it when they load, bound at once, and programs load those for their public
 * helpers. The rest of the node are stubs, generated from the system's libibverbs.so.1 when this library is built
 * (gen_symbols.py); ibv_query_gid_type() is in port.c.
 */
#include <errno.h>
#include <stdio.h>

#include "verbs/private.h"
#include "verbs/public.h"

/* mlx5dv_open_device() and its like come here after they have found that the device is theirs, which this one is not.
 */
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data)
{
	return ibv_open_device(device);
}

/* Vendor drivers log about their own devices, of which there are none. */
void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
}

int vb_private_stub(const char *name)
{
	fprintf(stderr, "rocinante: libibverbs: a program called the private function %s, which roci0 does not have\n",
		name);
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Of the public node, but hidden from the linker since long: providers before 2009 registered themselves with it. */
__attribute__((visibility("default"))) void vb_register_driver(const char *name, void *init);

void vb_register_driver(const char *name, void *init)
{
}
__asm__(".symver vb_register_driver, ibv_register_driver@IBVERBS_1.1");
