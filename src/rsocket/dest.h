/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peers of a datagram rsocket, and how each is reached over UD.
 *
 * Anyone who can send to the UDP port makes an entry, under any source address. So their number is limited: a new one
 * replaces the entry that was not used for longest, but never the connected peer's. A forgotten peer is learned again
 * over UDP.
 */
#ifndef ROCI_RSOCKET_DEST_H
#define ROCI_RSOCKET_DEST_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "engine/list.h"
#include "rdmacm/public.h"

#define RS_MAX_DESTS 1024 /* more than outstanding sends */

struct rs_dest {
	struct roci_list used; /* node of rs_dests */
	struct sockaddr_storage addr;
	struct ibv_ah *ah;
	uint32_t qpn;   /* 0: not known yet */
	unsigned sends; /* outstanding over UD: they need the address handle, so the entry stays */
};

struct rs_dests {
	struct roci_list used; /* the one used last is the last */
	unsigned count;
	struct rs_dest *peer; /* connected to */
};

static inline socklen_t rs_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void rs_dests_init(struct rs_dests *dests);
/* The entry of that address, which may be new and replace another. NULL: out of memory. */
struct rs_dest *rs_dest_find(struct rs_dests *dests, const struct sockaddr_storage *addr);
/* Records the peer's QPN, and its address handle, which rdma_cm resolves for `id`. */
void rs_dest_learn(struct rs_dest *dest, struct rdma_cm_id *id, uint32_t qpn);
/* Frees all entries. */
void rs_dests_free(struct rs_dests *dests);

#endif
