/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions and windows. */
#include <stdlib.h>
#include <sys/mman.h>

#include "api.h"

#define PAGE 4096

void test_mr_ranges(void)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK(!munmap(p + 2 * PAGE, PAGE));              /* a hole */
	CHECK(!mprotect(p + 3 * PAGE, PAGE, PROT_READ)); /* a read-only page */

	CHECK_ERRNO(!ibv_reg_mr(NULL, p, PAGE, 0), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, NULL, PAGE, 0), EFAULT);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, p, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, p + PAGE, PAGE + 1, 0), EFAULT);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, p + 3 * PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, p, SIZE_MAX, 0), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, (void *)(UINTPTR_MAX - 100), 200, 0), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr_iova(api_pd, p, PAGE, UINT64_MAX - 10, 0), EINVAL);

	struct ibv_mr *mr = ibv_reg_mr(api_pd, p + 3 * PAGE, PAGE, IBV_ACCESS_REMOTE_READ);
	CHECK(mr && mr->addr == p + 3 * PAGE && mr->length == PAGE && mr->lkey && mr->rkey && mr->context == api_ctx);
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(api_pd, p + 1, 2 * PAGE - 1, IBV_ACCESS_LOCAL_WRITE); /* to the last byte before the hole */
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(ibv_dereg_mr(NULL) == EINVAL);
	munmap(p, 2 * PAGE);
	munmap(p + 3 * PAGE, PAGE);
}

/* Completion status of an RDMA READ of `len` bytes: from `from` to `to`. */
static enum ibv_wc_status read_status(struct pair *p, const struct ibv_mr *to, const struct ibv_mr *from, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)to->addr, len, to->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {(uintptr_t)from->addr, from->rkey}},
			   *bad;
	struct ibv_wc wc;
	CHECK(!ibv_post_send(p->qp[0], &wr, &bad));
	CHECK(cq_wait(p->cq[0], &wc));
	return wc.status;
}

/* An empty region is a region like others. No byte fits in it, on either side. */
void test_mr_empty(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *null = ibv_reg_mr(api_pd, NULL, 0, access);
	CHECK(null && !null->addr && !null->length && null->lkey && !ibv_dereg_mr(null));
	for (int local = 0; local < 2; local++) {
		struct pair p;
		pair_open(&p, 0);
		struct ibv_mr *mr = ibv_reg_mr(api_pd, p.buf, 0, access);
		CHECK(mr && mr->addr == p.buf && !mr->length);
		if (mr) {
			const struct ibv_mr *to = local ? mr : p.mr, *from = local ? p.mr : mr;
			CHECK(read_status(&p, to, from, 0) == IBV_WC_SUCCESS);
			CHECK(read_status(&p, to, from, 1) == (local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR));
			CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.buf, 8, 0) && mr->length == 8);
			CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.buf, 0, 0) && !mr->length);
			CHECK(!ibv_dereg_mr(mr));
		}
		pair_close(&p);
	}
}

void test_mr_access(void)
{
	static char buf[PAGE];
	CHECK_ERRNO(!ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, buf, PAGE, 1 << 15), EINVAL);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_FLUSH_PERSISTENT), EOPNOTSUPP);
	struct ibv_mr *mr = ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr(api_pd, buf, PAGE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr_iova(api_pd, buf, PAGE, 0x1000, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && !ibv_dereg_mr(mr));
	/* Two regions of the same memory have different keys. */
	mr = ibv_reg_mr(api_pd, buf, PAGE, 0);
	struct ibv_mr *second = ibv_reg_mr(api_pd, buf, PAGE, 0);
	CHECK(mr->lkey != second->lkey);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(second));
}

#define CHECK_REREG(mr, flags, pd, addr, len, access, error)                                                           \
	CHECK_ERRNO(ibv_rereg_mr(mr, flags, pd, addr, len, access) == IBV_REREG_MR_ERR_INPUT, error)

void test_mr_rereg(void)
{
	static char one[PAGE], two[2 * PAGE];
	struct ibv_mr *mr = ibv_reg_mr(api_pd, one, sizeof(one), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *pd = ibv_alloc_pd(api_ctx), *foreign = ibv_alloc_pd(api_other);
	uint32_t key = mr->lkey;
	CHECK_REREG(NULL, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0, EINVAL);
	CHECK_REREG(mr, 0, NULL, NULL, 0, 0, EINVAL);
	CHECK_REREG(mr, 1 << 5, NULL, NULL, 0, 0, EINVAL);
	CHECK_REREG(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL);
	CHECK_REREG(mr, IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0, EINVAL);
	CHECK_REREG(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	CHECK_REREG(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, PAGE, 0, EFAULT);
	CHECK(mr->addr == one && mr->length == sizeof(one) && mr->pd == api_pd);

	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, pd, two, sizeof(two), 0));
	CHECK(mr->addr == two && mr->length == sizeof(two) && mr->pd == pd && mr->lkey == key);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_dealloc_pd(foreign));
}

void test_mr_advise(void)
{
	static char buf[4 * PAGE];
	struct ibv_mr *mr = ibv_reg_mr(api_pd, buf, sizeof(buf), 0);
	struct ibv_pd *other = ibv_alloc_pd(api_ctx);
	struct ibv_sge sge = {(uintptr_t)buf + PAGE, PAGE, mr->lkey};
	CHECK(!ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	CHECK(!ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &sge, 1));
	CHECK(ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1) == EPERM);
	CHECK(ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EPERM);
	CHECK(ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1) == EINVAL);
	CHECK(ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0) == EINVAL);
	CHECK(ibv_advise_mr(api_pd, 77, 0, &sge, 1) == EOPNOTSUPP);
	sge.length = sizeof(buf);
	CHECK(ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EFAULT);
	sge.lkey ^= 0x5a5a5a00;
	CHECK(ibv_advise_mr(api_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == ENOENT);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(other));
}

void test_mw(void)
{
	struct pair p;
	struct ibv_wc wc;
	pair_open(&p, 0);
	CHECK_ERRNO(!ibv_alloc_mw(api_pd, 3), EINVAL);
	struct ibv_mw *one = ibv_alloc_mw(api_pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(api_pd, IBV_MW_TYPE_2);
	CHECK(one && two && one->rkey != two->rkey && one->type == IBV_MW_TYPE_1 && one->pd == api_pd);

	struct ibv_mw_bind bind = {
		.wr_id = 7,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = p.mr, .addr = (uintptr_t)p.buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
	uint32_t before = one->rkey;
	CHECK(ibv_bind_mw(p.qp[0], two, &bind) == EINVAL);
	CHECK(!ibv_bind_mw(p.qp[0], one, &bind));
	CHECK(one->rkey != before && (one->rkey ^ before) < 256);
	CHECK(cq_wait(p.cq[0], &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 7);
	CHECK(ibv_dereg_mr(p.mr) == EBUSY);
	CHECK_REREG(p.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE, EBUSY);

	/* A posted bind is for type 2. */
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .bind_mw = {.mw = one, .rkey = ibv_inc_rkey(one->rkey)}},
			   *bad;
	CHECK(ibv_post_send(p.qp[0], &wr, &bad) == EINVAL && bad == &wr);
	wr.bind_mw.mw = NULL;
	CHECK(ibv_post_send(p.qp[0], &wr, &bad) == EINVAL);
	CHECK(!ibv_dealloc_mw(one));
	CHECK(!ibv_dealloc_mw(two));
	pair_close(&p);
}

static bool bound_to(struct pair *p, const struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)p->buf + 1024, 8, p->mr->lkey};
	struct ibv_send_wr read = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_READ,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {.remote_addr = (uintptr_t)p->buf, .rkey = rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	return mw->rkey == rkey && cq_wait(p->cq[0], &wc) && wc.status == IBV_WC_SUCCESS &&
	       wc.opcode == IBV_WC_BIND_MW && !ibv_post_send(p->qp[1], &read, &bad) && cq_wait(p->cq[1], &wc) &&
	       wc.status == IBV_WC_SUCCESS;
}

/* Type 2: the program says the low 8 bits of the new key, and reads all of it from mw->rkey. */
void test_mw_rkey(void)
{
	struct pair p;
	struct ibv_wc wc;
	pair_open(&p, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_RDMA_READ);
	struct ibv_mw *mw = ibv_alloc_mw(api_pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {
		.mr = p.mr, .addr = (uintptr_t)p.buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED,
				 .bind_mw = {.mw = mw, .rkey = 0xba, .bind_info = info}},
			   *bad;
	uint32_t index = mw->rkey & ~0xffu;
	CHECK(!ibv_post_send(p.qp[0], &wr, &bad));
	CHECK(bound_to(&p, mw, index | 0xba));

	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.qp[0]);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_local_inv(ex, mw->rkey);
	CHECK(!ibv_wr_complete(ex));
	CHECK(cq_wait(p.cq[0], &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_LOCAL_INV);
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, 0x12345678, &info);
	ibv_wr_abort(ex);
	CHECK(mw->rkey == (index | 0xba));
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, ~index | 0xff, &info);
	CHECK(!ibv_wr_complete(ex));
	CHECK(bound_to(&p, mw, index | 0xff));
	CHECK(!ibv_dealloc_mw(mw));
	pair_close(&p);
}
