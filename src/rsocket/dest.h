/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom a datagram rsocket talks to, and how each is reached over UD.
 *
 * Whoever can send to the UDP port gets an entry, under any source address that he likes. So there is a bound: beyond
 * it the entry that was not used for longest goes, but never the one that the socket is connected to. Who was forgotten
 * is met again over UDP, as at first.
 */
#ifndef ROCI_RSOCKET_DEST_H
#define ROCI_RSOCKET_DEST_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rdmacm/public.h"

#define RS_MAX_DESTS 1024 /* more than there can be sends outstanding */

struct rs_dest {
	struct rs_dest *next;
	struct sockaddr_storage addr;
	struct ibv_ah *ah;
	uint32_t qpn;   /* 0: not known yet */
	unsigned sends; /* outstanding over UD, which need the address handle: none is forgotten meanwhile */
};

struct rs_dests {
	struct rs_dest *first; /* the one used last */
	unsigned count;
	struct rs_dest *peer; /* connected to */
};

static inline socklen_t rs_name_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The entry of that name, a new one if need be, at which another may be forgotten. NULL: out of memory. */
struct rs_dest *rs_dest_find(struct rs_dests *dests, const struct sockaddr_storage *addr);
/* The QPN that it told over UDP, and the way to it from `id`, as rdma_cm resolves it. */
void rs_dest_learn(struct rs_dest *dest, struct rdma_cm_id *id, uint32_t qpn);
/* Forgets all. */
void rs_dests_free(struct rs_dests *dests);

#endif
