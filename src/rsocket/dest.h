/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destinations of a datagram rsocket, and how each is reached over UD.
 *
 * A message over UDP carries its sender's QPN, and anyone can send one under any address. So a QPN is believed only in
 * an answer to a message of ours. If a peer shows another QPN unasked (it may have started again, or somebody else sent
 * that), the next messages to it go over UDP until it has answered. That way is slower, but every rsocket accepts it.
 *
 * Only what we send makes an entry. Their number is limited: a new one replaces the entry that was not used for
 * longest, but never the connected peer's. A forgotten peer is asked again.
 */
#ifndef ROCI_RSOCKET_DEST_H
#define ROCI_RSOCKET_DEST_H

#include <netinet/in.h>
#include <stdbool.h>
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
	bool asked;     /* a message went over UDP, and was not answered yet */
	bool doubted;   /* the peer has shown another QPN */
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
/* The entry of that address, to send to it. It may be new and replace another. NULL: out of memory. */
struct rs_dest *rs_dest_use(struct rs_dests *dests, const struct sockaddr_storage *addr);
/* True: its next message goes over UD. */
static inline bool rs_dest_is_known(const struct rs_dest *dest)
{
	return dest->qpn && !dest->doubted;
}
/* A message over UDP claims that the peer at `addr` has that QPN. `answer`: it is an answer to a message. The address
 * handle is resolved by rdma_cm for `id`. */
void rs_dest_heard(struct rs_dests *dests, const struct sockaddr_storage *addr, struct rdma_cm_id *id, uint32_t qpn,
		   bool answer);
/* Frees all entries. */
void rs_dests_free(struct rs_dests *dests);

#endif
