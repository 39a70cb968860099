/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface (IBTA 13.5): QP1, which carries management datagrams. All processes of a host share
 * it. A process that receives a MAD forwards it to the one it is for: a request goes by its service's port, anything
 * else by the slot in the communication id. Where that process is dead, the receiver answers. Where nobody listens yet,
 * the request waits at the receiver.
 */
#ifndef ROCI_DEVICE_GSI_H
#define ROCI_DEVICE_GSI_H

#include "cm/cm.h"
#include "device/link.h"
#include "wire/nat.h"

#define ROCI_QPN_GSI          1
#define ROCI_QKEY_GSI         0x80010000u
#define ROCI_COMM_SLOT_SHIFT  22 /* communication ids: slot, then 22 unpredictable bits */
#define ROCI_GSI_ROUTE_MEMORY 1024
#define ROCI_GSI_QUEUE        1024 /* MADs that wait for a side door with room */
#define ROCI_GSI_PACKET_BYTES 336  /* BTH, HELLO with a MAD, ICRC: 328, with room */
#define ROCI_GSI_BATCH        16   /* MADs that are sent in one call */

struct roci_device;

/* A MAD that waits for a side door with room: a Unix socket holds as few as ten datagrams (net.unix.max_dgram_qlen),
 * and a burst of requests is more. */
struct roci_gsi_waiting {
	struct roci_arrival from;
	uint16_t slot, len;
	uint8_t bytes[ROCI_GSI_PACKET_BYTES];
};

/* A packet to QP1, and all that its frame borrows. */
struct roci_gsi_outgoing {
	struct roci_cm_tx tx; /* of a MAD */
	struct roci_av av;
	struct roci_nat_way meant;
	uint8_t header[ROCI_MAX_HEADER_BYTES], head[ROCI_HELLO_BYTES];
	struct roci_span payload[2];
};

struct roci_gsi {
	uint32_t psn;
	struct roci_gsi_outgoing batch[ROCI_GSI_BATCH]; /* while it is sent: the stacks of programs may be small */
	struct roci_gsi_waiting *queue;                 /* a ring, owned; NULL until it is needed */
	unsigned queue_first, queue_count;
	uint64_t queue_at;  /* when the queue is tried again; ROCI_CM_NEVER: it is empty */
	uint64_t probes_at; /* when probes of the path MTU go to side doors again */
	/* Where requests went lately. Duplicates go there too, and so does a REJ that does not have our id yet. */
	struct {
		uint8_t gid[16];
		uint32_t comm_id;
		uint16_t slot;
	} routes[ROCI_GSI_ROUTE_MEMORY];
};

/* A packet for QP1, parsed and its ICRC checked. claim: what it claims about a NAT (nat.h), or NULL. */
void roci_gsi_rx(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, const struct roci_packet *pkt,
		 const struct roci_hello *claim);
/* Whether it has the form of a MAD as the standard has it. */
bool roci_gsi_is_mad(const struct roci_packet *pkt);

/* Sends a packet for QP1, *pkt and its payload, from sgid to dgid; where nat->port is not 0, to that port. False: there
 * is no such address here, or no port 4791. */
bool roci_gsi_send_to(struct roci_device *dev, const uint8_t sgid[16], const uint8_t dgid[16],
		      const struct roci_nat_terms *nat, struct roci_packet *pkt, const struct roci_span *payload,
		      unsigned spans);

/* Sends what waits for a side door with room. */
void roci_gsi_send_queued(struct roci_device *dev, uint64_t now);

/* Forwards requests that wait for a listener (cm/pending.h) to processes that listen by now. */
void roci_gsi_forward_pending(struct roci_device *dev, uint64_t now);

/* Sends MADs that the connection manager has ready, ROCI_GSI_BATCH at most: by the link, together; where UDP port 4791
 * cannot be had, by side doors to processes of this host. What fails is counted. False: there were none. */
bool roci_gsi_send(struct roci_device *dev, uint64_t now);

#endif
