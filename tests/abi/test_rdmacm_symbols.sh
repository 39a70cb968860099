#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test_rdmacm_symbols.sh OURS SYSTEM: our librdmacm.so.1 exports the symbols of the system's, with the same versions, and no others. It
# has the same soname, and needs libibverbs.so.1 by that name.
set -eu
ours=$1 system=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

exports()
{
	readelf --dyn-syms -W "$1" | awk '$7 != "UND" && $8 ~ /@/ { print $4, $8 }' | sort -u
}

exports "$system" >"$tmp/system"
exports "$ours" >"$tmp/ours"
[ -s "$tmp/system" ]
diff -u "$tmp/system" "$tmp/ours" || { echo "the exported symbols differ"; exit 1; }
readelf -d -W "$ours" >"$tmp/dynamic"
grep -q 'soname: \[librdmacm.so.1\]' "$tmp/dynamic" || { echo "another soname"; exit 1; }
grep -q 'NEEDED.*\[libibverbs.so.1\]' "$tmp/dynamic" || { echo "libibverbs.so.1 is not needed"; exit 1; }
echo "$(wc -l <"$tmp/ours") symbols"
