/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing outside of a folder is opened, with openat2() and without it. The tree's names are checked before
 * (test_tree.c); this is the last line. */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/entry.h"

static char dir[] = "/tmp/roci-beneath-XXXXXX";
static int dir_fd;

static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	assert_int_equal(mkdirat(dir_fd, "a", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "a/bb", 0700), 0);
	return symlinkat("..", dir_fd, "up");
}

static int teardown(void **state)
{
	unlinkat(dir_fd, "up", 0);
	unlinkat(dir_fd, "a/bb", AT_REMOVEDIR);
	unlinkat(dir_fd, "a", AT_REMOVEDIR);
	close(dir_fd);
	return rmdir(dir);
}

static int try_open(const char *path)
{
	int fd = mover_beneath_open(dir_fd, path, O_RDONLY | O_DIRECTORY);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void what_is_beneath_is_opened(void **state)
{
	assert_int_equal(try_open("a"), 0);
	assert_int_equal(try_open("a/bb"), 0);
	assert_int_equal(try_open("b"), -ENOENT);
}

static void what_leads_out_is_not(void **state)
{
	static const char *const paths[] = {"..", "../x", "a/../..", "/", "/tmp", "up", "up/tmp"};

	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_true(try_open(paths[i]) < 0);
}

static void by_components_every_dot_dot_is_refused(void **state)
{
	char name[MOVER_COMPONENT_MAX + 2];

	assert_int_equal(try_open(".."), -EXDEV);
	assert_int_equal(try_open("../x"), -EXDEV);
	assert_int_equal(try_open("a/.."), -EXDEV);
	assert_int_equal(try_open(".b"), -ENOENT);
	assert_int_equal(try_open("a//bb"), -EXDEV);
	assert_int_equal(try_open(""), -EXDEV);
	memset(name, 'n', sizeof(name));
	name[MOVER_COMPONENT_MAX + 1] = 0;
	assert_int_equal(try_open(name), -ENAMETOOLONG);
	name[MOVER_COMPONENT_MAX] = 0;
	assert_int_equal(try_open(name), -ENOENT);
}

static int without_openat2(void **state)
{
	mover_beneath_without_openat2(true);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_beneath_is_opened),
		cmocka_unit_test(what_leads_out_is_not),
		cmocka_unit_test_setup(what_is_beneath_is_opened, without_openat2),
		cmocka_unit_test(what_leads_out_is_not),
		cmocka_unit_test(by_components_every_dot_dot_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
