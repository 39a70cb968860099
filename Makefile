# The two commands of the README, for those who have make; everything else is Meson's.
.PHONY: run test

run:
	scripts/run.sh

test:
	scripts/test.sh
