/* SPDX-License-Identifier: BSD-2-Clause */
/* struct ibv_cq_ex: completions read field by field. */
#include <errno.h>
#include <time.h>

#include "verbs/cq.h"

static bool take_one(struct vb_cq *cq)
{
	if (!roci_cq_poll(cq->engine, &cq->cqe, 1))
		return false;
	cq->ex.wr_id = cq->cqe.wr_id;
	cq->ex.status = (enum ibv_wc_status)cq->cqe.status;
	return true;
}

/* ENOENT, an empty queue, is no error: it does not go into errno. */
static int nothing(const struct vb_cq *cq)
{
	return roci_cq_overrun(cq->engine) ? (errno = EIO) : ENOENT;
}

/* If it returns 0, the calling thread holds the consumer lock until end_poll(). */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vb_cq *cq = (struct vb_cq *)ex;
	if (attr && attr->comp_mask)
		return errno = EINVAL;
	pthread_mutex_lock(&cq->consumer);
	if (!take_one(cq)) {
		pthread_mutex_unlock(&cq->consumer);
		roci_device_poll(vb_context(ex->context)->dev);
		pthread_mutex_lock(&cq->consumer);
		if (!take_one(cq)) {
			pthread_mutex_unlock(&cq->consumer);
			return nothing(cq);
		}
	}
	atomic_store_explicit(&cq->poller, pthread_self(), memory_order_relaxed);
	cq->wallclock_read = false;
	return 0;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = (struct vb_cq *)ex;
	return take_one(cq) ? 0 : nothing(cq);
}

/* Some programs (pyverbs) call it also when start_poll() found nothing. */
static void end_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = (struct vb_cq *)ex;
	if (!vb_cq_is_polled_here(cq))
		return;
	atomic_store_explicit(&cq->poller, 0, memory_order_relaxed);
	pthread_mutex_unlock(&cq->consumer);
}

static const struct roci_cqe *cqe_of(const struct ibv_cq_ex *ex)
{
	return &((const struct vb_cq *)ex)->cqe;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cqe_of(ex)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->timestamp_ns;
}

static void read_wallclock(struct vb_cq *cq)
{
	struct timespec wall;
	uint64_t before = roci_now();
	clock_gettime(CLOCK_REALTIME, &wall);
	vb_wallclock_learn(&cq->wallclock, before, (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec,
			   roci_now());
	cq->wallclock_read = true;
}

/* The timestamp is of CLOCK_MONOTONIC. The clocks are read once for all completions of a poll. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = (struct vb_cq *)ex;
	if (!cq->wallclock_read)
		read_wallclock(cq);
	return vb_wallclock_at(&cq->wallclock, cq->cqe.timestamp_ns);
}

/* vb_create_cq_ex() refuses the flags of these three. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	memset(info, 0, sizeof(*info));
}

void vb_cq_ex_init(struct vb_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_flow_tag;
	ex->read_tm_info = read_tm_info;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
