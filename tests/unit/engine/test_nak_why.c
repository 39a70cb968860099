/* SPDX-License-Identifier: BSD-2-Clause */
/* `roci run --why` says what a peer answered, and where the request went, if it went to memory. */
#include "pair.h"

#include <stdio.h>
#include <string.h>

#include "engine/why.h"

static char told[1000];

static void sink(const char *line)
{
	snprintf(told, sizeof(told), "%s", line);
}

/* Side 1 refuses; side 0 is the last to tell. */
static void be_refused(enum roci_wr_opcode opcode)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	told[0] = 0;
	p->side[1].key = opcode == ROCI_WR_SEND ? 0 : p->side[1].key ^ 0x5a00; /* of no region; a SEND has none */
	p->side[1].recv_key ^= 0x5a00;
	pair_recv(p, 1, 7, 0, 100);
	assert_int_equal(pair_send(p, 0, opcode, 1, 0, 10, 0x40), 0);
	pair_run(p);
	pair_free(p);
}

static void a_refused_write_says_where_it_went(void **state)
{
	be_refused(ROCI_WR_RDMA_WRITE);
	assert_non_null(strstr(told, "answered"));
	assert_non_null(strstr(told, "remote_addr 0x"));
	assert_non_null(strstr(told, "rkey 0x"));
}

static void a_refused_send_went_to_no_place(void **state)
{
	be_refused(ROCI_WR_SEND);
	assert_non_null(strstr(told, "answered"));
	assert_null(strstr(told, "remote_addr"));
}

static int setup(void **state)
{
	roci_why_on = true;
	roci_why_sink = sink;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_write_says_where_it_went),
		cmocka_unit_test(a_refused_send_went_to_no_place),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
