/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of rdma_cm ports, by two lists that stand for two processes. */
#include "bench.h"

#include <sys/socket.h>
#include <unistd.h>

#include "device/abstract_name.h"
#include "device/port_names.h"

#define TCP ROCI_PS_TCP
#define UDP ROCI_PS_UDP

static struct roci_port_names here, there;

static int open_both(void **state)
{
	return roci_port_names_open(&here) || roci_port_names_open(&there);
}

static int close_both(void **state)
{
	roci_port_names_close(&here);
	roci_port_names_close(&there);
	return 0;
}

static void another_registry_cannot_have_the_port(void **state)
{
	assert_int_equal(roci_port_names_add(&here, TCP, 7000, false), 0);
	assert_int_equal(roci_port_names_add(&there, TCP, 7000, false), -EADDRINUSE);
	assert_null(roci_port_names_find(&there, TCP, 7000));
	assert_int_equal(roci_port_names_add(&there, UDP, 7000, false), 0);
	assert_int_equal(roci_port_names_add(&there, TCP, 7001, false), 0);
	roci_port_names_remove(&here, TCP, 7000);
	assert_int_equal(roci_port_names_add(&there, TCP, 7000, false), 0);
	roci_port_names_remove(&there, TCP, 7000);
	roci_port_names_remove(&there, TCP, 7001);
	roci_port_names_remove(&there, UDP, 7000);
}

/* At another address. */
static void listeners_of_a_process_share_it(void **state)
{
	for (int i = 0; i < 3; i++)
		assert_int_equal(roci_port_names_add(&here, TCP, 7000, false), 0);
	roci_port_names_remove(&here, TCP, 7000);
	roci_port_names_remove(&here, TCP, 7000);
	assert_int_equal(roci_port_names_add(&there, TCP, 7000, false), -EADDRINUSE);
	roci_port_names_remove(&here, TCP, 7000);
	assert_null(roci_port_names_find(&here, TCP, 7000));
}

/* The list has no room for one more name, and needs none. */
static void a_listener_of_a_known_port_needs_no_room(void **state)
{
	for (unsigned count = 4; count <= 8; count *= 2) {
		for (uint16_t port = 7000 + here.count; here.count < count; port++)
			assert_int_equal(roci_port_names_add(&here, TCP, port, false), 0);
		assert_int_equal(here.room, count);
		assert_int_equal(roci_port_names_add(&here, TCP, 7000, false), 0);
		assert_int_equal(here.room, count);
		assert_int_equal(roci_port_names_find(&here, TCP, 7000)->listeners, 2);
		roci_port_names_remove(&here, TCP, 7000);
		assert_int_equal(roci_port_names_add(&there, TCP, 7000, false), -EADDRINUSE);
	}
	for (uint16_t port = 7000; port < 7008; port++)
		roci_port_names_remove(&here, TCP, port);
	assert_int_equal(here.count, 0);
}

static void a_process_of_the_registry_takes_over(void **state)
{
	assert_int_equal(roci_port_names_add(&here, TCP, 7000, false), 0);
	assert_int_equal(roci_port_names_add(&there, TCP, 7000, true), 0);
	assert_int_equal(there.missing, 1);
	roci_port_names_retry(&there);
	assert_int_equal(there.missing, 1);
	roci_port_names_remove(&here, TCP, 7000);
	roci_port_names_retry(&there);
	assert_int_equal(there.missing, 0);
	assert_int_equal(roci_port_names_add(&here, TCP, 7000, false), -EADDRINUSE);
	roci_port_names_remove(&there, TCP, 7000);
}

static void what_arrives_is_found(void **state)
{
	struct roci_abstract_name name = roci_abstract_name_port(TCP, 7003);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), ready;
	char byte;

	for (uint16_t port = 7000; port < 7010; port++) /* more than there is room for at first */
		assert_int_equal(roci_port_names_add(&here, TCP, port, false), 0);
	assert_int_equal(roci_port_names_ready(&here), -1);
	assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&name.addr, name.len), 1);
	ready = roci_port_names_ready(&here);
	assert_int_equal(ready, roci_port_names_find(&here, TCP, 7003)->fd);
	assert_int_equal(recv(ready, &byte, 1, 0), 1);
	assert_int_equal(roci_port_names_ready(&here), -1);
	for (uint16_t port = 7000; port < 7010; port++)
		roci_port_names_remove(&here, TCP, port);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_registry_cannot_have_the_port, open_both, close_both),
		cmocka_unit_test_setup_teardown(listeners_of_a_process_share_it, open_both, close_both),
		cmocka_unit_test_setup_teardown(a_listener_of_a_known_port_needs_no_room, open_both, close_both),
		cmocka_unit_test_setup_teardown(a_process_of_the_registry_takes_over, open_both, close_both),
		cmocka_unit_test_setup_teardown(what_arrives_is_found, open_both, close_both),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
