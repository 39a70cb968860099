/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "perf/warnings.h"

#define SECOND UINT64_C(1000000000)

static const struct perf_order order = {.phase = PERF_BANDWIDTH, .size = 65536, .time_ms = 1000};

/* Two quiet ends, which each spend one CPU on the measurement. */
static struct perf_facts quiet(void)
{
	return (struct perf_facts){.spent = {.wall_ns = SECOND, .cpu_ns = SECOND, .busy_ns = SECOND + SECOND / 20},
				   .cpus = 4,
				   .mtu = 4096};
}

static const struct warning *find(const struct warnings *w, const char *kind)
{
	for (size_t i = 0; i < w->count; i++) {
		if (!strcmp(w->list[i].kind, kind))
			return &w->list[i];
	}
	return NULL;
}

static void quiet_ends_are_not_warned_of(void **state)
{
	struct perf_facts near = quiet(), far = quiet();
	struct warnings w;

	warnings_judge(&w, &order, &near, &far, false);
	assert_int_equal(w.count, 0);
	near.spent.busy_ns = 2 * SECOND; /* of one machine: both ends' own */
	warnings_judge(&w, &order, &near, &far, true);
	assert_int_equal(w.count, 0);
}

static void busy_cpus(void **state)
{
	struct perf_facts near = quiet(), far = quiet();
	struct warnings w;

	near.spent.busy_ns = 3 * SECOND;
	warnings_judge(&w, &order, &near, &far, false);
	assert_non_null(find(&w, "busy"));
	assert_non_null(strstr(find(&w, "busy")->text, "here, other programs kept 2.0 of 4 CPUs busy"));
	near = quiet();
	far.spent.busy_ns = 2 * SECOND;
	warnings_judge(&w, &order, &near, &far, false);
	assert_non_null(strstr(find(&w, "busy")->text, "there, "));
	near.spent.wall_ns = SECOND / 100; /* too short for /proc/stat */
	far = quiet();
	warnings_judge(&w, &order, &near, &far, false);
	assert_null(find(&w, "busy"));
}

static void small_mtu(void **state)
{
	struct perf_facts near = quiet(), far = quiet();
	struct perf_order small = order;
	struct warnings w;

	far.mtu = 1024;
	warnings_judge(&w, &order, &near, &far, false);
	assert_non_null(strstr(find(&w, "mtu")->text, "1024 bytes only"));
	small.size = 64; /* fits anyway */
	warnings_judge(&w, &small, &near, &far, false);
	assert_null(find(&w, "mtu"));
}

static void losses(void **state)
{
	struct perf_facts near = quiet(), far = quiet();
	struct perf_order tcp = order;
	struct warnings w;

	near.spent.device = (struct perf_counters){.retransmissions = 5, .not_ready = 6, .dropped = 7};
	far.spent.device.out_of_order = 8;
	far.spent.udp_overflow = 9;
	near.spent.tcp_resent = 10;
	near.spent.preempted = 500;
	warnings_judge(&w, &order, &near, &far, false);
	assert_non_null(strstr(find(&w, "retransmissions")->text, "here, 5 packets"));
	assert_non_null(strstr(find(&w, "not-ready")->text, "6 messages"));
	assert_non_null(strstr(find(&w, "dropped")->text, "7 packets"));
	assert_non_null(strstr(find(&w, "gaps")->text, "there, 8 packets"));
	assert_non_null(strstr(find(&w, "socket-drops")->text, "there, 9 datagrams"));
	assert_non_null(strstr(find(&w, "preempted")->text, "500 times"));
	assert_null(find(&w, "tcp-retransmissions")); /* it was not TCP that was measured */
	tcp.phase = PERF_TCP_BANDWIDTH;
	warnings_judge(&w, &tcp, &near, &far, false);
	assert_non_null(find(&w, "tcp-retransmissions"));
	assert_null(find(&w, "socket-drops"));
}

static void others(void **state)
{
	struct perf_facts near = quiet(), far = quiet();
	struct warnings w;

	far.clients = 2;
	near.powersave = 1;
	near.spent.steal_ns = SECOND;
	warnings_judge(&w, &order, &near, &far, false);
	assert_non_null(strstr(find(&w, "clients")->text, "2 others"));
	assert_non_null(find(&w, "powersave"));
	assert_non_null(strstr(find(&w, "steal")->text, "25 %"));
}

/* Whatever the other end claims, the list is bounded. */
static void everything_at_once(void **state)
{
	struct perf_facts all;
	struct warnings w;

	memset(&all, 0x7f, sizeof(all));
	all.spent.wall_ns = SECOND;
	all.cpus = 0;
	warnings_judge(&w, &order, &all, &all, false);
	assert_in_range(w.count, 6, WARNINGS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_ends_are_not_warned_of),
		cmocka_unit_test(busy_cpus),
		cmocka_unit_test(small_mtu),
		cmocka_unit_test(losses),
		cmocka_unit_test(others),
		cmocka_unit_test(everything_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
