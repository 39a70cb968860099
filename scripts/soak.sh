#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh N NAME...: runs each suite or test of these names N times beside spinning processes, one for each core, and prints how
# many of the runs passed. The log of each failure stays in BUILD/soak. Exit status 1 if any failed.
# BUILD names the directory, built already (default: build); LOAD is another number of spinning processes.
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -ge 2 ] || {
	echo "usage: soak.sh N NAME..." >&2
	exit 2
}
build=${BUILD:-build} runs=$1 load=${LOAD:-$(nproc)}
shift
patience=8 # bounds are for hangs
export ROCI_PATIENCE=$patience

# What Meson knows, one a line: "--suite SUITE" or "TEST".
known=$(meson introspect --tests "$build" | python3 -c '
import json, sys
tests = json.load(sys.stdin)
print(*{"--suite " + suite.split(":")[-1] for test in tests for suite in test["suite"]}, sep="\n")
print(*{test["name"] for test in tests}, sep="\n")')
for name; do
	echo "$known" | grep -qxF -e "--suite $name" -e "$name" || {
		echo "soak.sh: no suite or test is called $name" >&2
		exit 2
	}
done

spinners=
trap 'kill $spinners 2>/dev/null' EXIT
trap 'exit 1' INT TERM
while [ "$load" -gt 0 ]; do
	(while :; do :; done) &
	spinners="$spinners $!"
	load=$((load - 1))
done

mkdir -p "$build/soak"
status=0
for name; do
	select=
	echo "$known" | grep -qxF -e "--suite $name" && select=--suite
	passed=0 run=0
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		log=soak-$(echo "$name" | tr ' /' '--')
		rm -f "$build/meson-logs/$log.json"
		# shellcheck disable=SC2086
		if meson test -C "$build" --no-rebuild --timeout-multiplier "$patience" --logbase "$log" $select "$name" >/dev/null 2>&1 &&
			[ -s "$build/meson-logs/$log.json" ]; then
			passed=$((passed + 1))
		else
			cp "$build/meson-logs/$log.txt" "$build/soak/${log#soak-}-$run.txt"
		fi
	done
	echo "$name: $passed of $runs passed"
	[ "$passed" = "$runs" ] || status=1
done
exit $status
