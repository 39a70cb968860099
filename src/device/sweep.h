/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps the run directory: removes files of network namespaces in which no process lives any more. */
#ifndef ROCI_DEVICE_SWEEP_H
#define ROCI_DEVICE_SWEEP_H

/* Removes registry files and side doors of namespaces other than `netns` where nobody holds a lock. A process that
 * opens such a file at that moment finds that it has no name any more, and opens it again: see roci_registry_open(). */
void roci_sweep(const char *dir, unsigned long netns);

#endif
