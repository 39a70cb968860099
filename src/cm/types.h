/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the messages of connection management carry, as consumers see it. Consumers include cm/cm.h.
 *
 * Times that end in _ns are nanoseconds. A "5-bit time" n is 4.096 us * 2^n (IBTA 9.7.6.1.3).
 */
#ifndef ROCI_CM_TYPES_H
#define ROCI_CM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/nat.h" /* IWYU pragma: export */

struct roci_cm;
struct roci_listener;
struct roci_conn;
struct roci_sidr;

#define ROCI_CM_MAD_BYTES 256

/* Bytes of private data and of additional information (ARI) in each message. A sender may fill less; the rest arrives
 * as zeros. The receiver always sees the full length, as with any InfiniBand CM. In a REQ or SIDR_REQ of an IP service
 * the IP CM header (cm_ip.h) takes the first ROCI_CM_IP_BYTES of the private data. */
#define ROCI_CM_REQ_PRIVATE      92
#define ROCI_CM_REP_PRIVATE      196
#define ROCI_CM_REJ_PRIVATE      148
#define ROCI_CM_REJ_ARI          72
#define ROCI_CM_RTU_PRIVATE      224
#define ROCI_CM_DREQ_PRIVATE     220
#define ROCI_CM_DREP_PRIVATE     224
#define ROCI_CM_SIDR_REQ_PRIVATE 216
#define ROCI_CM_SIDR_REP_PRIVATE 136
#define ROCI_CM_SIDR_REP_INFO    72
#define ROCI_CM_MAX_PRIVATE      224

struct roci_cm_bytes {
	const void *data;
	unsigned len;
};

/* Transport service type of a REQ (IBTA 12.7, Transport Service Type). */
enum roci_cm_transport { ROCI_CM_RC = 0, ROCI_CM_UC = 1, ROCI_CM_XRC = 3 };

/* A path as one side sees it: "local" is the side that has the struct. */
struct roci_cm_path {
	uint8_t sgid[16], dgid[16]; /* local, remote; IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex;           /* of sgid; on the passive side as given to roci_cm_rx(). Not on the wire */
	uint32_t flow_label;        /* 20 bits */
	uint16_t pkey;
	uint8_t traffic_class, hop_limit, sl;
	uint8_t mtu;         /* enum ibv_mtu: 1 to 5 */
	bool mtu_is_limit;   /* a REJ 26 named it: the path bears no more. Not on the wire */
	uint8_t rate;        /* enum ibv_rate */
	uint8_t packet_life; /* 5-bit time, one way. The wire carries it as the ACK timeout */
};

/* Enhanced connection establishment: what the drivers of the two QPs agree on. REQ and REP carry it where Linux puts
 * it: in the vendor id and in the attribute modifier. */
struct roci_cm_ece {
	uint32_t vendor_id; /* 24 bits; 0: nothing to agree on */
	uint32_t options;
};

/* What the peer said in its REQ or REP, turned to the receiver's side: responder_resources is what the peer asks of us
 * (its initiator depth), initiator_depth is what it offers us. */
struct roci_cm_peer {
	uint64_t ca_guid;
	uint32_t qpn, qkey, starting_psn;
	uint8_t transport; /* enum roci_cm_transport; of a REQ */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count;      /* of a REQ */
	uint8_t rnr_retry_count;  /* 7: no limit */
	uint8_t ack_timeout;      /* 5-bit time, of a REQ */
	uint8_t target_ack_delay; /* 5-bit time, of a REP */
	uint8_t failover;         /* of a REP */
	bool flow_control, srq;
	struct roci_cm_ece ece;
};

#endif
