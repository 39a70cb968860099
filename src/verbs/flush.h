/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH (IBTA A19) as <infiniband/verbs.h> has had it since 2023; Debian 12's is older. Where the header lacks it, it
 * is here, with the same names, values and layout, so that programs of either side of that change meet one device.
 */
#ifndef ROCI_VERBS_FLUSH_H
#define ROCI_VERBS_FLUSH_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* Announced in ibv_device_attr_ex.device_cap_flags_ex. Newer <rdma/ib_user_verbs.h> has them, verbs.h does not. */
#define VB_DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define VB_DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

#ifndef HAVE_IBV_WR_FLUSH

#define IBV_WC_FLUSH                ((enum ibv_wc_opcode)8)
#define IBV_WR_FLUSH                ((enum ibv_wr_opcode)14)
#define IBV_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)
#define IBV_QP_EX_WITH_FLUSH        (1 << 11)

/* Placement type: what the data have to outlast or to be seen by. */
enum ibv_placement_type {
	IBV_FLUSH_GLOBAL = 1U << 0,
	IBV_FLUSH_PERSISTENT = 1U << 1,
};

/* Selectivity level: which data. */
enum ibv_selectivity_level {
	IBV_FLUSH_RANGE = 0,
	IBV_FLUSH_MR,
};

/* The member that follows the others in struct ibv_qp_ex. */
typedef void vb_wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
			    uint8_t level);

/* FLUSH of `len` bytes at remote_addr, or (IBV_FLUSH_MR) of the whole region of rkey; type: IBV_FLUSH_*, or-ed. For a
 * QP that was made with IBV_QP_EX_WITH_FLUSH. */
static inline void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
				uint8_t level)
{
	(*(vb_wr_flush_fn **)(qp + 1))(qp, rkey, remote_addr, len, type, level);
}

#endif

#endif
