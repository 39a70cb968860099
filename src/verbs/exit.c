/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * _exit() and _Exit() of the C library, interposed: what a program posted, and the acknowledgement of what it has
 * polled, may wait for its next call (device/turns.h). An adapter would have sent them. quick_exit() does not call
 * those: it calls a function that is registered with it.
 *
 * Like the functions of sysfs/interpose.c they have no version. They may be called in a signal handler, and in a child
 * of fork() or vfork(), which has no device.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "device/device.h"

void vb_exit(int status) __asm__("_exit") __attribute__((visibility("default"), noreturn));
void vb_exit_c99(int status) __asm__("_Exit") __attribute__((visibility("default"), noreturn, alias("_exit")));

typedef void exit_fn(int status);

static exit_fn *next;

static void find_next(void)
{
	next = (exit_fn *)dlsym(RTLD_NEXT, "_exit");
}

/* Early, so that no later call needs the dynamic loader, which takes locks. */
__attribute__((constructor)) static void begin(void)
{
	find_next();
	at_quick_exit(roci_device_send_last);
}

void vb_exit(int status)
{
	roci_device_send_last();
	if (!next)
		find_next();
	next(status);
	__builtin_unreachable();
}
