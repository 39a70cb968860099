/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * _exit() and _Exit() of the C library, interposed: what a program posted, and the acknowledgement of what it has
 * polled, may wait for its next call (device/turns.h). An adapter would have sent them.
 *
 * Like the functions of sysfs/interpose.c they have no version. They may be called in a signal handler, and in a child
 * of fork() or vfork(), which has no device.
 */
#include <dlfcn.h>

#include "device/device.h"

void vb_exit(int status) __asm__("_exit") __attribute__((visibility("default"), noreturn));
void vb_exit_c99(int status) __asm__("_Exit") __attribute__((visibility("default"), noreturn, alias("_exit")));

typedef void exit_fn(int status);

static exit_fn *next;

/* A constructor, so that no later call needs the dynamic loader, which takes locks. */
__attribute__((constructor)) static void find_next(void)
{
	next = (exit_fn *)dlsym(RTLD_NEXT, "_exit");
}

void vb_exit(int status)
{
	roci_device_send_last();
	if (!next)
		find_next();
	next(status);
	__builtin_unreachable();
}
