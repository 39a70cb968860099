/* SPDX-License-Identifier: BSD-2-Clause */
/* strings OURS SYSTEM: names of enum values and rate conversions are the same as in the system's library. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *symbol(const char *path, const char *name)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *found = lib ? dlsym(lib, name) : NULL;
	if (!found) {
		fprintf(stderr, "FAIL: %s: %s\n", path, dlerror());
		exit(1);
	}
	return found;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"ibv_node_type_str", "ibv_port_state_str", "ibv_event_type_str",
					    "ibv_wc_status_str"};
	static const char *const numbers[] = {"ibv_rate_to_mult", "mult_to_ibv_rate", "ibv_rate_to_mbps",
					      "mbps_to_ibv_rate"};
	int failed = 0;
	if (argc < 3)
		return 77;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *(*ours)(int) = symbol(argv[1], names[i]), *(*theirs)(int) = symbol(argv[2], names[i]);
		for (int value = -2; value < 300; value++) {
			if (strcmp(ours(value), theirs(value))) {
				printf("%s(%d): '%s', expected '%s'\n", names[i], value, ours(value), theirs(value));
				failed = 1;
			}
		}
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int (*ours)(int) = symbol(argv[1], numbers[i]), (*theirs)(int) = symbol(argv[2], numbers[i]);
		for (int value = -2; value < 1500000; value++) {
			if (ours(value) != theirs(value)) {
				printf("%s(%d): %d, expected %d\n", numbers[i], value, ours(value), theirs(value));
				failed = 1;
			}
		}
	}
	return failed;
}
