/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's port table (src/device/ports.h), by two registries that stand for two processes. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/registry.h"

static char dir[] = "/tmp/roci-test-ports-XXXXXX";
static struct roci_registry here, there;

static const uint8_t any[16], any_v4[16] = {[10] = 0xff, [11] = 0xff};
static const uint8_t one[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
		     two[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
static const uint8_t six[16] = {0xfd, [15] = 1};

static int open_both(void **state)
{
	if (!mkdtemp(dir) || setenv("ROCI_RUNDIR", dir, 1))
		return -1;
	if (roci_registry_open(&here) || roci_registry_open(&there))
		return -1;
	roci_ports_reset(&here);
	roci_ports_reset(&there);
	return 0;
}

static int close_both(void **state)
{
	char command[128];

	roci_registry_close(&here);
	roci_registry_close(&there);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static int bind_port(struct roci_registry *reg, const uint8_t gid[16], uint16_t port, bool reuse, unsigned *index)
{
	struct roci_cm_bind ask = {.ps = ROCI_PS_TCP, .port = port, .reuse = reuse};
	uint16_t got;
	int err;

	memcpy(ask.gid, gid, 16);
	err = roci_ports_bind(reg, &ask, index, &got);
	if (!err)
		assert_true(!port || got == port);
	return err;
}

static void ports_belong_to_the_host(void **state)
{
	static const struct {
		const uint8_t *first, *second;
		int err;
	} cases[] = {
		{one, one, -EADDRINUSE},    {one, two, 0},    {any, one, -EADDRINUSE},    {one, any, -EADDRINUSE},
		{any_v4, two, -EADDRINUSE}, {any_v4, six, 0}, {any, any_v4, -EADDRINUSE},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned a, b;

		assert_int_equal(bind_port(&here, cases[i].first, 7000, false, &a), 0);
		assert_int_equal(bind_port(&there, cases[i].second, 7000, false, &b), cases[i].err);
		if (!cases[i].err)
			roci_ports_release(&there, b);
		roci_ports_release(&here, a);
	}
}

static void a_listener_of_the_other_family_is_found(void **state)
{
	static const struct {
		const uint8_t *listener, *request;
		bool owned, other;
	} cases[] = {
		{one, one, true, false}, {one, two, false, false},   {one, six, false, true},
		{six, one, false, true}, {any_v4, six, false, true}, {any, six, true, false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned index;

		assert_int_equal(bind_port(&here, cases[i].listener, 7000, false, &index), 0);
		assert_false(roci_ports_listened_to(&there, ROCI_PS_TCP, 7000));
		assert_int_equal(roci_ports_other_family(&there, ROCI_PS_TCP, 7000, cases[i].request), 0);
		assert_int_equal(roci_ports_listen(&here, index), 0);
		assert_true(roci_ports_listened_to(&there, ROCI_PS_TCP, 7000));
		assert_false(roci_ports_listened_to(&there, ROCI_PS_UDP, 7000));
		assert_int_equal(roci_ports_owner(&there, ROCI_PS_TCP, 7000, cases[i].request),
				 cases[i].owned ? here.slot : 0);
		if (!cases[i].owned)
			assert_int_equal(roci_ports_other_family(&there, ROCI_PS_TCP, 7000, cases[i].request),
					 cases[i].other ? here.slot : 0);
		roci_ports_release(&here, index);
	}
}

static void a_listener_ends_sharing(void **state)
{
	unsigned a, b, c;

	assert_int_equal(bind_port(&here, one, 7000, true, &a), 0);
	assert_int_equal(bind_port(&there, one, 7000, false, &b), -EADDRINUSE);
	assert_int_equal(bind_port(&there, one, 7000, true, &b), 0);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, one), 0);
	assert_int_equal(roci_ports_listen(&here, a), 0);
	assert_int_equal(roci_ports_listen(&there, b), -EADDRINUSE);
	assert_int_equal(bind_port(&there, one, 7000, true, &c), -EADDRINUSE);
	roci_ports_release(&here, a);
	assert_int_equal(roci_ports_listen(&there, b), 0);
	roci_ports_release(&there, b);
}

static void requests_find_the_closest_address(void **state)
{
	unsigned a, b;

	assert_int_equal(bind_port(&here, one, 7000, false, &a), 0);
	assert_int_equal(bind_port(&there, two, 7000, false, &b), 0);
	roci_ports_listen(&here, a);
	roci_ports_listen(&there, b);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, one), here.slot);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, two), there.slot);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, six), 0);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_UDP, 7000, one), 0);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7001, one), 0);
	roci_ports_release(&here, a);
	roci_ports_release(&there, b);
}

static unsigned writes(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < ROCI_PORT_ENTRIES; i++)
		sum += atomic_load(&here.file->ports.entries[i].sequence);
	return sum / 2;
}

/* While an entry is being written, it keeps its port from nobody, and who takes any port does not wait for the lock. So
 * an entry is written once while it has the port. */
static void an_entry_keeps_its_port_all_the_time(void **state)
{
	unsigned index, before = writes();

	assert_int_equal(bind_port(&here, one, 0, true, &index), 0);
	assert_int_equal(writes() - before, 1);
	assert_int_equal(roci_ports_listen(&here, index), 0);
	assert_int_equal(writes() - before, 1);
	roci_ports_release(&here, index);
}

static void port_zero_picks_a_free_port(void **state)
{
	static unsigned index[3000];
	static bool seen[65536];

	for (unsigned i = 0; i < 3000; i++) {
		struct roci_cm_bind ask = {.ps = ROCI_PS_TCP};
		uint16_t port;

		assert_int_equal(roci_ports_bind(i & 1 ? &here : &there, &ask, &index[i], &port), 0);
		assert_true(port >= 32768 && !seen[port]);
		seen[port] = true;
	}
	for (unsigned i = 0; i < 3000; i++)
		roci_ports_release(i & 1 ? &here : &there, index[i]);
}

static void any_port_is_had_while_another_process_has_the_lock(void **state)
{
	unsigned index;

	assert_int_equal(roci_registry_lock(&there), 0);
	assert_int_equal(bind_port(&here, one, 0, false, &index), 0);
	roci_registry_unlock(&there);
	roci_ports_release(&here, index);
}

/* A process ends without releasing its ports. The next process with its slot does not inherit them. */
static void dead_processes_have_no_ports(void **state)
{
	unsigned a, b, slot = there.slot;

	assert_int_equal(bind_port(&there, one, 7000, false, &b), 0);
	roci_ports_listen(&there, b);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, one), slot);
	roci_registry_close(&there);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, one), 0);
	assert_int_equal(bind_port(&here, any, 7000, false, &a), 0);
	roci_ports_release(&here, a);
	assert_int_equal(roci_registry_open(&there), 0);
	roci_ports_reset(&there);
	assert_int_equal(bind_port(&there, one, 7000, false, &b), 0);
	roci_ports_listen(&there, b);
	roci_ports_reset(&there);
	assert_int_equal(roci_ports_owner(&here, ROCI_PS_TCP, 7000, one), 0);
}

/* Who has had a slot stays known when it has died. */
static void a_slot_is_new_until_somebody_has_it(void **state)
{
	unsigned slot = 1;

	while (slot == here.slot || slot == there.slot)
		slot++;
	assert_true(roci_ports_slot_is_new(&here, slot));
	assert_true(roci_ports_slot_is_new(&here, ROCI_PORT_SLOTS));
	assert_false(roci_ports_slot_is_new(&here, here.slot));
	slot = there.slot;
	assert_false(roci_ports_slot_is_new(&here, slot));
	roci_registry_close(&there);
	assert_false(roci_ports_slot_is_new(&here, slot));
	assert_int_equal(roci_registry_open(&there), 0);
	roci_ports_reset(&there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_of_the_other_family_is_found),
		cmocka_unit_test(ports_belong_to_the_host),
		cmocka_unit_test(a_slot_is_new_until_somebody_has_it),
		cmocka_unit_test(a_listener_ends_sharing),
		cmocka_unit_test(requests_find_the_closest_address),
		cmocka_unit_test(an_entry_keeps_its_port_all_the_time),
		cmocka_unit_test(port_zero_picks_a_free_port),
		cmocka_unit_test(any_port_is_had_while_another_process_has_the_lock),
		cmocka_unit_test(dead_processes_have_no_ports),
	};

	return cmocka_run_group_tests(tests, open_both, close_both);
}
