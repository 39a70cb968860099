#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Whether every C file is formatted as .clang-format says. `check-format.sh -i` formats them.
cd "$(dirname "$0")/.." || exit 1
find . -path './build*' -prune -o -path ./.git -prune -o -name '*.[ch]' -print0 |
	xargs -0 clang-format "${1:---dry-run}" -Werror
