/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of communication management (IBTA 12.6-12.11) as a struct, and their way to and from the 256 bytes of a
 * MAD. Bytes are validated here once. One layout table per message says where each field is; no offset is typed twice.
 */
#ifndef ROCI_CM_MSG_H
#define ROCI_CM_MSG_H

#include <stdbool.h>
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

/* Which message a REJ or MRA is about (12.6.6, 12.6.7). */
enum roci_cm_about { ROCI_CM_ABOUT_REQ = 0, ROCI_CM_ABOUT_REP = 1, ROCI_CM_ABOUT_OTHER = 2 };

#define ROCI_APR_UNSUPPORTED 2 /* AP status, table 121 */

/* The path fields of a REQ, as its sender sees them. */
struct roci_cm_msg_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate, traffic_class, hop_limit, sl, subnet_local, ack_timeout;
};

/* Host byte order. Only the fields of the message's kind are meaningful, the others are zero. */
struct roci_cm_msg {
	/* MAD header */
	uint64_t tid;
	uint32_t modifier;
	uint16_t status;
	uint16_t attribute; /* enum roci_cm_attribute */

	uint32_t local_id, remote_id; /* of the sender, of the receiver; SIDR: local_id is the request id */
	uint64_t service_id, ca_guid;
	uint32_t qkey, qpn, local_eecn, remote_eecn, starting_psn;
	uint32_t vendor_id; /* REQ, REP: struct roci_cm_ece, whose options are the modifier */
	uint16_t pkey;
	uint16_t reason; /* REJ */
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_response_timeout,
		local_response_timeout; /* 5-bit response timeouts: asked of the receiver, held by the sender */
	uint8_t transport, ext_transport, flow_control, retry_count, mtu, rdc, rnr_retry_count, max_cm_retries, srq;
	uint8_t target_ack_delay, failover; /* REP */
	uint8_t about;                      /* REJ, MRA: enum roci_cm_about */
	uint8_t service_timeout;            /* MRA, 5-bit */
	uint8_t outcome;                    /* SIDR_REP, APR: status */
	uint8_t info_len;                   /* bytes of info that mean something */
	struct roci_cm_msg_path primary, alternate;
	uint8_t info[ROCI_CM_REJ_ARI];
	uint8_t private[ROCI_CM_MAX_PRIVATE]; /* roci_cm_private_room() of them */
};

enum roci_cm_parse_result {
	ROCI_CM_PARSE_OK,
	ROCI_CM_PARSE_NOT_CM,      /* another management class, version or method */
	ROCI_CM_PARSE_UNSUPPORTED, /* an attribute that is not in the table */
};
enum roci_cm_parse_result roci_cm_msg_parse(struct roci_cm_msg *msg, const uint8_t mad[ROCI_CM_MAD_BYTES]);

/* Writes all 256 bytes. msg->attribute must be one of the table; fields wider than their place are cut. */
void roci_cm_msg_build(const struct roci_cm_msg *msg, uint8_t mad[ROCI_CM_MAD_BYTES]);

/* Bytes of private data in a message of this kind; 0 for an unknown one. */
unsigned roci_cm_private_room(unsigned attribute);
#endif
