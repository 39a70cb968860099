#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [OPTION...] [FILE]: installs missing packages, builds what `roci demo` needs, and runs it with these arguments.
# BUILD is the directory to build in (default: build).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$here/build}

"$here/scripts/install-deps.sh" --build
[ -f "$build/build.ninja" ] || meson setup "$build" "$here"
ninja -C "$build" roci/roci roci/system/roci src/verbs/libibverbs.so.1 src/rdmacm/librdmacm.so.1
echo
"$build/roci/roci" demo "$@"
command -v roci >/dev/null || echo "To type \`roci\`:   export PATH=$build/roci:\$PATH"
