#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [OPTION...] [FILE]: installs missing packages, builds, and runs `roci demo` with these arguments.
# BUILD is the directory to build in (default: build).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$here/build}

"$here/scripts/install-deps.sh" --build
[ -f "$build/build.ninja" ] || meson setup "$build" "$here"
ninja -C "$build"
echo
exec "$build/roci/roci" demo "$@"
