/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of the path MTU to other hosts. The interface's MTU is an upper bound. A router on the way drops longer
 * packets than it can carry, and the ICMP message that says so often gets lost (RFC 2923). rdma_cm finds it out: probes
 * precede the first REQ to a host (wire/mtu_probe.h). Their result holds for ROCI_PATH_MTU_NS, for all that is sent
 * there: connections ask for no more, and packets of QPs whose program wanted more go in IP fragments, or in pieces.
 */
#ifndef ROCI_DEVICE_PATH_MTU_H
#define ROCI_DEVICE_PATH_MTU_H

#include <stdint.h>

#include "cm/cm.h"

#define ROCI_PATH_MTU_NS     UINT64_C(600000000000) /* as long as Linux remembers ICMP's: RFC 1191 s.6.3 */
#define ROCI_PATH_MTU_NOBODY UINT64_C(10000000000)  /* nanoseconds; longer than between two REQs */
#define ROCI_PATH_MTU_PLACES 64

struct roci_av;
struct roci_device;

/* Zeroed: nothing is known. A host may take the place of another one. */
struct roci_path_mtus {
	struct {
		uint8_t from[16], gid[16]; /* zero `from`: any address of this host */
		uint64_t until;
		uint8_t mtu; /* enum ibv_mtu; 0: nobody is there, or the place is free */
	} places[ROCI_PATH_MTU_PLACES];
};

/* The path from address `from` of this host to `gid` carries packets of `mtu`. From another address, packets may leave
 * by another interface. */
void roci_path_mtu_learn(struct roci_path_mtus *m, uint64_t now, const uint8_t from[16], const uint8_t gid[16],
			 uint8_t mtu);

/* ICMP says that nothing has UDP port 4791 at `gid`. For a while a REQ goes there without probes: the host limits its
 * ICMP messages (icmp(7), icmp_ratelimit), and those about probes would use up the one about the REQ. */
void roci_path_mtu_nobody(struct roci_path_mtus *m, uint64_t now, const uint8_t gid[16]);

/* UDP payload that one packet carries from `from` to `gid`; 0: nothing is known, or no longer. */
uint32_t roci_path_mtu_carries(const struct roci_path_mtus *m, uint64_t now, const uint8_t from[16],
			       const uint8_t gid[16]);

/* *tx is about to be sent by *av. If it is a REQ to a host whose path MTU is not known, sends its probes. */
void roci_path_mtu_probe(struct roci_device *dev, uint64_t now, const struct roci_av *av, const struct roci_cm_tx *tx);

#endif
