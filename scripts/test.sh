#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing, builds, and runs the tests that people wait for: something of every layer, in ten minutes on a fast machine.
# With --all everything: what the quick run left out, then what sanitizers can judge on a build with the address and undefined
# sanitizers, what has threads on one with the thread sanitizer, and two minutes of fuzzing from a fresh seed.
# The last line counts. BUILD names the directory to build in (default: build, beside this one build-asan, build-tsan, build-fuzz).
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
case ${1:-} in
'' | --all) ;;
*)
	echo "usage: test.sh [--all]" >&2
	exit 2
	;;
esac

scripts/install-deps.sh || exit 1

patience=4 # busy machines, slow disks: bounds are for hangs
export ROCI_PATIENCE=$patience
beside=$(($(nproc) * 2)) # tests at a time: half of their time they wait
logs=
fuzz=0
# build DIRECTORY UNUSED SETUP-OPTION...: builds all but the targets that the regular expression UNUSED fits. meson-internal__test
# is one: it runs the tests.
build()
{
	dir=$1 unused=$2
	shift 2
	echo "== $dir"
	[ -f "$dir/build.ninja" ] || meson setup "$dir" -Dwerror=true "$@" || return
	ninja -C "$dir" build.ninja || return # the list below is that of today's meson.build
	# shellcheck disable=SC2046
	ninja -C "$dir" $(ninja -C "$dir" -t query all | sed -n 's/^    //p' | grep -Ev "^($unused)")
}

# tests DIRECTORY LOG SELECTION...: runs tests; meson selects by suite or by name, not by both at once.
tests()
{
	dir=$1 log=$2
	shift 2
	logs="$logs $dir/meson-logs/$log.json"
	rm -f "$dir/meson-logs/$log.json"
	meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier "$patience" --num-processes "$beside" \
		--logbase "$log" "$@"
}

build "$build" meson-
export ROCI_SLICE=quick # of the suite "sliced": see tap() in tests/clients/harness.py
tests "$build" quick --no-suite rest
if [ "${1:-}" = --all ]; then
	export ROCI_SLICE=rest
	tests "$build" rest --suite rest --suite sliced
	unset ROCI_SLICE
	build "$build-asan" 'meson-|bench/|tests/interop/' -Db_sanitize=address,undefined -Db_lundef=false
	tests "$build-asan" suites --suite wire --suite engine --suite device --suite cm --suite mover --suite roci --suite sim --suite abi \
		--no-suite lines
	tests "$build-asan" clients smoke pingpong connections send output mover-peers dump ladder perf
	build "$build-tsan" 'meson-|bench/|tests/(interop|fuzz|unit|sim|sim_cm|abi)/' -Db_sanitize=thread -Db_lundef=false
	tests "$build-tsan" clients smoke send output
	echo "== $build-fuzz"
	BUILD=$build-fuzz scripts/fuzz.sh 2 || fuzz=1
fi

# shellcheck disable=SC2086
scripts/count-tests.py $logs && exit "$fuzz"
exit 1
