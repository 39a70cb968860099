#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs every Debian 12 package that building, running and testing Rocinante needs. Says nothing when all are there.
# With --build, only those for building and running it; with --bench, also the programs that bench/ measures beside ours.
set -eu

build='gcc libc6-dev binutils make meson ninja-build pkg-config clang-format libibverbs-dev librdmacm-dev libisal-dev
	libsodium-dev libcmocka-dev libpcap-dev zlib1g-dev libxxhash-dev libssl-dev libipsec-mb-dev liburing-dev libjansson-dev libjs-d3 scdoc'
verbs='ibverbs-utils ibverbs-providers perftest rdmacm-utils qperf fio python3-pyverbs ucx-utils libfabric-bin openmpi-bin libopenmpi-dev'
test='python3 iproute2 nftables ethtool tshark iperf3 util-linux coreutils zsh fish valgrind clang-tidy-19 clang libclang-rt-14-dev llvm chromium chromium-driver'
# The guests of tests/interop; without them those tests are skipped. The kernels and busybox-static, which apt would install in
# the place of busybox, are not installed but downloaded by tests/interop/kernels.py.
guest='qemu-system-x86 cpio kmod xz-utils'

bench=
case ${1:-} in
--build) verbs='' test='' guest='' ;;
--bench) bench='rsync netcat-openbsd openssh-client openssh-server tar' ;;
esac

# rdma-core's Python tests are shipped as documentation, which images for containers leave out.
rdma_core_tests=/usr/share/doc/rdma-core/tests

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "install-deps: run this as root once, or install sudo: packages are missing:$missing" >&2
		exit 1
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# Prints those of these packages that are not installed, each after a blank.
missing_of()
{
	for package; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$status" = installed ] || printf ' %s' "$package"
	done
}

# shellcheck disable=SC2086
missing=$(missing_of $build $verbs $test $bench)
if [ -n "$missing" ]; then
	echo "installing:$missing"
	apt update
	# shellcheck disable=SC2086
	apt install --no-install-recommends $missing
fi

# shellcheck disable=SC2086
missing=$(missing_of $guest)
if [ -n "$missing" ]; then
	echo "installing:$missing"
	# shellcheck disable=SC2086
	(apt install --no-install-recommends $missing || { apt update && apt install --no-install-recommends $missing; }) ||
		echo "install-deps: the tests that need a guest will be skipped: cannot install$missing" >&2
fi

if [ "${1:-}" != --build ] && [ ! -d "$rdma_core_tests" ]; then
	echo "unpacking $rdma_core_tests"
	missing=' python3-pyverbs (its tests)'
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	chmod 755 "$dir"
	# The archive may not have the package before its lists are fresh.
	(cd "$dir" && { apt-get -qq download python3-pyverbs || { apt update && apt-get -qq download python3-pyverbs; }; }) \
		>/dev/null 2>&1
	dpkg-deb -x "$dir"/python3-pyverbs_*.deb "$dir/root"
	[ -d "$dir/root$rdma_core_tests" ]
	as_root mkdir -p "$(dirname "$rdma_core_tests")"
	as_root cp -R "$dir/root$rdma_core_tests" "$rdma_core_tests"
fi
