/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/sq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sgl.h"
#include "engine/why.h"

int roci_sq_init(struct roci_sq *sq, bool has_dest, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	uint32_t slots = 1;
	size_t data = max_sge * sizeof(struct roci_sge);

	if (data < max_inline)
		data = max_inline;
	if (data < 8)
		data = 8; /* the operand of an ATOMIC WRITE */
	data = (data + 7) & ~(size_t)7;
	*sq = (struct roci_sq){.max_wr = max_wr, .max_sge = max_sge};
	sq->before = has_dest ? sizeof(struct roci_swqe_dest) : 0;
	sq->max_inline = data < ROCI_MAX_INLINE ? (uint32_t)data : ROCI_MAX_INLINE;
	while (slots < max_wr)
		slots *= 2;
	sq->mask = slots - 1;
	sq->stride = (uint32_t)(sq->before + sizeof(struct roci_swqe) + data);
	sq->ring = calloc(slots, sq->stride);
	return sq->ring ? 0 : -ENOMEM;
}

void roci_sq_fini(struct roci_sq *sq)
{
	free(sq->ring);
	sq->ring = NULL;
}

static void copy_inline(struct roci_swqe *w, const struct roci_send_wr *wr)
{
	char *to = (char *)w->sges;

	for (unsigned i = 0; i < wr->num_sge; i++) {
		if (wr->sges[i].len)
			memcpy(to, (const void *)(uintptr_t)wr->sges[i].addr, wr->sges[i].len);
		to += wr->sges[i].len;
	}
	w->num_sge = 0;
}

int roci_sq_check(const struct roci_sq *sq, const struct roci_send_wr *wr)
{
	bool is_inline = wr->flags & ROCI_SEND_INLINE;
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	uint64_t len;

	if (wr->num_sge > (is_inline ? ROCI_MAX_SGE : sq->max_sge))
		return ROCI_REFUSE(-EINVAL, "num_sge %u: the QP has max_send_sge %u", wr->num_sge,
				   is_inline ? ROCI_MAX_SGE : sq->max_sge);
	len = roci_sgl_len(&sgl);
	if (len > (is_inline ? sq->max_inline : ROCI_MAX_MESSAGE_BYTES))
		return ROCI_REFUSE(-EINVAL, "%llu bytes%s: at most %u are allowed", (unsigned long long)len,
				   is_inline ? " inline (max_inline_data)" : "",
				   is_inline ? sq->max_inline : ROCI_MAX_MESSAGE_BYTES);
	return 0;
}

static void fill_by_opcode(struct roci_swqe *w, const struct roci_send_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
		w->atomic.compare_add = wr->compare_add;
		w->atomic.swap = wr->swap;
		w->length = 8; /* the original value goes to the first 8 bytes, as adapters and Soft-RoCE do it */
		break;
	case ROCI_WR_BIND_MW:
		w->remote_addr = wr->bind.addr;
		w->rkey = wr->bind.rkey;
		w->imm = wr->bind.mr ? roci_mr_key(wr->bind.mr) : 0;
		w->bind.len = wr->bind.len;
		w->bind.mw_key = roci_mw_rkey(wr->bind.mw);
		w->bind.access = wr->bind.access;
		break;
	case ROCI_WR_FLUSH:
		w->flush.len = (uint32_t)wr->flush.len;
		w->flush.feth = wr->flush.feth;
		break;
	default: break;
	}
}

static void fill_dest(struct roci_swqe_dest *dest, const struct roci_send_wr *wr)
{
	*dest = (struct roci_swqe_dest){.qpn = wr->remote_qpn, .qkey = wr->remote_qkey};
	if (wr->av)
		dest->av = *wr->av;
}

int roci_sq_post(struct roci_sq *sq, const struct roci_send_wr *wr, bool sig_all)
{
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	uint64_t len = roci_sgl_len(&sgl);
	bool own_data = wr->opcode == ROCI_WR_ATOMIC_WRITE && !wr->num_sge;
	struct roci_swqe *w;

	if (sq->tail - sq->freed >= sq->max_wr)
		return -ENOMEM;
	w = roci_sq_at(sq, sq->tail);
	*w = (struct roci_swqe){.wr_id = wr->wr_id,
				.length = len,
				.remote_addr = wr->remote_addr,
				.rkey = wr->rkey,
				.imm = wr->imm,
				.opcode = (uint8_t)wr->opcode,
				.flags = (uint8_t)wr->flags,
				.num_sge = (uint8_t)wr->num_sge};
	if (sig_all)
		w->flags |= ROCI_SEND_SIGNALED;
	fill_by_opcode(w, wr);
	if (sq->before)
		fill_dest(roci_swqe_dest(w), wr);
	if (own_data) {
		memcpy(w->sges, wr->atomic_write_data, 8);
		w->flags |= ROCI_SEND_INLINE;
		w->length = 8;
	} else if (wr->flags & ROCI_SEND_INLINE) {
		copy_inline(w, wr);
	} else if (wr->num_sge) {
		memcpy(w->sges, wr->sges, wr->num_sge * sizeof(*wr->sges));
	}
	sq->tail++;
	return 0;
}

enum roci_wc_opcode roci_swqe_wc_opcode(const struct roci_swqe *w)
{
	static const uint8_t opcode[] = {
		[ROCI_WR_RDMA_WRITE] = ROCI_WC_RDMA_WRITE,
		[ROCI_WR_RDMA_WRITE_WITH_IMM] = ROCI_WC_RDMA_WRITE,
		[ROCI_WR_SEND] = ROCI_WC_SEND,
		[ROCI_WR_SEND_WITH_IMM] = ROCI_WC_SEND,
		[ROCI_WR_RDMA_READ] = ROCI_WC_RDMA_READ,
		[ROCI_WR_ATOMIC_CMP_AND_SWP] = ROCI_WC_COMP_SWAP,
		[ROCI_WR_ATOMIC_FETCH_AND_ADD] = ROCI_WC_FETCH_ADD,
		[ROCI_WR_LOCAL_INV] = ROCI_WC_LOCAL_INV,
		[ROCI_WR_BIND_MW] = ROCI_WC_BIND_MW,
		[ROCI_WR_SEND_WITH_INV] = ROCI_WC_SEND,
		[ROCI_WR_FLUSH] = ROCI_WC_FLUSH,
		[ROCI_WR_ATOMIC_WRITE] = ROCI_WC_ATOMIC_WRITE,
	};

	return (enum roci_wc_opcode)opcode[w->opcode];
}
