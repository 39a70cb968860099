#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-includes.sh [BUILD]: prints each #include of C files that nothing in its file uses, and fails if there is one. clang-tidy's
# include checker judges. BUILD is a directory that Meson has set up (default: build).
# A header that is included for the sake of others says so: /* IWYU pragma: export */. Of headers only our own includes are judged:
# the checker cannot know which system header a macro needs where it is used.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
tidy=clang-tidy-19
command -v $tidy >/dev/null || {
	echo "$tidy is not installed"
	exit 77
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Headers of the tests are found from each directory: clang-tidy takes a header's options from a file of a similar name.
find "$PWD" -path "$PWD/build*" -prune -o -name '*.[ch]' -print0 |
	xargs -0 -P "$(nproc)" -n 10 $tidy -p "$build" --quiet --checks='-*,misc-include-cleaner' \
		--extra-arg=-w --extra-arg="-I$PWD/tests/unit" --extra-arg="-I$PWD/tests/support" >"$output" 2>/dev/null
[ -s "$output" ] || { # it always has something to say about includes that are missing, which do not count
	echo "$tidy did not work"
	exit 1
}
awk -v root="$PWD/" '
	{ sub("^" root, ""); sub(/^\.\.\//, "") }
	/ error: / { print; bad = 1 }
	/ is not used directly / { finding = $0; next }
	finding != "" {
		if (finding !~ /^[^:]*\.h:/ || $0 !~ /#include </) {
			sub(/: warning: /, ": ", finding)
			sub(/ \[misc-include-cleaner\]/, "", finding)
			print finding
			bad = 1
		}
		finding = ""
	}
	END { exit bad }' "$output"
