/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether this process takes part in the local path, and what the kernel looks at when one process copies from or to
 * the memory of another (ptrace(2), "Ptrace access mode checking"). Two processes where this is equal may copy.
 */
#ifndef ROCI_DEVICE_LOCAL_RIGHTS_H
#define ROCI_DEVICE_LOCAL_RIGHTS_H

#include <stdint.h>

/* Looks once, when the device opens. Where Yama allows tracing by ancestors only, allows it to all processes that the
 * kernel's other checks let in (PR_SET_PTRACER). Returns a number that is equal where the rights are; 0: this process
 * takes no part, and *why says why. */
uint64_t roci_local_rights(const char **why);

#endif
