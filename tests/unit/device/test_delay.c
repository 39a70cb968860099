/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "device/delay.h"

#define MS      1000000u
#define LENGTHS 9000

/* A link that delivers `ready` packets at the next receive. Each has its number and a length of its own; its bytes and
 * the port that it comes from tell which it is. */
struct source {
	struct roci_link link;
	unsigned ready, made, closed;
	struct roci_arrival from[ROCI_LINK_RECV_BATCH];
	uint8_t bytes[ROCI_LINK_RECV_BATCH][LENGTHS + 4];
};

static uint32_t length_of(unsigned number)
{
	return 4 + number * 7919 % LENGTHS;
}

static void fill(uint8_t *bytes, unsigned number)
{
	memset(bytes, (int)(number * 31 & 0xff), length_of(number));
	memcpy(bytes, &number, 4);
}

static unsigned source_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct source *s = (struct source *)link;
	unsigned count = s->ready;

	for (unsigned i = 0; i < count; i++, s->made++) {
		s->from[i].flow.src_port = (uint16_t)s->made;
		fill(s->bytes[i], s->made);
		out[i] = (struct roci_datagram){.bytes = s->bytes[i], .from = &s->from[i], .len = length_of(s->made)};
	}
	s->ready = 0;
	return count;
}

static void source_close(struct roci_link *link)
{
	((struct source *)link)->closed++;
}

static const struct roci_link_ops source_ops = {.recv = source_recv, .close = source_close};
static struct source source;
static struct roci_datagram out[ROCI_LINK_RECV_BATCH];
static struct roci_device_stats stats;
static struct roci_link *link;

static void open_delay(uint64_t delay_ns, uint64_t jitter_ns)
{
	struct roci_fault_plan plan = {.delay_ns = delay_ns, .jitter_ns = jitter_ns, .seed = 1};

	memset(&stats, 0, sizeof(stats));
	memset(&source, 0, sizeof(source));
	source.link.ops = &source_ops;
	assert_int_equal(roci_delay_open(&source.link, &plan, &stats, &link), 0);
}

static uint64_t clock_ns;

uint64_t __wrap_roci_now(void);
uint64_t __wrap_roci_now(void)
{
	return clock_ns;
}

static unsigned receive(uint64_t now, unsigned ready)
{
	clock_ns = now;
	source.ready = ready;
	return roci_link_recv(link, out);
}

/* out[i] is packet `number`, whole. */
static void check_packet(unsigned i, unsigned number)
{
	uint8_t expected[LENGTHS + 4];

	fill(expected, number);
	assert_int_equal(out[i].len, length_of(number));
	assert_memory_equal(out[i].bytes, expected, out[i].len);
	assert_int_equal(out[i].from->flow.src_port, (uint16_t)number);
	assert_true(out[i].from->delayed);
}

static void packets_come_at_their_time(void **state)
{
	open_delay(20 * MS, 0);
	assert_true(roci_delay_deadline(link) == ROCI_NEVER);
	assert_int_equal(receive(100 * MS, 3), 0);
	assert_int_equal(roci_delay_deadline(link), 120 * MS);
	assert_int_equal(receive(110 * MS, 2), 0);
	assert_int_equal(receive(120 * MS - 1, 0), 0);
	assert_int_equal(receive(120 * MS, 1), 3);
	for (unsigned i = 0; i < 3; i++)
		check_packet(i, i);
	assert_int_equal(roci_delay_deadline(link), 130 * MS);
	assert_int_equal(receive(200 * MS, 0), 3);
	for (unsigned i = 0; i < 3; i++)
		check_packet(i, 3 + i);
	assert_true(roci_delay_deadline(link) == ROCI_NEVER);
	assert_int_equal(stats.fault_receive_delayed, 6);
	roci_link_close(link);
	assert_int_equal(source.closed, 1);
}

/* The ring is gone through several times, nearly full. */
static void nothing_is_mixed_up(void **state)
{
	unsigned expected = 0, n;

	open_delay(100, 0);
	for (uint64_t now = 1; source.made < 50000; now++) {
		n = receive(now, 128);
		for (unsigned i = 0; i < n; i++)
			check_packet(i, expected++);
	}
	assert_int_equal(stats.fault_receive_lost, 0);
	assert_int_equal(source.made - expected, 100 * 128);
	roci_link_close(link);
}

static void what_does_not_fit_is_lost(void **state)
{
	unsigned held, last = 0, number;

	open_delay(MS, 0);
	while (!stats.fault_receive_lost)
		assert_int_equal(receive(0, 128), 0);
	held = (unsigned)stats.fault_receive_delayed;
	assert_int_equal(held + stats.fault_receive_lost, source.made);
	assert_in_range(held, ROCI_DELAY_BYTES / (LENGTHS / 2 + 200), ROCI_DELAY_BYTES / (LENGTHS / 2));
	for (unsigned i = 0, n; i < held; i += n) {
		n = receive(MS, 0);
		assert_true(n > 0);
		for (unsigned k = 0; k < n; k++) {
			memcpy(&number, out[k].bytes, 4);
			assert_true(!i || number > last);
			check_packet(k, number);
			last = number;
		}
	}
	assert_int_equal(receive(2 * MS, 1), 0); /* there is room again */
	assert_int_equal(receive(3 * MS, 0), 1);
	check_packet(0, source.made - 1);
	roci_link_close(link);
}

static void jitter_adds_and_keeps_the_order(void **state)
{
	unsigned expected = 0, early = 0, late = 0;
	uint64_t least = 2 * MS, most = 3 * MS, now;

	open_delay(least, most - least);
	for (unsigned tick = 0; tick < 2000; tick++) {
		now = MS + tick * 50000ull;
		unsigned n = receive(now, 1);
		for (unsigned i = 0; i < n; i++, expected++) {
			uint64_t took = now - (MS + expected * 50000ull);
			check_packet(i, expected);
			assert_in_range(took, least, most + 50000);
			early += took < least + (most - least) / 3;
			late += took > most - (most - least) / 3;
		}
	}
	assert_true(early > 100 && late > 100);
	roci_link_close(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_at_their_time),
		cmocka_unit_test(nothing_is_mixed_up),
		cmocka_unit_test(what_does_not_fit_is_lost),
		cmocka_unit_test(jitter_adds_and_keeps_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
