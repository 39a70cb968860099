/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/device.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tour/tour.h"
#include "verbs/flush.h"
#include "wire/fnv.h"

bool device_is_iwarp(const struct ibv_context *verbs)
{
	return verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* Whether the device makes such a QP. That is the only sure way to know: the library may lack what the kernel has. */
static bool makes_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = pd,
		.send_ops_flags = send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &attr);

	return qp && !ibv_destroy_qp(qp);
}

static bool makes_window(struct ibv_pd *pd)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

	return mw && !ibv_dealloc_mw(mw);
}

static uint32_t try(struct ibv_pd *pd, struct ibv_cq *cq, uint64_t flags)
{
	uint32_t caps = 0;

	if (makes_qp(pd, cq, IBV_QPT_RC, 0))
		caps |= TOUR_CAP_RC;
	if (makes_qp(pd, cq, IBV_QPT_UC, 0))
		caps |= TOUR_CAP_UC;
	if (makes_qp(pd, cq, IBV_QPT_UD, 0))
		caps |= TOUR_CAP_UD;
	if ((flags & VB_DEVICE_ATOMIC_WRITE) && makes_qp(pd, cq, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE))
		caps |= TOUR_CAP_ATOMIC_WRITE;
	if ((flags & VB_DEVICE_FLUSH_GLOBAL) && makes_qp(pd, cq, IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH))
		caps |= TOUR_CAP_FLUSH;
	if ((flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) && makes_window(pd))
		caps |= TOUR_CAP_WINDOW;
	return caps;
}

uint32_t device_caps(struct ibv_context *verbs)
{
	struct ibv_device_attr_ex attr = {0};
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_cq *cq = ibv_create_cq(verbs, 4, NULL, NULL, 0);
	bool extended = !ibv_query_device_ex(verbs, NULL, &attr);
	uint32_t caps = 0;

	if (pd && cq && (extended || !ibv_query_device(verbs, &attr.orig_attr)))
		caps = try(pd, cq, attr.device_cap_flags_ex | attr.orig_attr.device_cap_flags);
	if (attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE)
		caps |= TOUR_CAP_ATOMIC;
	if (!device_is_iwarp(verbs))
		caps |= TOUR_CAP_IMM | TOUR_CAP_BARE;
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return caps;
}

void device_gid_of(const struct sockaddr *address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (address->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(*gid));
	} else {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	}
}

static bool is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

static enum tour_gid_type gid_type(struct ibv_context *verbs, uint8_t num, int index)
{
	struct ibv_gid_entry entry;

	if (ibv_query_gid_ex(verbs, num, (uint32_t)index, &entry, 0))
		return TOUR_GID_UNKNOWN;
	switch (entry.gid_type) {
	case IBV_GID_TYPE_IB: return TOUR_GID_IB;
	case IBV_GID_TYPE_ROCE_V1: return TOUR_GID_ROCE_V1;
	case IBV_GID_TYPE_ROCE_V2: return TOUR_GID_ROCE_V2;
	default: return TOUR_GID_UNKNOWN;
	}
}

/* How well an entry of the GID table serves: 0 not at all, 3 it is the address itself, in RoCE v2. */
static unsigned merit(struct ibv_context *verbs, uint8_t num, int index, const union ibv_gid *wanted,
		      union ibv_gid *gid)
{
	if (ibv_query_gid(verbs, num, index, gid) || is_zero(gid))
		return 0;
	if (gid_type(verbs, num, index) != TOUR_GID_ROCE_V2)
		return 1;
	return memcmp(gid, wanted, sizeof(*gid)) ? 2 : 3;
}

/* Takes the best of a port's GIDs that is better than `best`. Returns how well it serves. */
static unsigned choose_gid(struct ibv_context *verbs, uint8_t num, const union ibv_gid *wanted, unsigned best,
			   struct tour_port *port)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;

	if (ibv_query_port(verbs, num, &attr) || attr.state != IBV_PORT_ACTIVE)
		return best;
	for (int i = 0; i < attr.gid_tbl_len && best < 3; i++) {
		unsigned m = merit(verbs, num, i, wanted, &gid);
		if (m <= best)
			continue;
		best = m;
		*port = (struct tour_port){.verbs = verbs,
					   .num = num,
					   .gid_index = i,
					   .gid = gid,
					   .lid = attr.lid,
					   .mtu = attr.active_mtu,
					   .infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND,
					   .gid_type = gid_type(verbs, num, i)};
	}
	return best;
}

static unsigned choose_port(struct ibv_context *verbs, const union ibv_gid *wanted, struct tour_port *port)
{
	struct ibv_device_attr attr;
	unsigned best = 0;

	if (ibv_query_device(verbs, &attr))
		return 0;
	for (unsigned num = 1; num <= attr.phys_port_cnt; num++)
		best = choose_gid(verbs, (uint8_t)num, wanted, best, port);
	return best;
}

int device_open(const char *name, const struct sockaddr *address, struct tour_port *port, struct failure *f)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid wanted;
	unsigned best = 0;

	device_gid_of(address, &wanted);
	for (struct ibv_device **d = list; d && *d && best < 3; d++) {
		struct ibv_context *verbs;
		struct tour_port found;
		unsigned m;

		if (name && strcmp(name, ibv_get_device_name(*d)))
			continue;
		verbs = ibv_open_device(*d);
		if (!verbs)
			continue;
		m = choose_port(verbs, &wanted, &found);
		if (m > best) {
			if (best)
				ibv_close_device(port->verbs);
			best = m;
			*port = found;
		} else {
			ibv_close_device(verbs);
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (best)
		return 0;
	return fail(f, -ENODEV, "no RDMA device here has an active port; `roci ping --device embedded` needs none");
}

uint32_t device_host(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint32_t digest = ROCI_FNV_BEGIN;
	int c;

	while (file && (c = fgetc(file)) != EOF)
		digest = roci_fnv(digest, &(uint8_t){(uint8_t)c}, 1);
	if (file)
		fclose(file);
	return digest;
}
