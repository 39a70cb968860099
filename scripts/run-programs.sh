#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run-programs.sh: installs missing packages, builds, and runs unchanged RDMA programs between two hosts. The hosts are two
# network namespaces of this machine with a veth pair between them. Only installing packages needs root.
# BUILD is the directory to build in (default: build).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}

if [ "${1:-}" != inside ]; then
	scripts/install-deps.sh
	[ -f "$build/build.ninja" ] || meson setup "$build"
	ninja -C "$build"
	exec unshare -Urn "$0" inside
fi

PATH=$PATH:/usr/sbin:/sbin
roci=$build/roci/roci
here=10.88.0.1 there=10.88.0.2

unshare -n sleep 600 &
other=$!
server=
trap 'kill $server $other 2>/dev/null' EXIT
on_there() { nsenter -t "$other" -n -- "$@"; }

# Wait until the process has a namespace of its own.
tries=0
while [ "$(readlink /proc/self/ns/net)" = "$(readlink "/proc/$other/ns/net")" ] && [ "$tries" -lt 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
ip link set lo up
ip link add veth mtu 9000 type veth peer name veth mtu 9000 netns "$other"
ip addr add $here/24 dev veth
ip link set veth up
on_there ip link set lo up
on_there ip addr add $there/24 dev veth
on_there ip link set veth up

# pair PROGRAM ARGUMENT...: runs a server on the other host and a client on this one. They meet on TCP port 18515.
pair()
{
	echo
	echo "\$ roci run -- $*          (on $there)"
	echo "\$ roci run -- $* $there   (on $here)"
	nsenter -t "$other" -n -- "$roci" run -- "$@" >/dev/null & # without on_there, $! is the program
	server=$!
	tries=0
	until on_there cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 .* 0A ' || [ "$tries" -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	"$roci" run -- "$@" $there
	wait "$server"
	server=
}

echo '$ roci run -- ibv_devinfo'
"$roci" run -- ibv_devinfo
pair ibv_rc_pingpong -g 0 -c
pair ib_write_bw -x 0 -F
