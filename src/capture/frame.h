/* SPDX-License-Identifier: BSD-2-Clause */
/* What is around a RoCE packet: Ethernet with VLAN tags, Linux' cooked headers or nothing, IP, UDP. */
#ifndef CAPTURE_FRAME_H
#define CAPTURE_FRAME_H

#include "capture/reader.h"
#include "wire/icrc.h"

enum capture_protocol {
	CAPTURE_OTHER,    /* none of the others */
	CAPTURE_ROCE_V2,  /* UDP to port 4791 */
	CAPTURE_ROCE_V1,  /* Ethertype 0x8915: a GRH in the place of the IP header */
	CAPTURE_TCP,      /* iWARP, perhaps: see capture/iwarp.h */
	CAPTURE_ICMP,     /* of IPv4 or IPv6 */
	CAPTURE_FRAGMENT, /* an IP fragment that is not the first one of its packet */
};

#define CAPTURE_VLANS_MAX 3

struct capture_frame {
	enum capture_protocol protocol;
	uint8_t vlan_count;
	uint16_t vlan[CAPTURE_VLANS_MAX]; /* tags: priority, DEI, ID (IEEE 802.1Q) */
	uint16_t ethertype;               /* 0: unknown */
	const uint8_t *ethernet;          /* 14 bytes; NULL: none */

	/* IP header or GRH. Without it `ip` is NULL, and what follows is not set. */
	const uint8_t *ip;
	uint32_t ip_bytes; /* with options and extension headers */
	uint8_t version;   /* 4, 6 */
	uint8_t traffic_class, hop_limit, ip_proto;
	uint16_t ip_id;
	bool dont_fragment;
	bool first_fragment;   /* the rest of the packet is in other frames */
	uint32_t flow_label;   /* IPv6 */
	struct roci_flow flow; /* addresses; ports of UDP and TCP */

	const uint8_t *udp; /* UDP header; NULL: none */

	/* A capture may have several packets in one frame, before the kernel or the network card divides it (UDP
	 * segmentation offload). Each is taken alone: this is packet 0, 1, ... of the frame. */
	uint32_t segment, segment_bytes; /* segment_bytes: of each packet but the last; 0: the frame has one */
	uint32_t rest;                   /* bytes of the packets behind this one */

	/* What the protocol carries. RoCE: BTH to ICRC. Others: what follows the IP header, or the whole frame. */
	const uint8_t *bytes;
	uint32_t len;          /* bytes that are in the file */
	uint32_t original_len; /* bytes that the packet has */
};

/* Never fails: what is not understood is CAPTURE_OTHER. The pointers are into the record. */
void capture_frame_parse(const struct capture_record *record, struct capture_frame *frame);

/* Where a RoCEv2 frame holds several packets that follow each other, makes *frame its first one. */
void capture_frame_divide(struct capture_frame *frame);
/* Goes on to the next packet of such a frame. False: there is none. */
bool capture_frame_next(struct capture_frame *frame);

/* "IPv4 IGMP", "ARP", "Ethertype 0x88cc": what a frame of CAPTURE_OTHER is. */
#define CAPTURE_NAME_CHARS 48
const char *capture_frame_name(const struct capture_frame *frame, char name[CAPTURE_NAME_CHARS]);

enum capture_icrc {
	CAPTURE_ICRC_UNKNOWN, /* the packet is not there as a whole */
	CAPTURE_ICRC_RIGHT,
	CAPTURE_ICRC_WRONG,
	CAPTURE_ICRC_BEHIND_NAT, /* right for addresses that a NAT has replaced: capture/rewritten.h */
};

/* Computes the ICRC of a RoCE packet from its headers as they are: nothing is assumed of identification or flags. */
enum capture_icrc capture_frame_icrc(const struct capture_frame *frame);

#endif
