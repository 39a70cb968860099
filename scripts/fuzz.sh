#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh MINUTES [TARGET...]: runs the fuzz targets in turn, for MINUTES in all (a fraction is fine), led by coverage
# (libFuzzer), with the address and undefined-behaviour sanitizers. Each begins with its corpus in tests/fuzz/corpus and a
# fresh seed, which is printed. At the end: which share of each room's lines was reached. Exit status 1 if anything was
# found; the input stays in BUILD/found, and `BUILD/tests/fuzz/TARGET FILE` runs it again.
# fuzz.sh --keep: puts into tests/fuzz/corpus what runs have found since, minimized.
# BUILD names the directory to build in (default: build-fuzz).
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build-fuzz}
all='packet engine blind cm gsi mover receiver sender capture rsocket local door trust'
usage()
{
	echo "usage: fuzz.sh MINUTES [$(echo "$all" | tr ' ' '|')]..." >&2
	exit 2
}
[ $# -ge 1 ] || usage
minutes=$1
shift
case $minutes in
--keep) ;;
*[!0-9.]* | '') usage ;;
esac
for target; do
	case " $all " in *" $target "*) ;; *) usage ;; esac
done
[ $# -gt 0 ] || {
	# shellcheck disable=SC2086
	set -- $all
}

cover='-fprofile-instr-generate -fcoverage-mapping'
[ -f "$build/build.ninja" ] || CC=clang meson setup "$build" -Dguided_fuzz=true -Db_lundef=false \
	-Db_sanitize=address,undefined -Dc_args="-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined $cover" \
	-Dc_link_args="$cover" >/dev/null || exit
# shellcheck disable=SC2046
ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s ' "$@") >"$build/ninja.log" || {
	cat "$build/ninja.log"
	exit 1
}
mkdir -p "$build/found"
export LLVM_PROFILE_FILE=/dev/null

# The inputs of a target that run longest are those of one story: no need to be longer than these bytes.
max_len()
{
	case $1 in
	packet) echo 4200 ;;
	capture) echo 16384 ;;
	mover) echo 4096 ;;
	receiver | sender) echo 1500 ;; # bytes; a session has some hundreds of steps at most
	*) echo 8192 ;;
	esac
}

# Scripts are stories: a short one gets nowhere.
growth()
{
	case $1 in
	blind | gsi | receiver | sender | rsocket | local | door | trust) echo -len_control=0 ;;
	esac
}

if [ "$minutes" = --keep ]; then
	for target; do
		kept=tests/fuzz/corpus/$target
		rm -rf "$build/kept"
		mkdir -p "$build/kept" "$kept" "$build/corpus/$target"
		"$build/tests/fuzz/fuzz_$target" -set_cover_merge=1 -use_counters=0 -max_len=1024 "$build/kept" "$kept" "$build/corpus/$target" 2>&1 |
			grep -E '^MERGE-OUTER: [0-9]+ new|ERROR'
		rm -rf "$kept"
		mv "$build/kept" "$kept"
		echo "$target: $(find "$kept" -type f | wc -l) inputs, $(du -sb "$kept" | cut -f1) bytes"
	done
	exit
fi

seconds=$(echo "$minutes $#" | awk '{ s = $1 * 60 / $2; print s < 1 ? 1 : int(s) }')
status=0
for target; do
	seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
	mkdir -p "$build/corpus/$target" "tests/fuzz/corpus/$target" # git keeps no empty folder
	log=$build/found/$target.log
	# shellcheck disable=SC2046
	LLVM_PROFILE_FILE="$build/$target.profraw" "$build/tests/fuzz/fuzz_$target" -seed="$seed" \
		-max_total_time="$seconds" -max_len="$(max_len "$target")" -timeout=60 -print_final_stats=1 \
		$(growth "$target") -artifact_prefix="$build/found/$target-" -close_fd_mask=1 "$build/corpus/$target" "tests/fuzz/corpus/$target" \
		$([ "$target" != capture ] || echo tests/captures) >"$log" 2>&1
	end=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
	edges=$(sed -n 's/^#[0-9].* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
	echo "$target: seed $seed, ${runs:-0} runs in $seconds s, ${edges:-0} edges$([ $end = 0 ] || echo ", FOUND SOMETHING: $log")"
	[ $end = 0 ] || {
		tail -40 "$log"
		status=1
	}
done

objects=
for target; do
	llvm-profdata merge -sparse "$build/$target.profraw" -o "$build/$target.profdata" 2>/dev/null &&
		objects="$objects $target"
done
for target in $objects; do
	llvm-cov export -summary-only -instr-profile "$build/$target.profdata" "$build/tests/fuzz/fuzz_$target" 2>/dev/null |
		python3 -c '
import json, os, sys
rooms = {}
for file in json.load(sys.stdin)["data"][0]["files"]:
    name = os.path.relpath(file["filename"])
    if name.startswith("src/") or "/src/" in name:
        room = name.split("src/", 1)[1].split("/")[0]
        lines = file["summary"]["lines"]
        seen, count = rooms.get(room, (0, 0))
        rooms[room] = seen + lines["covered"], count + lines["count"]
print(sys.argv[1] + " reached: " + ", ".join("%s %d%% of %d lines" % (room, 100 * seen / max(count, 1), count)
    for room, (seen, count) in sorted(rooms.items())))' "$target"
done
exit $status
