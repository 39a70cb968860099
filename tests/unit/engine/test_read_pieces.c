/* SPDX-License-Identifier: BSD-2-Clause */
/* A READ is asked for in pieces: as large as the window allows when it begins, and the same when it is repeated. */
#include "pair.h"

#include <string.h>

#include "engine/psn.h"

#define MS       UINT64_C(1000000)
#define REQUESTS 256

/* The READ requests that were sent, and which response is lost. */
static struct {
	unsigned count, again;
	uint32_t psn[REQUESTS], end[REQUESTS];
	unsigned lose; /* the nth response from now on; 0: none */
} seen;

static uint32_t packets_of(const struct roci_packet *pkt)
{
	return (pkt->dma_len + PAIR_MTU - 1) / PAIR_MTU;
}

/* IBTA 9.7.5.2.1: a READ that is repeated is one that the responder knows, or its tail. */
static void check_tail(const struct roci_packet *pkt, uint32_t end)
{
	for (unsigned i = 0; i < seen.count; i++) {
		if (roci_psn_diff(pkt->psn, seen.psn[i]) < 0 || roci_psn_diff(pkt->psn, seen.end[i]) >= 0)
			continue;
		assert_int_equal(end, seen.end[i]);
		seen.again++;
		return;
	}
	assert_true(seen.count < REQUESTS);
	seen.psn[seen.count] = pkt->psn;
	seen.end[seen.count++] = end;
}

static bool watch(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (pkt->op->kind == ROCI_KIND_READ_REQUEST)
		check_tail(pkt, roci_psn_add(pkt->psn, packets_of(pkt)));
	return pkt->op->kind != ROCI_KIND_READ_RESPONSE || !seen.lose || --seen.lose;
}

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.timeout = 14;
	p = pair_create(&o);
	memset(&seen, 0, sizeof(seen));
	p->filter = watch;
	for (unsigned i = 0; i < PAIR_MEMORY; i++)
		p->side[1].memory[i] = (uint8_t)(i * 7 + i / 251);
	return p;
}

static void read_all(struct pair *p)
{
	memset(p->side[0].memory, 0, PAIR_MEMORY);
	seen.count = seen.again = 0;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, PAIR_MEMORY, 0);
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, PAIR_MEMORY);
}

/* The window of a near path begins with 128 KiB, of which packets of 256 bytes take 512 each. */
static void pieces_are_a_quarter_of_the_window_at_most(void **state)
{
	struct pair *p = make();

	read_all(p); /* nobody knows yet how far the peer is */
	assert_int_equal(seen.count, PAIR_MEMORY / PAIR_MTU / 16);
	read_all(p);
	assert_int_equal(seen.count, PAIR_MEMORY / PAIR_MTU / 64);
	assert_int_equal(seen.again, 0);
	pair_free(p);
}

static void pieces_are_smaller_where_packets_are_lost(void **state)
{
	struct pair *p = make();

	for (int i = 0; i < 8; i++) {
		seen.lose = 40;
		read_all(p);
		assert_true(seen.again > 0);
	}
	read_all(p);
	assert_true(seen.count > PAIR_MEMORY / PAIR_MTU / 64);
	assert_true(seen.count <= PAIR_MEMORY / PAIR_MTU / 16);
	pair_free(p);
}

/* The window is cut between: the request keeps its pieces. */
static void a_repeated_request_is_the_tail_of_one_that_was_sent(void **state)
{
	for (unsigned lose = 1; lose <= 256; lose++) {
		struct pair *p = make();

		seen.lose = lose;
		read_all(p);
		assert_true(seen.again > 0);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_a_quarter_of_the_window_at_most),
		cmocka_unit_test(pieces_are_smaller_where_packets_are_lost),
		cmocka_unit_test(a_repeated_request_is_the_tail_of_one_that_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
