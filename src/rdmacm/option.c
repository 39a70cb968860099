/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(), and the ECE fields that travel with a connection. */
#include <string.h>

#include "rdmacm/id.h"

static int set_tos(struct cma_id *id, const void *value, size_t len)
{
	if (len != sizeof(uint8_t))
		return CMA_REFUSE(-EINVAL, "optlen %zu: %zu is allowed", len, sizeof(uint8_t));
	id->tos = *(const uint8_t *)value;
	return 0;
}

static int set_reuseaddr(struct cma_id *id, const void *value, size_t len)
{
	int on;
	if (len != sizeof(on))
		return CMA_REFUSE(-EINVAL, "optlen %zu: %zu is allowed", len, sizeof(on));
	memcpy(&on, value, sizeof(on));
	if (id->state != CMA_IDLE && !(on && id->state != CMA_LISTEN))
		return CMA_REFUSE(-EINVAL, "the id is %s; RDMA_OPTION_ID_REUSEADDR comes before rdma_bind_addr()",
				  cma_state_name(id));
	id->reuseaddr = on;
	return 0;
}

static int set_afonly(struct cma_id *id, const void *value, size_t len)
{
	int on;
	if (len != sizeof(on))
		return CMA_REFUSE(-EINVAL, "optlen %zu: %zu is allowed", len, sizeof(on));
	memcpy(&on, value, sizeof(on));
	if (id->state != CMA_IDLE && id->state != CMA_BOUND)
		return CMA_REFUSE(-EINVAL, "the id is %s; RDMA_OPTION_ID_AFONLY comes before rdma_listen()",
				  cma_state_name(id));
	id->afonly = on;
	return 0;
}

static int set_ack_timeout(struct cma_id *id, const void *value, size_t len)
{
	if (len != sizeof(uint8_t) || id->id.qp_type != IBV_QPT_RC)
		return CMA_REFUSE(-EINVAL, "optlen %zu, qp_type %d: 1 and IBV_QPT_RC are allowed", len,
				  (int)id->id.qp_type);
	uint8_t timeout = *(const uint8_t *)value;
	if (timeout > 31) /* a field of 5 bits */
		return CMA_REFUSE(-EINVAL, "ack timeout %u: at most 31", timeout);
	id->ack_timeout = timeout;
	id->ack_timeout_set = true;
	return 0;
}

static int set_id_option(struct cma_id *id, int name, const void *value, size_t len)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS: return set_tos(id, value, len);
	case RDMA_OPTION_ID_REUSEADDR: return set_reuseaddr(id, value, len);
	case RDMA_OPTION_ID_AFONLY: return set_afonly(id, value, len);
	case RDMA_OPTION_ID_ACK_TIMEOUT: return set_ack_timeout(id, value, len);
	default: return CMA_REFUSE(-ENOSYS, "optname %d of RDMA_OPTION_ID is unknown", name);
	}
}

/* Instead of rdma_resolve_route(). On Ethernet the addresses determine the path, so only the MTU is taken from the
 * program's first path record, if it is smaller. */
static int set_path(struct cma_id *id, const struct ibv_path_data *paths, size_t len)
{
	if (!len || len % sizeof(*paths))
		return CMA_REFUSE(-EINVAL, "optlen %zu: a multiple of %zu is allowed", len, sizeof(*paths));
	if (id->state != CMA_ADDR_RESOLVED)
		return CMA_REFUSE(-EINVAL, "the id is %s; a path comes after RDMA_CM_EVENT_ADDR_RESOLVED",
				  cma_state_name(id));
	cma_fill_route(id);
	uint8_t mtu = paths->path.mtu & 0x3f;
	if (mtu >= IBV_MTU_256 && mtu < id->path.mtu)
		id->path.mtu = mtu;
	id->state = CMA_ROUTE_RESOLVED;
	return cma_event_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	if (!id || !optval)
		return cma_error(EINVAL);
	switch (level) {
	case RDMA_OPTION_ID: return cma_result(set_id_option(cma_id(id), optname, optval, optlen));
	case RDMA_OPTION_IB:
		if (optname != RDMA_OPTION_IB_PATH)
			return cma_error(CMA_REFUSE(ENOSYS, "optname %d of RDMA_OPTION_IB is unknown", optname));
		return cma_result(set_path(cma_id(id), optval, optlen));
	default: return cma_error(CMA_REFUSE(ENOSYS, "level %d: RDMA_OPTION_ID and RDMA_OPTION_IB are allowed", level));
	}
}

/* For programs that modify their QPs themselves: the device has no options to negotiate. Vendor ids have 24 bits. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || !ece)
		return cma_error(EINVAL);
	if (id->qp)
		return cma_error(
			CMA_REFUSE(EINVAL, "the id has a QP: ECE is for programs that modify theirs themselves"));
	if (!ece->vendor_id || ece->vendor_id >= 1u << 24 || ece->comp_mask)
		return cma_error(CMA_REFUSE(EINVAL, "vendor_id 0x%x, comp_mask 0x%x: 1 to 0xffffff, and 0, are allowed",
					    ece->vendor_id, ece->comp_mask));
	cma_id(id)->local_ece = *ece;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || !ece)
		return cma_error(EINVAL);
	if (id->qp)
		return cma_error(
			CMA_REFUSE(EINVAL, "the id has a QP: ECE is for programs that modify theirs themselves"));
	*ece = cma_id(id)->remote_ece;
	return 0;
}
