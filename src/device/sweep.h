/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps the run directory: files of network namespaces in which no process of ours lives any more. */
#ifndef ROCI_DEVICE_SWEEP_H
#define ROCI_DEVICE_SWEEP_H

/* Removes registry files and side doors of namespaces other than `netns` where nobody holds a lock. Whoever opens such
 * a file at that moment finds it without a name, and opens it again: see roci_registry_open(). */
void roci_sweep(const char *dir, unsigned long netns);

#endif
