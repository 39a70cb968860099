/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of a path nearby, after packets were lost in a queue that was full. */
#include "../test.h"

#include "engine/path.h"

#define MS     UINT64_C(1000000)
#define NOW    (1000 * MS)
#define WINDOW (UINT64_C(128) << 10)

/* A round trip in which the window was full. Returns by how much it has grown. */
static uint64_t round_trip(struct roci_path *p)
{
	uint64_t before = p->cwnd;

	p->flight = before;
	for (unsigned i = 0; i < 16; i++)
		roci_path_acked(p, NOW, before / 16, NULL);
	return p->cwnd - before;
}

static struct roci_path path(uint64_t rtt_ns)
{
	return (struct roci_path){.cwnd = WINDOW, .ssthresh = WINDOW, .srtt = rtt_ns, .base_rtt = rtt_ns};
}

static void it_grows_slowly_where_packets_were_lost(void **state)
{
	struct roci_path p = path(MS / 2);
	unsigned fast = 0, slow = 0;

	assert_in_range(round_trip(&p), 4000, 4096);
	p.cwnd = WINDOW;
	roci_path_lost(&p, NOW, 1024, NULL, 0);
	assert_int_equal(p.cwnd, WINDOW / 2);
	for (; p.cwnd < WINDOW - WINDOW / 8 - 4096; fast++)
		assert_in_range(round_trip(&p), 3900, 4096);
	assert_in_range(fast, 10, 14);
	round_trip(&p);
	for (; p.cwnd <= WINDOW; slow++)
		assert_in_range(round_trip(&p), 1, 256);
	assert_in_range(slow, 64, 80);
	p.cwnd = WINDOW + WINDOW / 8 + 1; /* the queue must be another one by now */
	assert_in_range(round_trip(&p), 4000, 4096);
}

/* There packets are lost by chance, and a round trip takes longer. */
static void it_does_not_where_the_path_is_far(void **state)
{
	struct roci_path p = path(20 * MS);

	roci_path_lost(&p, NOW, 1024, NULL, 0);
	p.cwnd = p.flight = WINDOW;
	roci_path_acked(&p, NOW, WINDOW / 16, NULL);
	assert_int_equal(p.cwnd - WINDOW, 4096 / 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows_slowly_where_packets_were_lost),
		cmocka_unit_test(it_does_not_where_the_path_is_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
