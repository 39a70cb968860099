/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>

#include "engine/mr.h"

#define ALL (ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_MW_BIND)

static char memory[4096];

static struct roci_mr *region(struct roci_engine *e, uint32_t key, uint32_t access)
{
	struct roci_mr_attr a = {.pd = 1, .key = key, .base = memory, .iova = 0x10000, .len = 4096, .access = access};
	struct roci_mr *mr;

	assert_int_equal(roci_mr_create(e, &a, &mr), 0);
	return mr;
}

/* 16 bytes of the region 0x55501, for the window 0x66600. */
static struct roci_bind window(uint32_t access)
{
	return (struct roci_bind){
		.addr = 0x10010, .len = 16, .mw_key = 0x66600, .mr_key = 0x55501, .rkey = 0x66601, .access = access};
}

static void ranges_do_not_overflow(void **state)
{
	struct roci_engine *e = roci_engine_create();

	region(e, 0x55501, ALL);
	assert_ptr_equal(roci_mr_local(e, 1, 0x55501, 0x10000, 4096, 0), memory);
	assert_ptr_equal(roci_mr_remote(e, 1, 9, 0x55501, 0x10fff, 1, ROCI_ACCESS_REMOTE_READ), memory + 4095);
	assert_null(roci_mr_local(e, 1, 0x55501, 0x10000, 4097, 0));
	assert_null(roci_mr_local(e, 1, 0x55501, 0xffff, 1, 0));
	assert_null(roci_mr_local(e, 1, 0x55501, 0x11000, 1, 0));
	assert_null(roci_mr_local(e, 1, 0x55501, 0x10001, UINT64_MAX, 0));
	assert_null(roci_mr_remote(e, 1, 9, 0x55501, UINT64_MAX, 2, ROCI_ACCESS_REMOTE_READ));
	roci_engine_destroy(e);
}

static void key_pd_and_right_must_match(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr_attr bad = {.pd = 1, .key = 0x77701, .len = 1, .access = ROCI_ACCESS_REMOTE_WRITE};
	struct roci_mr *mr = region(e, 0x55501, ROCI_ACCESS_REMOTE_READ), *other;

	assert_null(roci_mr_local(e, 1, 0x55502, 0x10000, 1, 0)); /* variant of the key */
	assert_null(roci_mr_local(e, 2, 0x55501, 0x10000, 1, 0));
	assert_null(roci_mr_local(e, 1, 0x55501, 0x10000, 1, ROCI_ACCESS_LOCAL_WRITE));
	assert_null(roci_mr_remote(e, 1, 9, 0x55501, 0x10000, 1, ROCI_ACCESS_REMOTE_WRITE));
	assert_int_equal(roci_mr_create(e, &bad, &other), -EINVAL); /* remote write without local write */
	bad.key = 0x55599;
	bad.access = 0;
	assert_int_equal(roci_mr_create(e, &bad, &other), -EEXIST);
	assert_int_equal(roci_mr_destroy(mr), 0);
	assert_null(roci_mr_local(e, 1, 0x55501, 0x10000, 1, 0));
	roci_engine_destroy(e);
}

/* IBTA 10.6.7.2 */
static void type_2_window_lives_with_its_qp(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr *mr = region(e, 0x55501, ALL);
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ);
	struct roci_mw *mw;

	assert_int_equal(roci_mw_create(e, 1, 2, 0x66600, &mw), 0);
	assert_null(roci_mr_remote(e, 1, 9, 0x66600, 0x10010, 1, ROCI_ACCESS_REMOTE_READ));
	assert_int_equal(roci_mw_bind(e, 2, 9, &b), -EINVAL);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(roci_mw_rkey(mw), 0x66601);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), -EINVAL); /* bound already */
	assert_ptr_equal(roci_mr_remote(e, 1, 9, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_READ), memory + 16);
	assert_null(roci_mr_remote(e, 1, 8, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_READ)); /* other QP */
	assert_null(roci_mr_remote(e, 2, 9, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_READ)); /* other PD */
	assert_null(roci_mr_remote(e, 1, 9, 0x66601, 0x1000f, 16, ROCI_ACCESS_REMOTE_READ));
	assert_null(roci_mr_remote(e, 1, 9, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_WRITE));
	assert_int_equal(roci_mr_destroy(mr), -EBUSY);
	assert_int_equal(roci_mw_invalidate(e, 1, 8, 0x66601), -EINVAL);
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0x66601), 0);
	assert_null(roci_mr_remote(e, 1, 9, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_READ));
	assert_int_equal(roci_mr_destroy(mr), 0);
	roci_engine_destroy(e);
}

static struct roci_qp *qp_of_number(struct roci_engine *e, struct roci_cq *cq, uint32_t qpn)
{
	struct roci_qp_init init = {.type = ROCI_QPT_RC,
				    .qpn = qpn,
				    .pd = 1,
				    .send_cq = cq,
				    .recv_cq = cq,
				    .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct roci_qp *qp;

	assert_int_equal(roci_qp_create(e, &init, &qp), 0);
	return qp;
}

/* A destroyed QP leaves its windows unbound: the next QP of its number does not have them, and the region is free. */
static void type_2_window_is_unbound_with_its_qp(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr *mr = region(e, 0x55501, ALL);
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ), other = b;
	struct roci_cq *cq;
	struct roci_qp *qp, *neighbour;
	struct roci_mw *mw, *others;

	assert_int_equal(roci_cq_create(e, 4, NULL, &cq), 0);
	qp = qp_of_number(e, cq, 9);
	neighbour = qp_of_number(e, cq, 8);
	assert_int_equal(roci_mw_create(e, 1, 2, 0x66600, &mw), 0);
	assert_int_equal(roci_mw_create(e, 1, 2, 0x77700, &others), 0);
	other.mw_key = 0x77700;
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(roci_mw_bind(e, 1, 8, &other), 0);
	roci_qp_destroy(qp);
	qp = qp_of_number(e, cq, 9);
	assert_null(roci_mr_remote(e, 1, 9, 0x66601, 0x10010, 16, ROCI_ACCESS_REMOTE_READ));
	assert_non_null(roci_mr_remote(e, 1, 8, 0x77701, 0x10010, 16, ROCI_ACCESS_REMOTE_READ));
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0); /* again, by the new one */
	assert_int_equal(roci_mw_destroy(mw), 0);
	assert_int_equal(roci_mr_destroy(mr), -EBUSY);
	roci_qp_destroy(neighbour);
	assert_int_equal(roci_mr_destroy(mr), 0);
	roci_qp_destroy(qp);
	roci_engine_destroy(e);
}

/* In ERR and RESET it takes no packets, so nobody reaches them. It has them still when it is connected again, as with
 * Soft-RoCE, and the program may invalidate them. */
static void type_2_window_outlives_a_reset_of_its_qp(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr *mr = region(e, 0x55501, ALL);
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ);
	struct roci_qp_attr a = {.state = ROCI_QPS_INIT, .port_num = 1};
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mw *mw;

	assert_int_equal(roci_cq_create(e, 4, NULL, &cq), 0);
	qp = qp_of_number(e, cq, 9);
	assert_int_equal(roci_mw_create(e, 1, 2, 0x66600, &mw), 0);
	assert_int_equal(
		roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	a.state = ROCI_QPS_ERR;
	assert_int_equal(roci_qp_modify(qp, 2, &a, ROCI_QP_STATE), 0);
	a.state = ROCI_QPS_RESET;
	assert_int_equal(roci_qp_modify(qp, 3, &a, ROCI_QP_STATE), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), -EINVAL); /* bound already */
	assert_int_equal(roci_mr_destroy(mr), -EBUSY);
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0x66601), 0);
	assert_int_equal(roci_mr_destroy(mr), 0);
	roci_engine_destroy(e);
}

/* The program says only the low 8 bits of the new key. */
static void bind_takes_the_low_8_bits_of_the_rkey(void **state)
{
	static const uint32_t rkeys[] = {0xba, 0x12345602, 0xffffffff};

	for (size_t i = 0; i < sizeof(rkeys) / sizeof(rkeys[0]); i++) {
		for (int type = 1; type <= 2; type++) {
			struct roci_engine *e = roci_engine_create();
			struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ);
			uint32_t key = 0x66600 | (rkeys[i] & 0xff);
			struct roci_mw *mw;

			region(e, 0x55501, ALL);
			b.rkey = rkeys[i];
			assert_int_equal(roci_mw_create(e, 1, type, 0x66600, &mw), 0);
			assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
			assert_int_equal(roci_mw_rkey(mw), key);
			assert_ptr_equal(roci_mr_remote(e, 1, 9, key, 0x10010, 16, ROCI_ACCESS_REMOTE_READ),
					 memory + 16);
			assert_null(roci_mr_remote(e, 1, 9, rkeys[i], 0x10010, 16, ROCI_ACCESS_REMOTE_READ));
			roci_engine_destroy(e);
		}
	}
}

static void zero_based_window_counts_from_zero(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_ZERO_BASED);
	struct roci_mr *mr = region(e, 0x55501, ALL);
	struct roci_mw *mw;

	assert_int_equal(roci_mw_create(e, 1, 1, 0x66600, &mw), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_ptr_equal(roci_mr_remote(e, 1, 5, 0x66601, 0, 16, ROCI_ACCESS_REMOTE_READ), memory + 16);
	assert_null(roci_mr_remote(e, 1, 5, 0x66601, 1, 16, ROCI_ACCESS_REMOTE_READ));
	assert_null(roci_mr_remote(e, 2, 5, 0x66601, 0, 16, ROCI_ACCESS_REMOTE_READ)); /* type 1 belongs to a PD */
	b.len = 0;
	b.rkey = 0x66602;
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0); /* unbinds */
	assert_null(roci_mr_remote(e, 1, 5, 0x66602, 0, 1, ROCI_ACCESS_REMOTE_READ));
	assert_int_equal(roci_mr_destroy(mr), 0); /* no window holds it */
	roci_engine_destroy(e);
}

/* IBTA A19 */
static void flush_needs_its_right_and_a_range(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_bind b = window(ROCI_ACCESS_FLUSH_GLOBAL);
	struct roci_mw *mw;

	region(e, 0x55501, ALL | ROCI_ACCESS_FLUSH_GLOBAL);
	region(e, 0x77701, ALL);
	assert_true(roci_mr_may_flush(e, 1, 9, 0x55501, 0x10000, 4096, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_true(roci_mr_may_flush(e, 1, 9, 0x55501, 0x11000, 0, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 1, 9, 0x55501, 0x10001, 4096, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_true(roci_mr_may_flush(e, 1, 9, 0x55501, 7, UINT64_MAX, true, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 2, 9, 0x55501, 0x10000, 1, true, ROCI_ACCESS_FLUSH_GLOBAL)); /* other PD */
	assert_false(roci_mr_may_flush(e, 1, 9, 0x55502, 0x10000, 0, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 1, 9, 0x77701, 0x10000, 1, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 1, 9, 0x77701, 0x10000, 1, true, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_int_equal(roci_mw_create(e, 1, 2, 0x66600, &mw), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_true(roci_mr_may_flush(e, 1, 9, 0x66601, 0x10010, 16, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 1, 9, 0x66601, 0x10010, 17, false, ROCI_ACCESS_FLUSH_GLOBAL));
	assert_false(roci_mr_may_flush(e, 1, 8, 0x66601, 0x10010, 16, true, ROCI_ACCESS_FLUSH_GLOBAL)); /* other QP */
	assert_false(roci_mr_may_flush(e, 2, 9, 0x66601, 0x10010, 16, true, ROCI_ACCESS_FLUSH_GLOBAL)); /* other PD */
	roci_engine_destroy(e);
}

/* What may be registered; a refused change leaves the region as it is. */
static void attributes_are_checked(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr_attr a = {.pd = 1, .key = 0x55501, .base = memory, .iova = UINT64_MAX - 10, .len = 11};
	struct roci_mr *mr;

	assert_int_equal(roci_mr_create(e, &a, &mr), -EINVAL); /* the addresses wrap around */
	a.iova = 0;
	a.base = (void *)(UINTPTR_MAX - 10);
	assert_int_equal(roci_mr_create(e, &a, &mr), -EINVAL); /* the memory does */
	a.iova = UINT64_MAX - 10;
	a.len = 10;
	a.access = 1u << 6;
	assert_int_equal(roci_mr_create(e, &a, &mr), -EINVAL); /* no such right */
	a.access = ROCI_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(roci_mr_create(e, &a, &mr), -EINVAL); /* needs local write */
	a.access = 0;
	assert_int_equal(roci_mr_create(e, &a, &mr), 0);
	a.access = 1u << 6;
	assert_int_equal(roci_mr_change(mr, &a), -EINVAL);
	assert_non_null(roci_mr_local(e, 1, 0x55501, UINT64_MAX - 10, 10, 0));
	a = (struct roci_mr_attr){.pd = 2, .base = memory, .iova = 16, .len = 8, .access = ROCI_ACCESS_LOCAL_WRITE};
	assert_int_equal(roci_mr_change(mr, &a), 0);
	assert_ptr_equal(roci_mr_local(e, 2, 0x55501, 16, 8, ROCI_ACCESS_LOCAL_WRITE), memory);
	assert_null(roci_mr_local(e, 1, 0x55501, UINT64_MAX - 10, 10, 0));
	roci_engine_destroy(e);
}

/* IBTA 10.6.7.2.2 */
static void a_bind_is_checked(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_mr_attr foreign = {
		.pd = 2, .key = 0x77701, .base = memory, .iova = 0x10000, .len = 64, .access = ALL};
	struct roci_bind good = window(ROCI_ACCESS_REMOTE_READ), b;
	struct roci_mr *mr;
	struct roci_mw *mw, *other;

	region(e, 0x55501, ALL);
	region(e, 0x88801, ROCI_ACCESS_LOCAL_WRITE);
	region(e, 0x99901, ALL | ROCI_ACCESS_ZERO_BASED);
	region(e, 0xaaa01, ROCI_ACCESS_MW_BIND);
	assert_int_equal(roci_mr_create(e, &foreign, &mr), 0);
	assert_int_equal(roci_mw_create(e, 1, 0, 0x66600, &mw), -EINVAL);
	assert_int_equal(roci_mw_create(e, 1, 3, 0x66600, &mw), -EINVAL);
	assert_int_equal(roci_mw_create(e, 1, 1, 0x55500, &mw), -EEXIST);
	assert_int_equal(roci_mw_create(e, 1, 1, 0x66600, &mw), 0);
	assert_int_equal(roci_mw_create(e, 1, 2, 0xbbb00, &other), 0);

#define REFUSED(field, value)                                                                                          \
	do {                                                                                                           \
		b = good;                                                                                              \
		b.field = value;                                                                                       \
		assert_int_equal(roci_mw_bind(e, 1, 9, &b), -EINVAL);                                                  \
	} while (0)
	REFUSED(mr_key, 0x55502); /* no region */
	REFUSED(mr_key, 0xbbb00); /* a window */
	REFUSED(mr_key, 0x77701); /* of another PD */
	REFUSED(mr_key, 0x88801); /* without the right to be bound to */
	REFUSED(mr_key, 0x99901); /* zero-based */
	REFUSED(mw_key, 0x12300); /* no window */
	REFUSED(mw_key, 0x55500); /* a region */
	REFUSED(access, ROCI_ACCESS_LOCAL_WRITE);
	REFUSED(addr, 0xffff);
	REFUSED(len, 4096);
	REFUSED(mr_key, 0); /* no region at all */
	b = good;
	b.len = 0;
	assert_int_equal(roci_mw_bind(e, 2, 9, &b), -EINVAL); /* by a QP of another PD */
	good.mr_key = 0xaaa01;
	REFUSED(access, ROCI_ACCESS_REMOTE_WRITE); /* the region cannot be written */
	REFUSED(access, ROCI_ACCESS_REMOTE_ATOMIC);
	good = window(ROCI_ACCESS_REMOTE_READ);
	good.mw_key = 0xbbb00; /* of type 2 */
	REFUSED(len, 0);
#undef REFUSED
	roci_engine_destroy(e);
}

static void only_a_bound_window_of_type_2_is_invalidated(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ);
	struct roci_mw *type1, *type2;

	region(e, 0x55501, ALL);
	assert_int_equal(roci_mw_create(e, 1, 1, 0x66600, &type1), 0);
	assert_int_equal(roci_mw_create(e, 1, 2, 0xbbb00, &type2), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0x66601), -EINVAL);
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0x55501), -EINVAL); /* a region */
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0x12300), -EINVAL); /* nothing */
	assert_int_equal(roci_mw_invalidate(e, 1, 0, 0xbbb00), -EINVAL); /* not bound */
	b.mw_key = 0xbbb00;
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(roci_mw_invalidate(e, 2, 9, 0xbbb01), -EINVAL); /* another PD */
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0xbbb02), -EINVAL); /* a variant */
	assert_int_equal(roci_mw_invalidate(e, 1, 9, 0xbbb01), 0);
	roci_engine_destroy(e);
}

/* As long as a window is bound, its region stays as it is. Peers on this host lose the window at once. */
static unsigned closed;

static void close_window(void *driver, const void *base, uint64_t len)
{
	assert_ptr_equal(base, memory + 16);
	assert_int_equal(len, 16);
	closed++;
}

static void a_region_with_windows_stays(void **state)
{
	static const struct roci_local_calls calls = {.close_window = close_window};
	struct roci_engine *e = roci_engine_create();
	struct roci_mr *mr = region(e, 0x55501, ALL);
	struct roci_mr_attr a = {.pd = 1, .base = memory, .iova = 0x10000, .len = 4096, .access = ALL};
	struct roci_bind b = window(ROCI_ACCESS_REMOTE_READ);
	struct roci_mw *mw;

	roci_engine_fetch_by(e, &calls, NULL);
	assert_int_equal(roci_mw_create(e, 1, 1, 0x66600, &mw), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(closed, 0);
	assert_int_equal(roci_mr_change(mr, &a), -EBUSY);
	assert_int_equal(roci_mr_destroy(mr), -EBUSY);
	assert_null(roci_mr_local(e, 1, 0x66601, 0x10010, 1, 0)); /* a window is no local memory */
	assert_non_null(roci_mr_local(e, 1, 0x12345, 0, 0, 0));   /* no bytes need no key */
	b.mw_key = 0x66601;
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0); /* again: type 1 may */
	assert_int_equal(closed, 1);
	assert_int_equal(roci_mw_destroy(mw), 0);
	assert_int_equal(closed, 2);
	assert_int_equal(roci_mr_change(mr, &a), 0);
	assert_int_equal(roci_mr_destroy(mr), 0);
	roci_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_do_not_overflow),
		cmocka_unit_test(key_pd_and_right_must_match),
		cmocka_unit_test(type_2_window_lives_with_its_qp),
		cmocka_unit_test(type_2_window_is_unbound_with_its_qp),
		cmocka_unit_test(type_2_window_outlives_a_reset_of_its_qp),
		cmocka_unit_test(bind_takes_the_low_8_bits_of_the_rkey),
		cmocka_unit_test(zero_based_window_counts_from_zero),
		cmocka_unit_test(flush_needs_its_right_and_a_range),
		cmocka_unit_test(attributes_are_checked),
		cmocka_unit_test(a_bind_is_checked),
		cmocka_unit_test(only_a_bound_window_of_type_2_is_invalidated),
		cmocka_unit_test(a_region_with_windows_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
