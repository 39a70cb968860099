/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets one receive takes, with a link and an engine that only pretend. */
#include "../test.h"

#include "device/device_state.h"
#include "device/nat.h"

#define NOW UINT64_C(1000)

static struct roci_device dev;
static struct roci_stats_file file;
static unsigned arrived; /* packets that the next read of the link brings */
static unsigned reads;
static unsigned taken;  /* by the engine */
static unsigned events; /* the engine has, since it took the packet that brings one */
static unsigned brings; /* the number of that packet, from 1 */
static struct roci_arrival from;
static uint8_t bytes[64];

enum roci_parse_result __wrap_roci_packet_parse(struct roci_packet *pkt, const uint8_t *packet, size_t len);
enum roci_nat_arrival __wrap_roci_nat_judge(const struct roci_device *d, const struct roci_datagram *datagram,
					    const struct roci_packet *pkt, struct roci_hello *claim);
void __wrap_roci_engine_rx(struct roci_engine *e, uint64_t now, const struct roci_rx *rx);
bool __wrap_roci_engine_has_event(const struct roci_engine *e);

static unsigned link_recv(struct roci_link *link, struct roci_datagram *out)
{
	unsigned n = arrived;

	reads++;
	arrived = 0;
	for (unsigned i = 0; i < n; i++)
		out[i] = (struct roci_datagram){.bytes = bytes, .len = sizeof(bytes), .from = &from};
	return n;
}

enum roci_parse_result __wrap_roci_packet_parse(struct roci_packet *pkt, const uint8_t *packet, size_t len)
{
	static const struct roci_opcode_info op = {.kind = ROCI_KIND_SEND};

	*pkt = (struct roci_packet){.op = &op, .dest_qpn = roci_dest_qpn(packet)};
	return ROCI_PARSE_OK;
}

enum roci_nat_arrival __wrap_roci_nat_judge(const struct roci_device *d, const struct roci_datagram *datagram,
					    const struct roci_packet *pkt, struct roci_hello *claim)
{
	return ROCI_NAT_NONE;
}

void __wrap_roci_engine_rx(struct roci_engine *e, uint64_t now, const struct roci_rx *rx)
{
	if (++taken == brings)
		events = 1;
}

bool __wrap_roci_engine_has_event(const struct roci_engine *e)
{
	return events;
}

static int reset(void **state)
{
	static const struct roci_link_ops ops = {.recv = link_recv};
	static struct roci_link link = {.ops = &ops};

	arrived = reads = taken = events = brings = 0;
	dev.links.top = &link;
	dev.stats_map.file = &file;
	dev.receive.kept.bytes = NULL;
	dev.receive.may_keep = true;
	dev.receive.door_at = NOW;
	dev.receive.door_check_in = 100;
	memset(bytes, 0xff, sizeof(bytes)); /* for QP 0xffffff: everybody's */
	return 0;
}

static void the_packet_behind_an_event_is_kept_for_the_next_receive(void **state)
{
	arrived = 2;
	brings = 1;
	assert_int_equal(roci_receive(&dev, NOW), 1);
	assert_int_equal(taken, 1);
	arrived = 1; /* another one meanwhile: it comes behind */
	assert_int_equal(roci_receive(&dev, NOW), 1);
	assert_int_equal(taken, 2);
	assert_int_equal(reads, 1);
	assert_int_equal(roci_receive(&dev, NOW), 1);
	assert_int_equal(taken, 3);
}

static void nothing_is_kept_without_an_event(void **state)
{
	arrived = 2;
	assert_int_equal(roci_receive(&dev, NOW), 2);
	arrived = 2;
	brings = 4; /* the second of them */
	assert_int_equal(roci_receive(&dev, NOW), 2);
	assert_int_equal(taken, 4);
	assert_null(dev.receive.kept.bytes);
}

static void a_stream_is_taken_at_once(void **state)
{
	arrived = 3;
	brings = 1;
	assert_int_equal(roci_receive(&dev, NOW), 3);
	dev.receive.may_keep = false;
	arrived = 2;
	brings = 4;
	assert_int_equal(roci_receive(&dev, NOW), 2);
	assert_int_equal(taken, 5);
}

static void what_was_kept_is_taken_once(void **state)
{
	arrived = 2;
	brings = 1;
	assert_int_equal(roci_receive(&dev, NOW), 1);
	roci_receive_kept(&dev, NOW);
	assert_int_equal(taken, 2);
	roci_receive_kept(&dev, NOW);
	assert_int_equal(taken, 2);
	assert_int_equal(roci_receive(&dev, NOW), 0);
	assert_int_equal(reads, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_packet_behind_an_event_is_kept_for_the_next_receive, reset),
		cmocka_unit_test_setup(nothing_is_kept_without_an_event, reset),
		cmocka_unit_test_setup(a_stream_is_taken_at_once, reset),
		cmocka_unit_test_setup(what_was_kept_is_taken_once, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
