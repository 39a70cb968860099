/* SPDX-License-Identifier: BSD-2-Clause */
/* What an RDMA device can do, and which of its addresses an IP address is. */
#ifndef ROCI_TOUR_DEVICE_H
#define ROCI_TOUR_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tour/failure.h"

/* Which packets a GID stands for. */
enum tour_gid_type { TOUR_GID_UNKNOWN, TOUR_GID_IB, TOUR_GID_ROCE_V1, TOUR_GID_ROCE_V2, TOUR_GID_TYPES };

/* The network of a GID's IP address, as this host has it. Zeros: no interface has the address. */
struct tour_network {
	uint8_t prefix; /* bits of the address that the subnet shares */
	uint8_t mtu;    /* enum ibv_mtu: the largest RDMA packet that the interface's MTU carries */
};

/* A place from which a QP sends: what bare verbs need to know, and rdma_cm finds out itself. */
struct tour_port {
	struct ibv_context *verbs;
	uint8_t num;
	int gid_index;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
	bool infiniband; /* addressed by LID, not by GID */
	enum tour_gid_type gid_type;
};

/* The GID that belongs to an IP address: RoCE v2 (IBTA A17). */
void device_gid_of(const struct sockaddr *address, union ibv_gid *gid);

struct tour_network device_network(const union ibv_gid *gid);

/* Bits of enum tour_cap; some by trying. UC through rdma_cm is not among them. */
uint32_t device_caps(struct ibv_context *verbs);

/* Finds the port that has this IP address, of all devices or of the one that is called `name`. RoCE v2 is preferred to
 * v1. If none has it (it is a loopback address, or the network is InfiniBand): the first active port. Opens the device,
 * which the caller closes (port->verbs). 0, or -ENODEV with *f. */
int device_open(const char *name, const struct sockaddr *address, struct tour_port *port, struct failure *f);

bool device_is_iwarp(const struct ibv_context *verbs);

/* The same number for all processes since the machine booted, and most likely another one on other machines. */
uint32_t device_host(void);

/* Bytes of an enum ibv_mtu. */
static inline uint32_t device_mtu_bytes(unsigned mtu)
{
	return mtu >= 1 && mtu <= 5 ? 128u << mtu : 0;
}

#endif
