/* SPDX-License-Identifier: BSD-2-Clause */
#include "bare.h"

#include <endian.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = made(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *context = NULL;

	for (unsigned i = 0; list[i] && !context; i++)
		if (!name || strcmp(name, ibv_get_device_name(list[i])) == 0)
			context = made(ibv_open_device(list[i]), "ibv_open_device");
	ibv_free_device_list(list);
	if (!context)
		die("no RDMA device%s%s; \"roci run PROGRAM\" gives the program one", name ? " " : "",
		    name ? name : "");
	return context;
}

/* On RoCE: the first IPv4 address with RoCE v2. A port has several GIDs; both sides must choose of one kind. Elsewhere:
 * 0. */
static int find_gid(struct ibv_context *context, const struct ibv_port_attr *port)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff}; /* ::ffff:a.b.c.d */
	struct ibv_gid_entry entry;

	for (int i = 0; i < port->gid_tbl_len; i++)
		if (!ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0) && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) == 0)
			return i;
	return 0;
}

struct bare bare_open(const struct arguments *a)
{
	struct bare bare = {.context = open_device(a->device)};

	bare.pd = made(ibv_alloc_pd(bare.context), "ibv_alloc_pd");
	check(ibv_query_port(bare.context, 1, &bare.port), "ibv_query_port");
	if (bare.port.state != IBV_PORT_ACTIVE)
		die("port 1 is %s, not active", ibv_port_state_str(bare.port.state));
	bare.gid_index = a->gid_index >= 0 ? a->gid_index : find_gid(bare.context, &bare.port);
	check(ibv_query_gid(bare.context, 1, bare.gid_index, &bare.gid), "ibv_query_gid");
	return bare;
}

void bare_close(struct bare *bare)
{
	check(ibv_dealloc_pd(bare->pd), "ibv_dealloc_pd");
	check(ibv_close_device(bare->context), "ibv_close_device");
}

struct bare_address bare_address_of(const struct bare *bare, const struct ibv_qp *qp, const struct ibv_mr *mr)
{
	struct bare_address mine = {.qpn = htobe32(qp->qp_num),
				    .lid = htobe16(bare->port.lid),
				    .mtu = htobe16((uint16_t)bare->port.active_mtu),
				    .rkey = htobe32(mr ? mr->rkey : 0),
				    .address = htobe64(mr ? (uintptr_t)mr->addr : 0)};
	uint32_t psn;

	/* Random, so that a packet of an earlier connection does not fit by chance. A PSN has 24 bits. */
	check(getrandom(&psn, sizeof(psn), 0) == sizeof(psn) ? 0 : -1, "getrandom");
	mine.psn = htobe32(psn & 0xffffff);
	memcpy(mine.gid, bare->gid.raw, sizeof(mine.gid));
	return mine;
}

struct ibv_ah_attr bare_route(const struct bare *bare, const struct bare_address *peer)
{
	struct ibv_ah_attr route = {.port_num = 1, .dlid = be16toh(peer->lid)};

	/* RoCE always needs a GRH: the GID is the IP address. InfiniBand needs it only between subnets. */
	route.is_global = bare->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	memcpy(route.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	route.grh.sgid_index = (uint8_t)bare->gid_index;
	route.grh.hop_limit = 64;
	return route;
}

void bare_to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)access};

	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "ibv_modify_qp to INIT");
}

void bare_to_rtr(const struct bare *bare, struct ibv_qp *qp, const struct bare_address *peer)
{
	uint16_t mtu = be16toh(peer->mtu);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = bare_route(bare, peer),
		.path_mtu =
			mtu < bare->port.active_mtu ? (enum ibv_mtu)mtu : bare->port.active_mtu, /* the smaller one */
		.dest_qp_num = be32toh(peer->qpn),
		.rq_psn = be32toh(peer->psn), /* what the peer sends first is what we expect first */
		.max_dest_rd_atomic = 4,      /* READs and atomics of the peer at a time */
		.min_rnr_timer = 12,          /* 0.64 ms: how long the peer waits when we have no receive posted */
	};

	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	      "ibv_modify_qp to RTR");
}

void bare_to_rts(struct ibv_qp *qp, const struct bare_address *mine, uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = be32toh(mine->psn),
		.timeout = 16,  /* 4.096 us * 2^16: 0.27 s without an acknowledgement, then again */
		.retry_cnt = 6, /* at most 7, but Soft-RoCE takes 7 for "for ever" */
		.rnr_retry = rnr_retry,
		.max_rd_atomic = 4, /* our READs and atomics at a time; not more than the peer's max_dest_rd_atomic */
	};

	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	      "ibv_modify_qp to RTS");
}

static int wait_for_client(const struct addrinfo *where, const char *port)
{
	int listener = socket(where->ai_family, SOCK_STREAM, 0), one = 1, fd;

	check(listener < 0 ? -1 : 0, "socket");
	check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "setsockopt");
	check(bind(listener, where->ai_addr, where->ai_addrlen), "bind");
	check(listen(listener, 1), "listen");
	printf("waiting for the other side on TCP port %s\n", port);
	fd = accept(listener, NULL, NULL);
	check(fd < 0 ? -1 : 0, "accept");
	close(listener);
	return fd;
}

int bare_socket(const struct arguments *a)
{
	struct addrinfo *found = resolve(a);
	int fd;

	if (a->host) {
		fd = socket(found->ai_family, SOCK_STREAM, 0);
		check(fd < 0 ? -1 : 0, "socket");
		check(connect(fd, found->ai_addr, found->ai_addrlen), "connect: does the other side run there?");
	} else {
		fd = wait_for_client(found, a->port);
	}
	freeaddrinfo(found);
	return fd;
}

void bare_exchange(int socket, const void *mine, void *theirs, size_t bytes)
{
	if (send(socket, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
	    recv(socket, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes)
		die("the other side has gone: it closed the socket");
}

bool bare_peer_gone(int socket)
{
	char byte;

	return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
