/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether this process takes part in the local path, and what the kernel looks at when one process copies from or to
 * the memory of another (ptrace(2), "Ptrace access mode checking"). Two processes where this is equal may copy, or
 * neither may.
 */
#ifndef ROCI_DEVICE_LOCAL_RIGHTS_H
#define ROCI_DEVICE_LOCAL_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Looks once, when the device opens. Returns a number that is equal where the rights are; 0: this process takes no
 * part, and *why says why. */
uint64_t roci_local_rights(const char **why);
/* Where Yama allows tracing by ancestors only, allows it to all processes that the kernel's other checks let in
 * (PR_SET_PTRACER). For a process that has a peer. Returns 0 or a negative errno. */
int roci_local_allow_peers(void);
/* Whether this process may copy 8 bytes from `address` of process `pid`, and finds `value` there. Says yes where Yama
 * lets it copy only after the other has a peer, too. */
bool roci_local_try_copy(int32_t pid, uint64_t address, uint64_t value);

#endif
