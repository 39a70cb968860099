#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# alone.sh COMMAND...: runs a command on a host of its own, a network namespace with two addresses beside the loopback's. A
# datagram can be lost when another process of the host closes its socket of port 4791 at that moment.
exec unshare -Urn sh -ec '
	LD_PRELOAD= ip link set lo up # the preloaded library is that of a sanitizer
	LD_PRELOAD= ip addr add 10.77.9.1/32 dev lo
	LD_PRELOAD= ip addr add fd77::9/128 dev lo nodad
	exec "$@"' alone "$@"
