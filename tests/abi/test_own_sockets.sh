#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test_own_sockets.sh LIBRARY...: none of them calls a function of the C library that a preloaded library of sockets (librspreload.so,
# say) puts itself in front of to catch a program's sockets. The device's own sockets go straight to the kernel (src/device/sys.h).
# read(), write(), close() and fcntl() are for files, too; no socket of ours goes through them.
set -eu
functions='accept|accept4|bind|connect|getpeername|getsockname|getsockopt|listen|poll|__poll_chk|recv|__recv_chk|recvfrom|__recvfrom_chk|recvmsg|recvmmsg|select|send|sendfile|sendfile64|sendmsg|sendmmsg|sendto|setsockopt|shutdown|socket|socketpair|readv|writev'
status=0
for library; do
	symbols=$(readelf --dyn-syms -W "$library" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }')
	echo "$symbols" | grep -qx syscall || { echo "$library: has no system calls"; exit 1; } # readelf told something
	caught=$(echo "$symbols" | grep -Ex "$functions" | tr '\n' ' ' || true)
	[ -z "$caught" ] || { echo "$library calls $caught"; status=1; }
done
exit $status
