/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sysfs that programs see: a small tree of files in the user's runtime directory that describes roci0 as the kernel
 * describes its devices (sysfs.c: the contents, tree.c: the files), and the interposed C library functions that lead
 * programs to it (interpose.c).
 *
 * ibdev_path and ibv_get_sysfs_path() name the tree. But many programs do not ask: UCX has
 * "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d" in its binary, and rejects a device without a file in
 * /dev/infiniband; NCCL, Open MPI and many scripts list /sys/class/infiniband. So our libibverbs.so.1
 * also defines these functions, with the C library's names:
 *
 *	open openat fopen opendir, their *64 names, __open64_2
 *	stat lstat fstatat statx, their *64 names
 *	__xstat __lxstat, their *64 names (for programs built before glibc 2.33)
 *	access faccessat getxattr lgetxattr readlink realpath __realpath_chk
 *
 * Each exchanges these paths, and passes the call to the next definition (RTLD_NEXT), normally the C library's:
 *
 *	/sys/class/infiniband[/...]		becomes TREE/class/infiniband[/...]
 *	/sys/class/infiniband_verbs[/...]	becomes TREE/class/infiniband_verbs[/...]
 *	/dev/infiniband/uverbs-roci0		becomes /dev/null: a character device that everybody may open
 *
 * All other paths stay, /dev/infiniband/rdma_cm too; they cost a comparison of their first bytes. Not
 * covered are relative paths (chdir, a directory's descriptor: hwloc), and files that the C library opens by itself
 * (glob, scandir, ftw).
 */
#ifndef ROCI_VERBS_SYSFS_H
#define ROCI_VERBS_SYSFS_H

#include "device/device.h"
#include "verbs/public.h"

/* Writes or updates the tree for this GID table and this node GUID, and fills ibdev_path and dev_path of *device.
 * Without a usable runtime directory they name the kernel's /sys. Not for two threads at once. */
void vb_sysfs_refresh(struct ibv_device *device, const struct roci_gids *gids, __be64 guid);

/* The table is about to be read for vb_sysfs_refresh(). */
void vb_sysfs_current(void);

/* The tree's path; the first call writes the tree, unless the device list was read before, and so does the first after
 * a change of the GID table. NULL: there is none. The string, and the tree, stay for the next VB_TREE_FORMER changes of
 * the table. */
const char *vb_sysfs_root(void);

#endif
