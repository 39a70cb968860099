/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a QPN tells the slot of its process (registry.h), to those who share a key: the lower 14 bits are the QPN's place
 * in the process's block, the upper ten are the slot, masked by a keyed mix of the lower bits. Who has seen other QPNs
 * of the process cannot tell the upper bits of the next one.
 *
 * All processes of a network namespace need the same key, whoever's they are: it is made from the kernel's boot_id,
 * which every process of the host may read, and nobody else. The mix is four rounds of adding, multiplying and
 * shifting, since classic BPF must do it, too (steer.c). It is no cipher.
 */
#ifndef ROCI_DEVICE_QPN_SLOT_H
#define ROCI_DEVICE_QPN_SLOT_H

#include <stdint.h>

#define ROCI_SLOTS         1024 /* slot 0 is nobody's */
#define ROCI_SLOT_SHIFT    14
#define ROCI_QPNS_PER_SLOT (1u << ROCI_SLOT_SHIFT)

#define ROCI_SLOT_ROUNDS     4
#define ROCI_SLOT_MULTIPLIER 0x7feb352du
#define ROCI_SLOT_FOLD       15 /* a round ends with x ^= x >> 15 */
#define ROCI_SLOT_MASK_SHIFT 22 /* the upper ten bits of the mix are the mask */

struct roci_slot_key {
	uint32_t words[ROCI_SLOT_ROUNDS];
};

/* Reads the key of the network namespace whose inode is `netns`. Without /proc it is the inode's number alone. */
void roci_slot_key_read(struct roci_slot_key *key, unsigned long netns);

/* The mask of the slot in a QPN with these lower bits. */
static inline uint32_t roci_slot_mask(const struct roci_slot_key *key, uint32_t qpn)
{
	uint32_t x = qpn & (ROCI_QPNS_PER_SLOT - 1);

	for (unsigned i = 0; i < ROCI_SLOT_ROUNDS; i++) {
		x = (x + key->words[i]) * ROCI_SLOT_MULTIPLIER;
		x ^= x >> ROCI_SLOT_FOLD;
	}
	return x >> ROCI_SLOT_MASK_SHIFT;
}

/* The slot of the process that has this QPN, if any has. */
static inline unsigned roci_slot_of(const struct roci_slot_key *key, uint32_t qpn)
{
	return qpn >> ROCI_SLOT_SHIFT ^ roci_slot_mask(key, qpn);
}

/* The QPN with place `offset` (< ROCI_QPNS_PER_SLOT) in the block of `slot`. */
static inline uint32_t roci_slot_qpn(const struct roci_slot_key *key, unsigned slot, uint32_t offset)
{
	return (slot ^ roci_slot_mask(key, offset)) << ROCI_SLOT_SHIFT | offset;
}

#endif
