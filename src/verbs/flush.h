/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH (IBTA A19) as <infiniband/verbs.h> has it since 2023, for older headers (Debian 12): the same names, values and
 * layout. So programs built with older and with newer headers see the same device.
 */
#ifndef ROCI_VERBS_FLUSH_H
#define ROCI_VERBS_FLUSH_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of ibv_device_attr_ex.device_cap_flags_ex: in newer <rdma/ib_user_verbs.h>, not in verbs.h. */
#define VB_DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define VB_DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

#ifndef HAVE_IBV_WR_FLUSH

#define IBV_WC_FLUSH                ((enum ibv_wc_opcode)8)
#define IBV_WR_FLUSH                ((enum ibv_wr_opcode)14)
#define IBV_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)
#define IBV_QP_EX_WITH_FLUSH        (1 << 11)

/* Placement type: to whom the data must be visible, or what they must survive. */
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
