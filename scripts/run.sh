#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what is missing, builds, and runs the demo: run.sh [OPTION...] [FILE] hands its arguments to `roci demo`.
# BUILD names the directory to build in (default: build).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$here/build}

"$here/scripts/install-deps.sh" --build
[ -f "$build/build.ninja" ] || meson setup "$build" "$here"
ninja -C "$build"
echo
exec "$build/roci/roci" demo "$@"
