#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test_symbols.sh OURS SYSTEM: our libibverbs.so.1 exports each symbol@version of the system's, private node included. Besides, it
# exports only the node for our librdmacm.so.1, and the functions of the C library below. Both have the same soname.
set -eu
ours=$1 system=${2:-}
[ -n "$system" ] || { echo "no system library to compare with"; exit 77; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The functions that src/verbs/sysfs/interpose.c interposes (sysfs.h says why): those that UCX, Open MPI, Python, ls, cat and shells
# call; and those of src/verbs/exit.c. They have no version, so they serve each version that a program asks for.
interposed='_Exit _exit __lxstat __lxstat64 __open64_2 __realpath_chk __xstat __xstat64 access faccessat fopen fopen64 fstatat fstatat64
	getxattr lgetxattr lstat lstat64 open open64 openat openat64 opendir readlink realpath stat stat64 statx'

unversioned()
{
	readelf --dyn-syms -W "$1" | awk '$5 == "GLOBAL" && $7 != "UND" && $8 !~ /@/ && $4 != "OBJECT" { print $8 }' | sort -u
}
exports()
{
	readelf --dyn-syms -W "$1" | awk '$7 != "UND" && $8 ~ /@/ && $8 !~ /@ROCI_PRIVATE$/ { print $4, $8 }' | sort -u
}
soname()
{
	readelf -d -W "$1" | sed -n 's/.*Library soname: //p'
}

exports "$system" >"$tmp/system"
exports "$ours" >"$tmp/ours"
[ -s "$tmp/system" ]
diff -u "$tmp/system" "$tmp/ours" || { echo "the exported symbols differ"; exit 1; }
# shellcheck disable=SC2086
printf '%s\n' $interposed | sort -u >"$tmp/interposed"
unversioned "$ours" | diff -u "$tmp/interposed" - || { echo "the unversioned symbols differ"; exit 1; }
[ "$(soname "$ours")" = "$(soname "$system")" ] || { echo "soname: $(soname "$ours")"; exit 1; }
echo "$(wc -l <"$tmp/ours") symbols"
