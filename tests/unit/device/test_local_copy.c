/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies between processes: what the guard page keeps away from memory that is not the one that was meant. */
#include "../test.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/local/copy.h"

#define PIECE (UINT64_C(4) << 20)
#define BYTES (2 * PIECE + (1 << 20)) /* more than two pieces */
#define VALUE UINT64_C(0x1122334455667788)

static uint8_t *theirs, *mine;
static struct roci_local_memory m;
static unsigned asked, stays; /* how often it was asked whether the memory was taken back, and how often it was not */

static bool is_revoked(void *arg)
{
	assert_ptr_equal(arg, &asked);
	return ++asked > stays;
}

/* A process with memory that it shares with us, so that we see what is in it, and with a guard page. */
static int make(void **state)
{
	uint64_t *token = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	theirs = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mine = malloc(BYTES);
	for (uint64_t i = 0; i < BYTES; i++)
		mine[i] = (uint8_t)(i * 31 + 7);
	pid = fork();
	if (!pid) {
		*token = roci_local_guard_make(VALUE);
		for (;;)
			pause();
	}
	while (!*(volatile uint64_t *)token)
		usleep(100);
	m = (struct roci_local_memory){pid, *token, VALUE, is_revoked, &asked};
	asked = 0;
	stays = UINT_MAX;
	munmap(token, 4096);
	return 0;
}

static int drop(void **state)
{
	kill(m.pid, SIGKILL);
	waitpid(m.pid, NULL, 0);
	munmap(theirs, BYTES);
	free(mine);
	return 0;
}

static int copy(bool read, uint64_t len)
{
	struct roci_span here = {mine, len}, there = {theirs, len};

	return roci_local_copy(&m, read, &here, 1, &there, 1, true);
}

static void assert_untouched(void)
{
	for (uint64_t i = 0; i < BYTES; i++)
		assert_int_equal(theirs[i], 0);
}

static void copies_both_ways(void **state)
{
	const uint64_t lengths[] = {1, 7, 8, 9, 4096, 100001, BYTES};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(theirs, 0, BYTES);
		assert_int_equal(copy(false, lengths[i]), 0);
		assert_memory_equal(theirs, mine, lengths[i]);
		assert_true(lengths[i] == BYTES || !theirs[lengths[i]]);
		theirs[0] ^= 0xff;
		assert_int_equal(copy(true, lengths[i]), 0);
		assert_int_equal(mine[0], theirs[0]);
	}
}

static void spans_need_not_fit_each_other(void **state)
{
	struct roci_span here[3] = {{mine, 10}, {mine + 100, 5000000}, {mine + 6000000, 3}};
	struct roci_span there[2] = {{theirs + 1, 4000000}, {theirs + 5000000, 1000013}};

	assert_int_equal(roci_local_copy(&m, false, here, 3, there, 2, true), 0);
	assert_memory_equal(theirs + 1, mine, 10);
	assert_memory_equal(theirs + 11, mine + 100, 3999990);
	assert_memory_equal(theirs + 5000000 + 1000010, mine + 6000000, 3);
	there[1].len++;
	assert_int_equal(roci_local_copy(&m, false, here, 3, there, 2, true), -ESRCH);
}

/* Who takes it back waits for one piece. */
static void a_long_copy_ends_where_the_memory_is_taken_back(void **state)
{
	for (unsigned read = 0; read < 2; read++) {
		asked = 0;
		stays = 1;
		assert_int_equal(copy(read, BYTES), -ECANCELED);
		assert_int_equal(asked, 2);
		assert_int_equal(theirs[BYTES - 1], 0);
	}
	assert_memory_equal(theirs, mine, PIECE);
	asked = stays = 0;
	assert_int_equal(copy(false, PIECE), 0);
	assert_int_equal(asked, 0); /* it was looked at before */
}

/* The pid belongs to another process now, or the process has called exec: there is no guard page. */
static void another_address_space_is_not_touched(void **state)
{
	struct roci_local_memory right = m;
	pid_t other = fork();

	if (!other)
		for (;;)
			pause();
	m.pid = other;
	assert_int_not_equal(copy(false, 100000), 0);
	assert_int_not_equal(copy(true, 100000), 0);
	m = right;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_untouched();
}

/* A page there by chance: what is read from it is not believed. */
static void another_value_is_not_believed(void **state)
{
	m.token_value ^= 1;
	assert_int_not_equal(copy(true, 100), 0);
}

static void a_forked_child_has_no_guard(void **state)
{
	uint64_t token = roci_local_guard_make(VALUE);
	struct roci_local_memory right = m;
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	m.pid = child;
	m.token = token;
	assert_int_not_equal(copy(false, 1000), 0);
	m.pid = getpid();
	assert_int_equal(copy(false, 1000), 0);
	memset(theirs, 0, 1000);
	roci_local_guard_close(token);
	assert_int_not_equal(copy(false, 1000), 0);
	assert_untouched();
	roci_local_guard_free(token);
	m = right;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void a_dead_process_is_an_error(void **state)
{
	kill(m.pid, SIGKILL);
	waitpid(m.pid, NULL, 0);
	assert_int_equal(copy(false, 100), -ESRCH);
	m.token = 0;
	assert_int_equal(copy(false, 100), -ESRCH);
}

static void it_is_told_what_is_mapped(void **state)
{
	uint8_t *pages = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct roci_span spans[2] = {{pages + 100, 5000}, {pages + 3 * 4096 - 1, 1}};

	if (madvise(pages, 4096, MADV_POPULATE_READ))
		skip(); /* Linux before 5.14 */
	assert_true(roci_local_is_mapped(spans, 2, true));
	assert_int_equal(mprotect(pages + 2 * 4096, 4096, PROT_READ), 0);
	assert_true(roci_local_is_mapped(spans, 2, false));
	assert_false(roci_local_is_mapped(spans, 2, true));
	assert_true(roci_local_is_mapped(spans, 1, true));
	assert_int_equal(mprotect(pages + 2 * 4096, 4096, PROT_NONE), 0);
	assert_false(roci_local_is_mapped(spans, 2, false));
	assert_int_equal(munmap(pages + 4096, 4096), 0);
	assert_false(roci_local_is_mapped(spans, 1, false));
	assert_true(roci_local_is_mapped(NULL, 0, true));
	munmap(pages, 4 * 4096);
}

/* The peer's places are its own affair: they are numbers here. Found by fuzz_local. */
static void a_place_may_be_any_number(void **state)
{
	struct roci_span here = {mine, 100};
	const uintptr_t places[] = {0, 1, UINTPTR_MAX, UINTPTR_MAX - 50, (uintptr_t)1 << 63};

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct roci_span there = {(void *)places[i], 100};

		assert_true(roci_local_copy(&m, true, &here, 1, &there, 1, true) < 0);
		assert_true(roci_local_copy(&m, false, &here, 1, &there, 1, true) < 0);
	}
	assert_untouched();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_both_ways, make, drop),
		cmocka_unit_test_setup_teardown(spans_need_not_fit_each_other, make, drop),
		cmocka_unit_test_setup_teardown(a_long_copy_ends_where_the_memory_is_taken_back, make, drop),
		cmocka_unit_test_setup_teardown(another_address_space_is_not_touched, make, drop),
		cmocka_unit_test_setup_teardown(another_value_is_not_believed, make, drop),
		cmocka_unit_test_setup_teardown(a_forked_child_has_no_guard, make, drop),
		cmocka_unit_test_setup_teardown(a_place_may_be_any_number, make, drop),
		cmocka_unit_test_setup_teardown(a_dead_process_is_an_error, make, drop),
		cmocka_unit_test(it_is_told_what_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
