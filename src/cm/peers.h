/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of objects, by a number of their peer (communication id, QPN) and the peer's address. Peers choose the
 * numbers, so the hash has a salt.
 */
#ifndef ROCI_CM_PEERS_H
#define ROCI_CM_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct roci_peer_node {
	struct roci_peer_node *next;
	const uint8_t *gid; /* borrowed */
	uint32_t number;
	bool in; /* in a table */
};

struct roci_peer_table {
	struct roci_peer_node **buckets; /* owned */
	uint32_t mask, count;
	uint64_t salt;
};

/* `salt` is unpredictable in production. -ENOMEM. */
int roci_peer_table_init(struct roci_peer_table *table, uint64_t salt);
void roci_peer_table_free(struct roci_peer_table *table);
/* Always succeeds: without memory to grow, chains become longer. The node must be in no table; `gid` must stay valid.
 */
void roci_peer_insert(struct roci_peer_table *table, struct roci_peer_node *node, const uint8_t gid[16],
		      uint32_t number);
/* Harmless for a node that is in no table. */
void roci_peer_remove(struct roci_peer_table *table, struct roci_peer_node *node);
/* The node inserted last, if there are several; NULL: none. */
struct roci_peer_node *roci_peer_find(const struct roci_peer_table *table, const uint8_t gid[16], uint32_t number);

#endif
