/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching to a process of the host: its file, the rings of both directions, the guard page. */
#ifndef ROCI_DEVICE_LOCAL_PEER_H
#define ROCI_DEVICE_LOCAL_PEER_H

#include "device/local/local.h"

void roci_local_name_file(char path[ROCI_LOCAL_PATH], const struct roci_registry *registry, unsigned slot);

/* Attaches to the living process of `slot`. Returns 0; -ENOTCONN: it is not local, and *why says why; or a negative
 * errno. */
int roci_local_attach(struct roci_local *l, unsigned slot, struct roci_local_peer **out, const char **why);
/* Nothing at the place where its ring to us was mapped is unmapped, see struct roci_local_peek. */
void roci_local_detach(struct roci_local *l, struct roci_local_peer *peer);
/* After all peers are detached, and nobody polls any more. */
void roci_local_free_spares(struct roci_local *l);
/* Whether the peer is the process that has its slot now. */
bool roci_local_is_current(const struct roci_local *l, const struct roci_local_peer *peer);

#endif
