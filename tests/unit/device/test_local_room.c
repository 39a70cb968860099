/* SPDX-License-Identifier: BSD-2-Clause */
/* A process whose packets wait for room in the ring to a peer (spill.h), and sleeps. Two ends in one process. */
#include "bench.h"

#include <sys/socket.h>

#include "device/local/local.h"
#include "device/qpn_slot.h"
#include "device/side_door.h"

#define LEN 4000 /* bytes of payload: some thirty such packets fit */

static struct end {
	struct roci_registry registry;
	struct roci_side_door *door;
	struct roci_engine *engine;
	struct roci_device_stats stats;
	struct roci_local local;
	struct roci_av av; /* to the other one */
} writer, reader;

static void open_end(struct end *end)
{
	assert_int_equal(roci_registry_open(&end->registry), 0);
	assert_int_equal(roci_side_door_open(&end->registry, &end->door), 0);
	end->engine = roci_engine_create();
	assert_non_null(end->engine);
	roci_local_open(&end->local, &end->registry, end->door, end->engine, &end->stats);
	assert_non_null(end->local.own);
}

static void attach(struct end *end, const struct end *other)
{
	const char *why = "";
	int local =
		roci_local_find(&end->local, roci_slot_qpn(&other->registry.slot_key, other->registry.slot, 5), &why);

	assert_int_equal(local, 1);
	end->av.local = (uint16_t)local;
}

static void close_end(struct end *end)
{
	roci_local_close(&end->local);
	roci_engine_destroy(end->engine);
	roci_side_door_close(end->door);
	roci_registry_close(&end->registry);
}

static int begin(void **state)
{
	open_end(&writer);
	open_end(&reader);
	attach(&writer, &reader);
	attach(&reader, &writer);
	roci_local_receive(&writer.local, 1);
	return 0;
}

static int finish(void **state)
{
	close_end(&writer);
	close_end(&reader);
	return 0;
}

static bool waits_for_room(void)
{
	return !roci_local_spill_is_empty(&writer.local.peers[0]->spill);
}

static void send_one(void)
{
	static uint8_t payload[LEN];
	const struct roci_span span = {payload, LEN};
	const struct roci_packet pkt = {.opcode = ROCI_OP_SEND_ONLY, .pkey = ROCI_PKEY_DEFAULT, .payload_len = LEN};
	struct roci_tx_packet tx = {.av = &writer.av, .payload_len = LEN, .span_count = 1};

	tx.header_len = (uint8_t)roci_packet_build(&pkt, tx.header);
	roci_local_send(&writer.local, &tx, &span);
}

static unsigned receive_all(struct end *end)
{
	unsigned n = 0, more;

	while ((more = roci_local_receive(&end->local, 1)))
		n += more;
	return n;
}

static bool wakeup_is_at_the_door(const struct end *end)
{
	char message[64];

	return recv(end->registry.door_fd, message, sizeof(message), MSG_DONTWAIT) > 0;
}

static void who_makes_room_wakes_who_waits_for_it(void **state)
{
	unsigned sent = 0, received = 0, rounds = 0;

	for (; !waits_for_room(); sent++)
		send_one();
	for (unsigned more = 3 * sent; more--; sent++)
		send_one();
	roci_local_flush(&writer.local);
	while (received < sent) {
		assert_true(++rounds < 10);
		assert_true(roci_local_sleeps(&writer.local)); /* it can do nothing */
		received += receive_all(&reader);
		if (received == sent)
			break;
		assert_true(roci_local_wakeup_came(&writer.local));
		assert_true(wakeup_is_at_the_door(&writer));
		roci_local_awake(&writer.local);
		roci_local_receive(&writer.local, 1);
	}
	assert_false(waits_for_room());
}

static void nobody_wakes_who_waits_for_nothing(void **state)
{
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 20; i++)
			send_one();
		assert_false(waits_for_room());
		roci_local_flush(&writer.local);
		assert_true(roci_local_sleeps(&writer.local));
		assert_int_equal(receive_all(&reader), 20);
		assert_false(roci_local_wakeup_came(&writer.local));
		assert_false(wakeup_is_at_the_door(&writer));
		roci_local_awake(&writer.local);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_makes_room_wakes_who_waits_for_it, begin, finish),
		cmocka_unit_test_setup_teardown(nobody_wakes_who_waits_for_nothing, begin, finish),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
