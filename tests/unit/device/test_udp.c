#include "bench.h"

#include <string.h>

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

/* Sends what is in `out` from a to b; returns the PSNs in order of arrival, `count` of them. */
static void exchange(struct station *a, struct station *b, unsigned count)
{
	unsigned got = 0;

	outgoing_send(&out, a->link);
	while (got < count) {
		unsigned n = station_wait(b, in);

		assert_true(n > 0);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(check_datagram(&in[i]), got++);
	}
	assert_int_equal(got, count);
}

static void open_pair(struct station *a, const char *a_addr, struct station *b, const char *b_addr)
{
	station_open(a, a_addr);
	station_open(b, b_addr);
	assert_int_equal(roci_udp_listen(a->udp, 0), 0);
	assert_int_equal(roci_udp_listen(b->udp, 0), 0);
}

static void close_pair(struct station *a, struct station *b)
{
	station_close(a);
	station_close(b);
}

static void a_batch_goes_in_few_messages(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
		outgoing_add(&out, 0x12345, i, 1024);
	exchange(&a, &b, ROCI_LINK_SEND_BATCH);
	/* 64 packets of 1,040 bytes: 62 fit in 65,000. */
	assert_int_equal(a.stats.sent_messages, 2);
	assert_int_equal(a.stats.sent_packets, ROCI_LINK_SEND_BATCH);
	assert_int_equal(b.stats.received_packets, ROCI_LINK_SEND_BATCH);
	assert_int_equal(a.stats.send_dropped, 0);
	close_pair(&a, &b);
}

/* PROTOCOL.md s.8: segment i of a GSO send has identification i, a datagram of its own 0. */
static void identification_is_the_place_in_the_run(void **state)
{
	static const unsigned sizes[] = {4096, 4096, 4096, 100, 200, 200, 0, 4096};
	static const unsigned ids[] = {0, 1, 2, 3, 0, 1, 2, 0};
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, sizes[i]);
	exchange(&a, &b, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(out.frames[i].ip_id, ids[i]);
	assert_int_equal(a.stats.sent_messages, 3);
	close_pair(&a, &b);
}

static void every_length_arrives(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	for (unsigned len = 0; len < 4096; len += ROCI_LINK_SEND_BATCH) {
		outgoing_start(&out, &a, "127.77.0.2");
		for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
			outgoing_add(&out, 0x12345, i, len + i);
		exchange(&a, &b, ROCI_LINK_SEND_BATCH);
	}
	close_pair(&a, &b);
}

static void ipv6_too(void **state)
{
	struct station a;

	station_open(&a, "::1");
	if (roci_udp_listen(a.udp, 0)) {
		station_close(&a);
		skip();
	}
	outgoing_start(&out, &a, "::1");
	for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
		outgoing_add(&out, a.registry.slot << ROCI_SLOT_SHIFT, i, 2048);
	exchange(&a, &a, ROCI_LINK_SEND_BATCH);
	station_close(&a);
}

static void traffic_class_and_hops_are_seen(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.traffic_class = 0x6a;
	out.av.hop_limit = 17;
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(&a, &b, 1);
	assert_int_equal(in[0].from->traffic_class, 0x6a);
	assert_int_equal(in[0].from->hop_limit, 17);
	assert_int_equal(in[0].from->flow.src_port, ROCI_UDP_PORT);
	assert_memory_equal(in[0].from->flow.src, a.gid.gid, 16);
	assert_memory_equal(in[0].from->flow.dst, b.gid.gid, 16);

	/* 1 is what programs write who do not mean it. */
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.hop_limit = 1;
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(&a, &b, 1);
	assert_int_equal(in[0].from->hop_limit, 64);
	close_pair(&a, &b);
}

static void a_group_reaches_all_its_members(void **state)
{
	struct station a, b;
	uint8_t group[16], other[16];

	gid_of("239.77.1.2", group);
	gid_of("10.0.0.1", other);
	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	assert_int_equal(roci_udp_join(a.udp, other), -EINVAL);
	assert_int_equal(roci_udp_leave(a.udp, group), -EINVAL);
	assert_int_equal(roci_udp_join(a.udp, group), 0);
	assert_int_equal(roci_udp_join(b.udp, group), 0);
	assert_int_equal(roci_udp_join(b.udp, group), 0);
	outgoing_start(&out, &a, "239.77.1.2");
	outgoing_add(&out, ROCI_QPN_MULTICAST, 0, 100);
	exchange(&a, &a, 1);
	assert_memory_equal(in[0].from->flow.dst, group, 16);
	assert_int_equal(station_wait(&b, in), 1);

	assert_int_equal(roci_udp_leave(b.udp, group), 0);
	exchange(&a, &b, 1);
	assert_int_equal(station_wait(&a, in), 1);
	assert_int_equal(roci_udp_leave(b.udp, group), 0);
	exchange(&a, &a, 1);
	assert_int_equal(station_wait(&b, in), 0);
	close_pair(&a, &b);
}

static void what_cannot_be_sent_is_counted(void **state)
{
	struct station a;

	station_open(&a, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	outgoing_start(&out, &a, "192.0.2.77"); /* from a loopback address: no way */
	for (unsigned i = 0; i < 5; i++)
		outgoing_add(&out, 0x12345, i, 100);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.send_dropped, 5);
	station_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_goes_in_few_messages),
		cmocka_unit_test(identification_is_the_place_in_the_run),
		cmocka_unit_test(every_length_arrives),
		cmocka_unit_test(ipv6_too),
		cmocka_unit_test(traffic_class_and_hops_are_seen),
		cmocka_unit_test(a_group_reaches_all_its_members),
		cmocka_unit_test(what_cannot_be_sent_is_counted),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
