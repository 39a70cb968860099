/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static struct roci_peer_node **bucket(const struct roci_peer_table *table, const uint8_t gid[16], uint32_t number)
{
	uint64_t halves[2];

	memcpy(halves, gid, sizeof(halves));
	return &table->buckets[mix(mix(mix(table->salt ^ number) ^ halves[0]) ^ halves[1]) & table->mask];
}

int roci_peer_table_init(struct roci_peer_table *table, uint64_t salt)
{
	*table = (struct roci_peer_table){.mask = FIRST_BUCKETS - 1, .salt = salt};
	table->buckets = calloc(FIRST_BUCKETS, sizeof(struct roci_peer_node *));
	return table->buckets ? 0 : -ENOMEM;
}

void roci_peer_table_free(struct roci_peer_table *table)
{
	free(table->buckets);
	*table = (struct roci_peer_table){0};
}

static void push(struct roci_peer_table *table, struct roci_peer_node *node)
{
	struct roci_peer_node **head = bucket(table, node->gid, node->number);

	node->next = *head;
	*head = node;
}

static void grow(struct roci_peer_table *table)
{
	struct roci_peer_table old = *table;
	uint32_t buckets = 2 * (old.mask + 1);

	table->buckets = calloc(buckets, sizeof(struct roci_peer_node *));
	if (!table->buckets) {
		table->buckets = old.buckets;
		return;
	}
	table->mask = buckets - 1;
	for (uint32_t i = 0; i <= old.mask; i++) {
		for (struct roci_peer_node *node = old.buckets[i], *next; node; node = next) {
			next = node->next;
			push(table, node);
		}
	}
	free(old.buckets);
}

void roci_peer_insert(struct roci_peer_table *table, struct roci_peer_node *node, const uint8_t gid[16],
		      uint32_t number)
{
	if (table->count > table->mask)
		grow(table);
	node->gid = gid;
	node->number = number;
	node->in = true;
	table->count++;
	push(table, node);
}

void roci_peer_remove(struct roci_peer_table *table, struct roci_peer_node *node)
{
	struct roci_peer_node **at;

	if (!node->in)
		return;
	for (at = bucket(table, node->gid, node->number); *at != node; at = &(*at)->next)
		;
	*at = node->next;
	node->in = false;
	table->count--;
}

struct roci_peer_node *roci_peer_find(const struct roci_peer_table *table, const uint8_t gid[16], uint32_t number)
{
	struct roci_peer_node *node = *bucket(table, gid, number);

	while (node && (node->number != number || memcmp(node->gid, gid, 16)))
		node = node->next;
	return node;
}
