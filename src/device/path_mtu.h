/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of the path MTU to other hosts. The interface's MTU is an upper bound; what a router on the way does
 * not bear it drops, and the ICMP message that says so often gets lost, too (RFC 2923). rdma_cm finds out: probes go
 * ahead of the first REQ to a host (wire/mtu_probe.h). What they found counts for ROCI_PATH_MTU_NS for all that is sent
 * there: connections ask for no more, and packets of QPs whose program wanted more go in IP fragments.
 */
#ifndef ROCI_DEVICE_PATH_MTU_H
#define ROCI_DEVICE_PATH_MTU_H

#include <stdint.h>

#include "cm/cm.h"

#define ROCI_PATH_MTU_NS     UINT64_C(600000000000) /* as Linux remembers what ICMP says: RFC 1191 s.6.3 */
#define ROCI_PATH_MTU_NOBODY UINT64_C(10000000000)  /* nanoseconds; longer than between two REQs */
#define ROCI_PATH_MTU_PLACES 64

struct roci_av;
struct roci_device;

/* Zeroed: nothing is known. A host takes the place of another one now and then. */
struct roci_path_mtus {
	struct {
		uint8_t from[16], gid[16]; /* zero `from`: any address of this host */
		uint64_t until;
		uint8_t mtu; /* enum ibv_mtu; 0: nobody is there, or the place is free */
	} places[ROCI_PATH_MTU_PLACES];
};

/* From address `from` of this host: others may leave by another interface, on another way. */
void roci_path_mtu_learn(struct roci_path_mtus *m, uint64_t now, const uint8_t from[16], const uint8_t gid[16],
			 uint8_t mtu);

/* Nothing has UDP port 4791 there, ICMP says: a REQ to `gid` goes without probes for a while, since the host's ICMP
 * messages about them would take the place of one about the REQ (they are limited: icmp(7), icmp_ratelimit). */
void roci_path_mtu_nobody(struct roci_path_mtus *m, uint64_t now, const uint8_t gid[16]);

/* UDP payload that one packet takes from `from` to `gid`; 0: nothing is known, or no longer. */
uint32_t roci_path_mtu_carries(const struct roci_path_mtus *m, uint64_t now, const uint8_t from[16],
			       const uint8_t gid[16]);

/* *tx is about to be sent by *av: if it is a REQ to a host whose path MTU is not known, its probes go ahead of it. */
void roci_path_mtu_probe(struct roci_device *dev, uint64_t now, const struct roci_av *av, const struct roci_cm_tx *tx);

#endif
