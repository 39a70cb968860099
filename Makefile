# SPDX-License-Identifier: BSD-2-Clause
# The commands of the README, for those who have make; everything else is Meson's.
.PHONY: demo run programs test interop interop-long

demo run:
	scripts/run.sh

programs:
	scripts/run-programs.sh

test:
	scripts/test.sh

# Against the kernel's Soft-RoCE and iWARP, in guests with Debian's kernels 6.1 and 6.12; and more of the same with 6.1.
interop: suites = --suite interop --suite interop-all
interop-long: suites = --suite interop-long
interop interop-long:
	scripts/install-deps.sh
	[ -f build/build.ninja ] || meson setup build
	ninja -C build
	rm -f build/meson-logs/interop.*
	-@start=$$(date +%s); \
	meson test -C build --no-rebuild $(suites) --print-errorlogs --logbase interop; \
	echo "interop: $$(($$(date +%s) - start)) s"
	@sed -n 's/^# \(.* times as fast\)$$/\1/p' build/meson-logs/interop.txt
	scripts/count-tests.py build/meson-logs/interop.json
