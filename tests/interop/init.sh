#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# The first process of a guest. Puts the host's root file system under an overlay, runs /report/command in it, and
# switches the machine off. /modules lists the kernel modules to load, in their order.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
for module in $(cat /modules); do
	insmod "/$module" || echo "interop: cannot load $module"
done
mkdir /lower /upper /new
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /lower
mount -t tmpfs -o size=50% upper /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new
umount /proc
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount --move /dev /new/dev
mkdir -p /new/dev/shm /new/dev/pts /new/lib/modules /new/report
mount -t tmpfs shm /new/dev/shm
mount -t tmpfs run /new/run
chmod 1777 /new/dev/shm
mount -t devpts pts /new/dev/pts
ln -s /proc/self/fd /new/dev/fd
mkdir -p /new/run/tmp /new/var/tmp
ln -s ../proc/mounts /new/etc/mtab 2>/dev/null
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none report /new/report
mount --bind "/new$(cat /modules.path)" /new/lib/modules
ip link set lo up
cat /new/proc/uptime >/new/report/booted
chroot /new /bin/sh /report/command >/new/report/output 2>&1 </dev/null
echo $? >/new/report/status
poweroff -f
