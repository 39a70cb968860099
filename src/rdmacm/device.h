/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device as rdma_cm sees it: one context and one default PD for all ids of the process, opened on first use and
 * kept: "Devices remain opened while the librdmacm is loaded" (rdma_get_devices(3)).
 */
#ifndef ROCI_RDMACM_DEVICE_H
#define ROCI_RDMACM_DEVICE_H

#include "rdmacm/id.h"

#define CMA_PORT_NUM 1
#define CMA_PKEY     0xffff

/* The shared context, opened on first use. NULL: errno. */
struct ibv_context *cma_device(void);
/* The same, after an id was made, which opened it. Takes no lock. */
struct ibv_context *cma_device_context(void);
struct roci_device *cma_roci_device(void);
/* The PD of programs that name none. NULL: errno. */
struct ibv_pd *cma_default_pd(void);

/* The most that rdma_conn_param may ask for. */
struct cma_limits {
	uint8_t responder_resources, initiator_depth;
};
struct cma_limits cma_device_limits(void);

/* The index of one of our GIDs (on interface `ifindex`, if not 0), or -1. */
int cma_gid_index(const struct cma_id *id, const uint8_t gid[16], uint32_t ifindex);
/* The index of a bound id's own GID, which may change when the host loses the address. CMA_NO_GID, which no verb takes:
 * the host does not have it now. */
#define CMA_NO_GID UINT8_MAX
uint8_t cma_sgid_index(const struct cma_id *id);
/* The GID table's entry of a bound id. False: the host does not have the address now. */
bool cma_gid_entry(const struct cma_id *id, struct roci_gid_entry *entry);

#endif
