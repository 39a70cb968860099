/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiled names of functions with two versions: a symbol with versions (ALSO_1_0) must not also exist without one.
 * Included before <infiniband/verbs.h>, so that its declarations are renamed, too.
 */
#ifndef ROCI_VERBS_RENAMES_H
#define ROCI_VERBS_RENAMES_H

#define ibv_ack_async_event  vb_ibv_ack_async_event
#define ibv_ack_cq_events    vb_ibv_ack_cq_events
#define ibv_alloc_pd         vb_ibv_alloc_pd
#define ibv_attach_mcast     vb_ibv_attach_mcast
#define ibv_close_device     vb_ibv_close_device
#define ibv_create_ah        vb_ibv_create_ah
#define ibv_create_cq        vb_ibv_create_cq
#define ibv_create_qp        vb_ibv_create_qp
#define ibv_create_srq       vb_ibv_create_srq
#define ibv_dealloc_pd       vb_ibv_dealloc_pd
#define ibv_dereg_mr         vb_ibv_dereg_mr
#define ibv_destroy_ah       vb_ibv_destroy_ah
#define ibv_destroy_cq       vb_ibv_destroy_cq
#define ibv_destroy_qp       vb_ibv_destroy_qp
#define ibv_destroy_srq      vb_ibv_destroy_srq
#define ibv_detach_mcast     vb_ibv_detach_mcast
#define ibv_free_device_list vb_ibv_free_device_list
#define ibv_get_async_event  vb_ibv_get_async_event
#define ibv_get_cq_event     vb_ibv_get_cq_event
#define ibv_get_device_guid  vb_ibv_get_device_guid
#define ibv_get_device_list  vb_ibv_get_device_list
#define ibv_get_device_name  vb_ibv_get_device_name
#define ibv_modify_qp        vb_ibv_modify_qp
#define ibv_modify_srq       vb_ibv_modify_srq
#define ibv_open_device      vb_ibv_open_device
#define ibv_query_device     vb_ibv_query_device
#define ibv_query_gid        vb_ibv_query_gid
#define ibv_query_pkey       vb_ibv_query_pkey
#define ibv_query_port       vb_ibv_query_port
#define ibv_query_qp         vb_ibv_query_qp
#define ibv_query_srq        vb_ibv_query_srq
#define ibv_reg_mr           vb_ibv_reg_mr
#define ibv_resize_cq        vb_ibv_resize_cq

#endif
