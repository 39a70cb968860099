/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of communication management (IBTA 12.6 to 12.11) as a struct, and as the 256 bytes of a MAD. Bytes are
 * validated here and nowhere else. In msg.c a table per message says where each field is; no offset is typed twice.
 */
#ifndef ROCI_CM_MSG_H
#define ROCI_CM_MSG_H

#include <stdint.h>

#include "cm/types.h"

#define ROCI_MAD_HEADER_BYTES 24

/* Attribute ids, IBTA table 100. */
enum roci_cm_attribute {
	ROCI_CM_ATTR_REQ = 0x10,
	ROCI_CM_ATTR_MRA = 0x11,
	ROCI_CM_ATTR_REJ = 0x12,
	ROCI_CM_ATTR_REP = 0x13,
	ROCI_CM_ATTR_RTU = 0x14,
	ROCI_CM_ATTR_DREQ = 0x15,
	ROCI_CM_ATTR_DREP = 0x16,
	ROCI_CM_ATTR_SIDR_REQ = 0x17,
	ROCI_CM_ATTR_SIDR_REP = 0x18,
	ROCI_CM_ATTR_LAP = 0x19,
	ROCI_CM_ATTR_APR = 0x1a,
};

/* Message REJected (12.6.7), Message MRAed (12.6.6). */
enum roci_cm_about { ROCI_CM_ABOUT_REQ = 0, ROCI_CM_ABOUT_REP = 1, ROCI_CM_ABOUT_OTHER = 2 };

#define ROCI_APR_UNSUPPORTED 2 /* AP status, table 121 */

/* The path fields of a REQ, as its sender sees them. */
struct roci_cm_msg_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate, traffic_class, hop_limit, sl, subnet_local, ack_timeout;
};

/* In host byte order. Fields that the message does not have are zero. */
struct roci_cm_msg {
	/* MAD header */
	uint64_t tid;
	uint32_t modifier; /* REQ, REP: the options of struct roci_cm_ece */
	uint16_t status;
	uint16_t attribute; /* enum roci_cm_attribute */

	uint32_t local_id, remote_id; /* communication ids of sender and receiver. SIDR: local_id is the request id */
	uint64_t service_id;          /* REQ, SIDR_REQ, SIDR_REP */
	uint64_t ca_guid;             /* REQ, REP: the sender's */
	uint32_t qkey, qpn;           /* the sender's; DREQ: the receiver's QPN */
	uint32_t local_eecn, remote_eecn;
	uint32_t starting_psn;
	uint32_t vendor_id; /* REQ, REP: of struct roci_cm_ece */
	uint16_t pkey;      /* REQ, SIDR_REQ */
	uint16_t reason;    /* REJ: enum roci_cm_reason */
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_response_timeout; /* REQ, 5-bit time: the receiver is to answer within */
	uint8_t local_response_timeout;  /* REQ, 5-bit time: the sender answers within */
	uint8_t transport, ext_transport, flow_control, retry_count, mtu, rdc, rnr_retry_count, max_cm_retries, srq;
	uint8_t target_ack_delay, failover;         /* REP */
	uint8_t about;                              /* REJ, MRA: enum roci_cm_about */
	uint8_t service_timeout;                    /* MRA, 5-bit time */
	uint8_t outcome;                            /* SIDR_REP: status; APR: AP status */
	uint8_t info_len;                           /* valid bytes of `info` */
	struct roci_cm_msg_path primary, alternate; /* REQ */
	uint8_t info[ROCI_CM_REJ_ARI];              /* REJ, SIDR_REP, APR: additional information */
	uint8_t private[ROCI_CM_MAX_PRIVATE];       /* the first roci_cm_private_room() bytes */
};

enum roci_cm_parse_result {
	ROCI_CM_PARSE_OK,
	ROCI_CM_PARSE_NOT_CM,      /* another management class, version or method */
	ROCI_CM_PARSE_UNSUPPORTED, /* an unknown attribute */
};
/* *msg is filled only for ROCI_CM_PARSE_OK. */
enum roci_cm_parse_result roci_cm_msg_parse(struct roci_cm_msg *msg, const uint8_t mad[ROCI_CM_MAD_BYTES]);

/* Writes all 256 bytes. msg->attribute must be one of the above. Values wider than their field are cut. */
void roci_cm_msg_build(const struct roci_cm_msg *msg, uint8_t mad[ROCI_CM_MAD_BYTES]);

/* Bytes of private data in this message; 0: unknown message. */
unsigned roci_cm_private_room(unsigned attribute);

#endif
