/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening by a path that must not lead out of a folder, nor through a symbolic link: openat2(2) with RESOLVE_BENEATH,
 * RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS; where the kernel or a seccomp filter denies it, component by component
 * with O_NOFOLLOW. */
#ifndef ROCI_MOVER_BENEATH_H
#define ROCI_MOVER_BENEATH_H

#include <stdbool.h>
#include <sys/types.h>

/* `path` is relative and has no "..". O_CLOEXEC and O_NOFOLLOW are added to `flags`; O_CREAT is not for here. Returns
 * the descriptor, or -errno: -ELOOP or -ENOTDIR where a component is a link. */
int mover_beneath_open(int dir_fd, const char *path, int flags);

/* For tests: as if the kernel had no openat2(2). */
void mover_beneath_without_openat2(bool without);

#endif
