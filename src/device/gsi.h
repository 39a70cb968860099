/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface (IBTA 13.5): QP1, through which management datagrams travel. It belongs to the host,
 * not to a process: whoever gets a MAD hands it to the process whose business it is (D6), by the port that a request is
 * for, by the slot in the communication id of everything else. For the dead, whoever received answers; and a request
 * that nobody listens for waits for a listener with whoever received it.
 */
#ifndef ROCI_DEVICE_GSI_H
#define ROCI_DEVICE_GSI_H

#include "cm/cm.h"
#include "device/link.h"

#define ROCI_QPN_GSI          1
#define ROCI_QKEY_GSI         0x80010000u
#define ROCI_COMM_SLOT_SHIFT  22 /* communication ids: slot, then 22 unpredictable bits */
#define ROCI_GSI_ROUTE_MEMORY 1024
#define ROCI_GSI_QUEUE        1024 /* MADs for doors that are full at the moment */
#define ROCI_GSI_PACKET_BYTES 288  /* BTH, DETH, MAD, ICRC: 280, with room */

struct roci_device;

/* A Unix socket holds as few as ten datagrams (net.unix.max_dgram_qlen), and a burst of requests is more. */
struct roci_gsi_waiting {
	struct roci_arrival from;
	uint16_t slot, len;
	uint8_t bytes[ROCI_GSI_PACKET_BYTES];
};

struct roci_gsi {
	uint32_t psn;
	uint64_t received, sent, forwarded, malformed, unsent;
	struct roci_gsi_waiting *queue; /* a ring, owned; NULL until it is needed */
	unsigned queue_first, queue_count;
	uint64_t queue_at; /* when full doors are tried again, ROCI_CM_NEVER: nothing waits */
	/* Where requests went lately: duplicates, and a REJ that withdraws one before it knows our id, go there too. */
	struct {
		uint8_t gid[16];
		uint32_t comm_id;
		uint16_t slot;
	} routes[ROCI_GSI_ROUTE_MEMORY];
};

/* A packet for QP1, parsed and its ICRC checked. */
void roci_gsi_rx(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, const struct roci_packet *pkt);

/* Tries full doors again. */
void roci_gsi_retry(struct roci_device *dev, uint64_t now);

/* Requests that the manager holds because nobody listens: whoever listens by now gets them. */
void roci_gsi_pass_held(struct roci_device *dev, uint64_t now);

/* Sends a MAD by the link, or to a process of this host where the link has no socket. What fails is counted. */
void roci_gsi_send(struct roci_device *dev, uint64_t now, const struct roci_cm_tx *tx);

#endif
