/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers: a forked child must not draw those that its parent draws. */
#include "../test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"

#define NUMBERS 8

struct drawn {
	uint32_t numbers[NUMBERS];
};

static struct drawn draw(void)
{
	struct drawn d;

	for (unsigned i = 0; i < NUMBERS; i++)
		d.numbers[i] = roci_random32();
	return d;
}

/* What a process that is forked now draws: itself, or with `again` a child of its own. */
static struct drawn draw_in_child(bool again)
{
	struct drawn d = {0};
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		d = again ? draw_in_child(false) : draw();
		_exit(write(fds[1], &d, sizeof(d)) != sizeof(d));
	}
	assert_int_equal(read(fds[0], &d, sizeof(d)), sizeof(d));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
	return d;
}

static void no_two_processes_draw_the_same(void **state)
{
	struct drawn d[5];

	(void)roci_random32(); /* there are more in the pool */
	d[0] = draw_in_child(false);
	d[1] = draw_in_child(false);
	d[2] = draw_in_child(true);
	d[3] = draw();
	d[4] = draw_in_child(false);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(&d[i], &d[k], sizeof(d[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_two_processes_draw_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
