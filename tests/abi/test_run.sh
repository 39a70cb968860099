#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test_run.sh ROCI: checks how `roci run` handles its command line and the environment.
set -u
roci=$1 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# expect STATUS TEXT COMMAND...: checks its exit status, and that its output matches the pattern
expect()
{
	want=$1 text=$2
	shift 2
	out=$("$@" 2>&1)
	got=$?
	if [ $got -ne "$want" ] || ! printf '%s\n' "$out" | grep -q -e "$text"; then
		printf 'FAIL: %s\n  status %s (want %s), output (want "%s"): %s\n' "$*" "$got" "$want" "$text" "$out"
		failed=1
	fi
}

expect 0 'roci run -- ' "$roci" --help
expect 0 'usage: roci run' "$roci" run --help
expect 0 '^roci [0-9]' "$roci" --version
expect 2 'commands:' "$roci"
expect 2 "unknown command 'dance'" "$roci" dance
expect 2 'no program is given' "$roci" run
expect 2 'no program is given' "$roci" run --
expect 2 "unknown option '--dance'" "$roci" run --dance true
expect 2 '--fault needs SPEC' "$roci" run --fault
expect 127 'no-such-program: program not found' "$roci" run no-such-program
expect 126 'Permission denied' "$roci" run /etc/passwd
expect 126 'Permission denied' "$roci" run /
expect 7 '' "$roci" run -- sh -c 'exit 7'
expect 0 '^-a --fault$' "$roci" run -- echo -a --fault
expect 0 '^-a$' "$roci" run echo -a
expect 0 '^loss=1 .*/x.pcapng$' "$roci" run --fault loss=1 --capture "$dir/x.pcapng" -- sh -c 'echo $ROCI_FAULT $ROCI_CAPTURE'
expect 2 '"los=0.2": its name is not one of loss, dup' "$roci" run --fault los=0.2 -- echo started
expect 2 '"loss=7": a probability is a number from 0 to 1' "$roci" run --fault seed=1,loss=7 -- echo started
expect 2 '"seed=x": a seed is a whole number' "$roci" run --fault seed=x -- echo started
expect 2 'no-such-dir/x.pcapng: No such file' "$roci" run --capture "$dir/no-such-dir/x.pcapng" -- echo started
expect 2 '--capture /: Is a directory' "$roci" run --capture / -- echo started
echo 'not a capture, and long enough to be none of anybody who writes captures' >"$dir/text"
expect 2 'is not a capture' "$roci" run --capture "$dir/text" -- echo started
expect 0 '^none$' "$roci" run --capture "$dir/new.pcapng" -- sh -c "ls $dir/new.pcapng 2>/dev/null || echo none"
expect 0 'hca_id:.*roci0' "$roci" run --capture "$dir/one.pcapng" -- ibv_devinfo -d roci0
expect 0 'one.pcapng is a capture already; packets are added at its end' "$roci" run --capture "$dir/one.pcapng" -- echo started
printf '#!/bin/sh\necho started\n' >"$dir/script"
chmod +x "$dir/script"
expect 0 '^started$' "$roci" run -- "$dir/script"
if [ -x /sbin/ldconfig ] && ! readelf -l /sbin/ldconfig | grep -q INTERP; then
	expect 0 'ldconfig is linked statically' "$roci" run -- /sbin/ldconfig --version
fi
# Entries of the environment stay: in LD_PRELOAD first (a sanitizer must be first), in LD_LIBRARY_PATH last
expect 0 'libdl.so.2:/.*/libibverbs.so.1' env LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}libdl.so.2" "$roci" run -- sh -c 'echo $LD_PRELOAD'
expect 0 '/.*:/elsewhere$' env LD_LIBRARY_PATH=/elsewhere "$roci" run -- sh -c 'echo $LD_LIBRARY_PATH'
# A roci without its libraries
cp "$roci" "$dir/roci"
expect 2 "Rocinante's libibverbs.so.1 is missing" "$dir/roci" run -- true
if [ "$(id -u)" != 0 ] && [ -u /usr/bin/su ]; then
	expect 0 'preloads nothing' "$roci" run -- su --help
fi
exit $failed
