/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a path that must not lead out of a folder, nor through a symbolic link: by openat2(2) with RESOLVE_BENEATH,
 * RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS. Where the kernel or a seccomp filter denies openat2(2), it opens one
 * component after the other with O_NOFOLLOW. */
#ifndef ROCI_MOVER_BENEATH_H
#define ROCI_MOVER_BENEATH_H

#include <stdbool.h>

/* `path` is relative and has no "..". Adds O_CLOEXEC and O_NOFOLLOW to `flags`; O_CREAT is not allowed. Returns the
 * descriptor, or -errno: -ELOOP or -ENOTDIR if a component is a symbolic link. */
int mover_beneath_open(int dir_fd, const char *path, int flags);

/* For tests: behave as if the kernel had no openat2(2). */
void mover_beneath_without_openat2(bool without);

#endif
