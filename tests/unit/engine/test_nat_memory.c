/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP that is to cross a NAT, and finds no memory. Apart from test_nat.c, since scripts/mutate.py cannot run it: the
 * linker wraps calloc() in static libraries only.
 */
#include "pair.h"

#include <errno.h>

#include "engine/qp.h"
#include "wire/gid.h"

#define OPEN 1 /* the side that is not behind the NAT */

static struct pair *connection(void)
{
	struct pair_options o = pair_defaults();

	o.nat.port = 40001;
	roci_gid_from_ipv4(o.nat.gid, (uint8_t[]){203, 0, 113, 7});
	return pair_create(&o);
}

static unsigned fail_at;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return fail_at && !--fail_at ? NULL : __real_calloc(count, size);
}

/* Each allocation fails once. The QP is in INIT still, and the next attempt finds nothing of the last one. */
static void a_qp_that_gets_no_memory_stays_as_it_was(void **state)
{
	struct pair *p = connection();
	struct roci_qp *qp = p->side[OPEN].qp;
	struct roci_nat_terms terms, now;
	struct roci_qp_attr a, reset = {.state = ROCI_QPS_RESET};
	struct roci_qp_cap cap;
	unsigned refused = 0;
	uint8_t gid[16];
	int err = -ENOMEM;

	roci_qp_query(qp, &a, &cap);
	assert_true(roci_engine_nat_terms(p->side[OPEN].e, 101, &terms, gid));
	a.av.nat = NULL;
	assert_int_equal(roci_qp_modify(qp, p->now, &reset, ROCI_QP_STATE), 0);
	a.state = ROCI_QPS_INIT;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	a.state = ROCI_QPS_RTR;
	for (unsigned i = 1; err; i++) {
		fail_at = i;
		err = roci_qp_cross_nat(qp, &terms);
		err = err ? err
			  : roci_qp_modify(qp, p->now, &a,
					   ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						   ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER);
		fail_at = 0;
		if (!err)
			break;
		refused++;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(roci_qp_state(qp), ROCI_QPS_INIT);
		assert_false(roci_engine_nat_terms(p->side[OPEN].e, 101, &now, gid));
		assert_null(roci_engine_nat_flow(p->side[OPEN].e, 101));
	}
	assert_true(refused >= 3); /* the ring of responses, what the NAT needs, the path */
	assert_true(roci_engine_nat_terms(p->side[OPEN].e, 101, &now, gid));
	assert_non_null(roci_engine_nat_flow(p->side[OPEN].e, 101));
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_qp_that_gets_no_memory_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
