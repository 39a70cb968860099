/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes of the device. All limits come from engine/limits.h. */
#include <errno.h>

#include "engine/why.h"
#include "verbs/context.h"

/* Software devices have no OUI. Soft-RoCE has this value, too; programs reject 0. */
#define VENDOR_ID 0xffffff

static const unsigned capabilities = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				     IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				     IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
				     IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;

ALSO_1_0(ibv_query_device);
VERB_DEFINE(2, ibv_query_device, struct ibv_context *, context, struct ibv_device_attr *, attr)
{
	if (!vb_is_context(context) || !attr)
		return EINVAL;
	*attr = (struct ibv_device_attr){
		.fw_ver = ROCI_VERSION,
		.node_guid = vb_device_guid(),
		.sys_image_guid = vb_device_guid(),
		.max_mr_size = 1ULL << 47,           /* the address space of a process */
		.page_size_cap = 0xfffffffffffff000, /* any size: the device has no page tables */
		.vendor_id = VENDOR_ID,
		.max_qp = ROCI_MAX_QP,
		.max_qp_wr = ROCI_MAX_QP_WR,
		.device_cap_flags = capabilities,
		.max_sge = ROCI_MAX_SGE,
		.max_sge_rd = ROCI_MAX_SGE,
		.max_cq = ROCI_MAX_CQ,
		.max_cqe = ROCI_MAX_CQE,
		.max_mr = ROCI_MAX_MR,
		.max_pd = ROCI_MAX_PD,
		.max_qp_rd_atom = ROCI_MAX_RD_ATOMIC,
		.max_res_rd_atom = ROCI_MAX_RD_ATOMIC * ROCI_MAX_QP,
		.max_qp_init_rd_atom = ROCI_MAX_RD_ATOMIC,
		.atomic_cap =
			IBV_ATOMIC_HCA, /* GLOB is true, too, but no adapter announces it, and UCX reads it as NONE */
		.max_mw = ROCI_MAX_MW,
		.max_mcast_grp = ROCI_MAX_MCAST_GROUPS,
		.max_mcast_qp_attach = ROCI_MAX_MCAST_ATTACH,
		.max_total_mcast_qp_attach = ROCI_MAX_MCAST_GROUPS * ROCI_MAX_MCAST_ATTACH,
		.max_ah = ROCI_MAX_AH,
		.max_srq = ROCI_MAX_SRQ,
		.max_srq_wr = ROCI_MAX_SRQ_WR,
		.max_srq_sge = ROCI_MAX_SGE,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15, /* 134 ms, as Soft-RoCE: a loaded host may delay the thread so long */
		.phys_port_cnt = 1,
	};
	return 0;
}

VERB_DEFINE(4, vb_query_device_ex, struct ibv_context *, context, const struct ibv_query_device_ex_input *, input,
	    struct ibv_device_attr_ex *, attr, size_t, attr_size)
{
	if (!vb_is_context(context) || !attr)
		return EINVAL;
	if (attr_size < sizeof(attr->orig_attr) || (input && input->comp_mask))
		return ROCI_REFUSE(EINVAL, "attr_size %zu, input->comp_mask 0x%x: %zu and more, and 0, are allowed",
				   attr_size, input ? input->comp_mask : 0, sizeof(attr->orig_attr));
	struct ibv_device_attr_ex full = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: timestamps are nanoseconds */
		.device_cap_flags_ex = capabilities | VB_DEVICE_FLUSH_GLOBAL | VB_DEVICE_ATOMIC_WRITE,
		.phys_port_cnt_ex = 1,
	};
	int err = ibv_query_device(context, &full.orig_attr);
	if (err)
		return err;
	size_t known = attr_size < sizeof(full) ? attr_size : sizeof(full);
	memset(attr, 0, attr_size);
	memcpy(attr, &full, known);
	return 0;
}

/* The raw clock counts nanoseconds, as completion timestamps do. */
VERB_DEFINE(2, vb_query_rt_values, struct ibv_context *, context, struct ibv_values_ex *, values)
{
	if (!vb_is_context(context) || !values)
		return EINVAL;
	uint32_t asked = values->comp_mask;
	if (asked & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return ROCI_REFUSE(EINVAL, "comp_mask 0x%x: roci0 has IBV_VALUES_MASK_RAW_CLOCK", asked);
	if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)roci_now();
	}
	return 0;
}
