# SPDX-License-Identifier: BSD-2-Clause
# The commands of the README, for those who have make; everything else is Meson's.
.PHONY: help demo run programs test test-all fuzz interop interop-long

help:
	@echo "make demo          a file goes from one process to another, and each step is explained"
	@echo "make programs      unmodified verbs programs at work between two hosts on this machine"
	@echo "make test          tests of every layer: ten minutes, half an hour on a slow machine"
	@echo "make test-all      all tests, also with sanitizers: half an hour, an hour on a slow machine"
	@echo "make fuzz          every way in, with bytes led by coverage; MINUTES=60 for an hour"
	@echo "make interop       against the kernel's Soft-RoCE and iWARP, in guests with Debian's kernels 6.1 and 6.12"
	@echo "make interop-long  more of the same with 6.1"
	@echo "Each installs the Debian packages that it lacks, and builds."

demo run:
	scripts/run.sh

programs:
	scripts/run-programs.sh

test:
	scripts/test.sh

test-all:
	scripts/test.sh --all

fuzz:
	scripts/install-deps.sh
	scripts/fuzz.sh $(or $(MINUTES),10)

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
