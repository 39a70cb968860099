/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes of a user decide for one path, once: local_pairing.h. Both are played by this process. */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/local/pairing.h"
#include "device/rundir.h"

static struct side {
	int fd;
	struct roci_local_shared *shared;
} a, b;

static struct side make(unsigned slot, uint64_t incarnation)
{
	struct side s = {.fd = memfd_create("local", MFD_CLOEXEC)};

	assert_int_not_equal(s.fd, -1);
	assert_int_equal(ftruncate(s.fd, (off_t)ROCI_LOCAL_FILE_BYTES), 0);
	s.shared = mmap(NULL, sizeof(*s.shared), PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	assert_ptr_not_equal(s.shared, MAP_FAILED);
	s.shared->slot = slot;
	s.shared->incarnation = incarnation;
	s.shared->address = (uintptr_t)s.shared;
	s.shared->pid = getpid();
	return s;
}

static void end(struct side *s)
{
	munmap(s->shared, sizeof(*s->shared));
	close(s->fd);
}

static int begin(void **state)
{
	a = make(3, 0x1004);
	b = make(700, 0x2008);
	return 0;
}

static int finish(void **state)
{
	end(&a);
	end(&b);
	return 0;
}

static int attach(const struct side *own, const struct side *peer)
{
	const char *why = NULL;
	int err = roci_local_pair_up(own->shared, own->fd, peer->shared, peer->fd, &why);

	assert_true(err ? why && *why : !why);
	return err;
}

static void fill_with_rings(const struct side *s, unsigned first)
{
	for (unsigned slot = first; slot < first + ROCI_LOCAL_RINGS_MAX + 8; slot++)
		assert_int_equal(roci_local_reserve(s->fd, slot), 0);
}

/* What was possible for the first stays so for the second, who has its room by then. */
static void the_first_decides_for_both(void **state)
{
	assert_int_equal(attach(&a, &b), 0);
	fill_with_rings(&a, 100);
	fill_with_rings(&b, 100);
	assert_int_equal(attach(&b, &a), 0);
	assert_int_equal(attach(&a, &b), 0);
}

/* Whichever is without room, and whoever comes first: both take the wire, also when there is room again. */
static void without_room_both_take_the_wire(void **state)
{
	const struct side *full[] = {&a, &b, &a, &b}, *first[] = {&a, &a, &b, &b};

	for (unsigned i = 0; i < 4; i++) {
		const struct side *second = first[i] == &a ? &b : &a;

		fill_with_rings(full[i], 100);
		assert_int_equal(attach(first[i], second), -ENOTCONN);
		for (unsigned slot = 100; slot < 100 + ROCI_LOCAL_RINGS_MAX + 8; slot++)
			roci_local_unreserve(full[i]->fd, slot);
		assert_int_equal(attach(second, first[i]), -ENOTCONN);
		finish(state);
		begin(state);
	}
}

static void without_a_right_to_copy_both_take_the_wire(void **state)
{
	b.shared->pid = INT32_MAX; /* nobody */
	assert_int_equal(attach(&a, &b), -ENOTCONN);
	b.shared->pid = getpid();
	assert_int_equal(attach(&b, &a), -ENOTCONN);
	assert_int_equal(attach(&a, &b), -ENOTCONN);
}

/* The next process with a slot is asked anew. */
static void a_decision_is_about_two_processes(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *old = i ? &a : &b;
		unsigned slot = old->shared->slot;

		old->shared->pid = INT32_MAX;
		assert_int_equal(attach(i ? &b : &a, old), -ENOTCONN);
		end(old);
		*old = make(slot, 0x300c + 4 * i);
		assert_int_equal(attach(&a, &b), 0);
		assert_int_equal(attach(&b, &a), 0);
		finish(state);
		begin(state);
	}
}

static void with_itself(void **state)
{
	assert_int_equal(attach(&a, &a), 0);
	assert_int_equal(attach(&a, &a), 0);
}

static void a_file_must_be_allowed_to_be_so_large(void **state)
{
	struct rlimit before, small = {1 << 20, 1 << 20};

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_true(roci_rundir_may_hold(ROCI_LOCAL_FILE_BYTES));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_false(roci_rundir_may_hold(ROCI_LOCAL_FILE_BYTES));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_decides_for_both, begin, finish),
		cmocka_unit_test_setup_teardown(without_room_both_take_the_wire, begin, finish),
		cmocka_unit_test_setup_teardown(without_a_right_to_copy_both_take_the_wire, begin, finish),
		cmocka_unit_test_setup_teardown(a_decision_is_about_two_processes, begin, finish),
		cmocka_unit_test_setup_teardown(with_itself, begin, finish),
		cmocka_unit_test(a_file_must_be_allowed_to_be_so_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
