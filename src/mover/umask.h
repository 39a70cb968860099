/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ROCI_MOVER_UMASK_H
#define ROCI_MOVER_UMASK_H

#include <sys/types.h>

/* The process's umask(2); 077 if it cannot be found out. */
mode_t mover_umask(void);

#endif
