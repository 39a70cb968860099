/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/frame.h"

#include <stdio.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/ip.h"
#include "wire/packet.h"

/* https://www.tcpdump.org/linktypes.html */
enum link_type {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_LINUX_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_LINUX_SLL2 = 276,
};

enum ethertype {
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_VLAN = 0x8100,
	TYPE_IPV6 = 0x86dd,
	TYPE_QINQ = 0x88a8,
	TYPE_ROCE_V1 = 0x8915,
	TYPE_QINQ_OLD = 0x9100,
};

enum ip_proto {
	PROTO_HOP_BY_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_IGMP = 2,
	PROTO_TCP = 6,
	PROTO_UDP = ROCI_IP_PROTO_UDP,
	PROTO_BTH = 0x1b, /* next header of a GRH: IBTA A16.4.3 */
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_AH = 51,
	PROTO_ICMPV6 = 58,
	PROTO_DESTINATION = 60,
};

#define ETHERNET_BYTES 14
#define SLL_BYTES      16
#define SLL2_BYTES     20
#define VLAN_BYTES     4
#define TCP_MIN_BYTES  20
#define EXTENSIONS_MAX 8

/* What is left of a frame. */
struct rest {
	const uint8_t *at;
	uint32_t len;  /* in the file */
	uint32_t wire; /* on the wire, at least `len` */
};

static bool drop(struct rest *rest, uint32_t bytes)
{
	if (rest->len < bytes)
		return false;
	rest->at += bytes;
	rest->len -= bytes;
	rest->wire -= bytes;
	return true;
}

/* Nothing of a frame is behind `wire` bytes: Ethernet pads short ones. */
static void limit(struct rest *rest, uint32_t wire)
{
	if (wire < rest->wire)
		rest->wire = wire;
	if (rest->len > rest->wire)
		rest->len = rest->wire;
}

static void take_rest(struct capture_frame *f, const struct rest *rest)
{
	f->bytes = rest->at;
	f->len = rest->len;
	f->original_len = rest->wire;
}

/* ---- link layers ---- */

static uint16_t ip_type(const struct rest *rest)
{
	unsigned version = rest->len ? rest->at[0] >> 4 : 0;

	return version == 4 ? TYPE_IPV4 : version == 6 ? TYPE_IPV6 : 0;
}

/* Takes the tags away; `type` is what follows the Ethernet header. */
static uint16_t take_vlans(struct capture_frame *f, struct rest *rest, uint16_t type)
{
	while (type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD) {
		const uint8_t *tag = rest->at;

		if (f->vlan_count == CAPTURE_VLANS_MAX || !drop(rest, VLAN_BYTES))
			return 0;
		f->vlan[f->vlan_count++] = roci_get_be16(tag);
		type = roci_get_be16(tag + 2);
	}
	return type;
}

/* Takes the link layer's header away. Returns the Ethertype of what follows; 0: nothing that is known. */
static uint16_t take_link(struct capture_frame *f, struct rest *rest, uint32_t link_type)
{
	const uint8_t *head = rest->at;

	switch (link_type) {
	case LINK_ETHERNET:
		if (!drop(rest, ETHERNET_BYTES))
			return 0;
		f->ethernet = head;
		return take_vlans(f, rest, roci_get_be16(head + 12));
	case LINK_LINUX_SLL: return drop(rest, SLL_BYTES) ? take_vlans(f, rest, roci_get_be16(head + 14)) : 0;
	case LINK_LINUX_SLL2: return drop(rest, SLL2_BYTES) ? take_vlans(f, rest, roci_get_be16(head)) : 0;
	case LINK_NULL:
	case LINK_LOOP: return drop(rest, 4) ? ip_type(rest) : 0;
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6: return ip_type(rest);
	default: return 0;
	}
}

/* ---- IP ---- */

static bool take_ipv4(struct capture_frame *f, struct rest *rest)
{
	const uint8_t *ip = rest->at;
	uint16_t fragment;

	if (rest->len < ROCI_IPV4_BYTES || ip[0] >> 4 != 4)
		return false;
	f->ip_bytes = (ip[0] & 0xfu) * 4;
	if (f->ip_bytes < ROCI_IPV4_BYTES || rest->len < f->ip_bytes)
		return false;
	f->ip = ip;
	f->version = 4;
	f->traffic_class = ip[1];
	f->ip_id = roci_get_be16(ip + 4);
	fragment = roci_get_be16(ip + 6);
	f->dont_fragment = fragment & 0x4000;
	f->hop_limit = ip[8];
	f->ip_proto = ip[9];
	roci_gid_from_ipv4(f->flow.src, ip + 12);
	roci_gid_from_ipv4(f->flow.dst, ip + 16);
	if (roci_get_be16(ip + 2) >= f->ip_bytes)
		limit(rest, roci_get_be16(ip + 2));
	f->first_fragment = (fragment & 0x3fff) == 0x2000;
	if (fragment & 0x1fff)
		f->protocol = CAPTURE_FRAGMENT;
	return drop(rest, f->ip_bytes);
}

/* Goes over extension headers (RFC 8200 s.4) up to one that is none. */
static bool take_extensions(struct capture_frame *f, struct rest *rest)
{
	for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
		const uint8_t *head = rest->at;
		uint32_t bytes = 8;

		switch (f->ip_proto) {
		case PROTO_HOP_BY_HOP:
		case PROTO_ROUTING:
		case PROTO_DESTINATION:
		case PROTO_FRAGMENT: break;
		default: return true;
		}
		if (rest->len < bytes)
			return false;
		if (f->ip_proto == PROTO_FRAGMENT) {
			uint16_t fragment = roci_get_be16(head + 2);

			f->first_fragment = (fragment & 0xfff9) == 1;
			if (fragment & 0xfff8)
				f->protocol = CAPTURE_FRAGMENT;
		} else {
			bytes += head[1] * 8u;
		}
		if (!drop(rest, bytes))
			return false;
		f->ip_bytes += bytes;
		f->ip_proto = head[0];
		if (f->protocol == CAPTURE_FRAGMENT)
			return true;
	}
	return false;
}

/* IPv6, and the GRH of RoCEv1, which is like it (IBTA 8.3). */
static bool take_ipv6(struct capture_frame *f, struct rest *rest)
{
	const uint8_t *ip = rest->at;
	uint32_t word;

	if (rest->len < ROCI_IPV6_BYTES || ip[0] >> 4 != 6)
		return false;
	word = roci_get_be32(ip);
	f->ip = ip;
	f->ip_bytes = ROCI_IPV6_BYTES;
	f->version = 6;
	f->traffic_class = (uint8_t)(word >> 20);
	f->flow_label = word & 0xfffff;
	f->ip_proto = ip[6];
	f->hop_limit = ip[7];
	memcpy(f->flow.src, ip + 8, 16);
	memcpy(f->flow.dst, ip + 24, 16);
	if (roci_get_be16(ip + 4)) /* or it is too long for the field */
		limit(rest, ROCI_IPV6_BYTES + roci_get_be16(ip + 4));
	return drop(rest, ROCI_IPV6_BYTES);
}

/* ---- what IP carries ---- */

static void take_udp(struct capture_frame *f, struct rest *rest)
{
	const uint8_t *udp = rest->at;
	uint16_t len;

	if (rest->len < ROCI_UDP_BYTES)
		return;
	f->flow.src_port = roci_get_be16(udp);
	f->flow.dst_port = roci_get_be16(udp + 2);
	if (f->flow.dst_port != ROCI_UDP_PORT)
		return;
	f->udp = udp;
	len = roci_get_be16(udp + 4);
	if (f->first_fragment && len > rest->wire)
		rest->wire = len;
	else if (len >= ROCI_UDP_BYTES)
		limit(rest, len);
	drop(rest, ROCI_UDP_BYTES);
	take_rest(f, rest);
	f->protocol = CAPTURE_ROCE_V2;
}

static void take_tcp(struct capture_frame *f, struct rest *rest)
{
	const uint8_t *tcp = rest->at;

	if (rest->len < TCP_MIN_BYTES)
		return;
	f->flow.src_port = roci_get_be16(tcp);
	f->flow.dst_port = roci_get_be16(tcp + 2);
	if (!drop(rest, (tcp[12] >> 4) * 4u) || tcp[12] >> 4 < TCP_MIN_BYTES / 4)
		return;
	take_rest(f, rest);
	f->protocol = CAPTURE_TCP;
}

static void take_payload(struct capture_frame *f, struct rest *rest)
{
	take_rest(f, rest);
	if (f->protocol == CAPTURE_FRAGMENT)
		return;
	switch (f->ip_proto) {
	case PROTO_UDP: take_udp(f, rest); break;
	case PROTO_TCP: take_tcp(f, rest); break;
	case PROTO_ICMP:
	case PROTO_ICMPV6: f->protocol = CAPTURE_ICMP; break;
	default: break;
	}
}

void capture_frame_parse(const struct capture_record *record, struct capture_frame *f)
{
	struct rest rest = {record->bytes, record->len, record->original_len};

	memset(f, 0, sizeof(*f));
	take_rest(f, &rest);
	f->ethertype = take_link(f, &rest, record->link_type);
	switch (f->ethertype) {
	case TYPE_IPV4:
		if (take_ipv4(f, &rest))
			take_payload(f, &rest);
		break;
	case TYPE_IPV6:
		if (take_ipv6(f, &rest) && take_extensions(f, &rest))
			take_payload(f, &rest);
		break;
	case TYPE_ROCE_V1:
		if (!take_ipv6(f, &rest) || f->ip_proto != PROTO_BTH)
			break;
		take_rest(f, &rest);
		f->protocol = CAPTURE_ROCE_V1;
		break;
	default: break;
	}
}

const char *capture_frame_name(const struct capture_frame *f, char name[CAPTURE_NAME_CHARS])
{
	static const char *const protocols[256] = {[PROTO_HOP_BY_HOP] = "hop-by-hop options",
						   [PROTO_ICMP] = "ICMP",
						   [PROTO_IGMP] = "IGMP",
						   [PROTO_TCP] = "TCP",
						   [PROTO_UDP] = "UDP",
						   [PROTO_ICMPV6] = "ICMPv6",
						   [PROTO_AH] = "AH"};

	if (f->ip && f->ethertype == TYPE_ROCE_V1)
		snprintf(name, CAPTURE_NAME_CHARS, "RoCEv1 with next header 0x%02x", f->ip_proto);
	else if (f->ip && f->ip_proto == PROTO_UDP && f->protocol == CAPTURE_OTHER)
		snprintf(name, CAPTURE_NAME_CHARS, "UDP to port %u", f->flow.dst_port);
	else if (f->ip && protocols[f->ip_proto])
		snprintf(name, CAPTURE_NAME_CHARS, "%s", protocols[f->ip_proto]);
	else if (f->ip)
		snprintf(name, CAPTURE_NAME_CHARS, "IP protocol %u", f->ip_proto);
	else if (f->ethertype == TYPE_ARP)
		snprintf(name, CAPTURE_NAME_CHARS, "ARP");
	else if (f->ethertype == TYPE_IPV4 || f->ethertype == TYPE_IPV6)
		snprintf(name, CAPTURE_NAME_CHARS, "damaged IP header");
	else if (f->ethertype)
		snprintf(name, CAPTURE_NAME_CHARS, "Ethertype 0x%04x", f->ethertype);
	else
		snprintf(name, CAPTURE_NAME_CHARS, "unknown link layer");
	return name;
}

/* ---- ICRC ---- */

/* What routers may write, as ones: IBTA A17.3.3, A16.5.1. `to` has room for ip_bytes. */
static void mask_ip(const struct capture_frame *f, uint8_t *to)
{
	memcpy(to, f->ip, f->ip_bytes);
	if (f->version == 4) {
		to[1] = 0xff;                   /* TOS */
		to[8] = to[10] = to[11] = 0xff; /* TTL, checksum */
		return;
	}
	to[0] |= 0x0f;
	to[1] = to[2] = to[3] = 0xff; /* traffic class, flow label */
	to[7] = 0xff;                 /* hop limit */
}

/* The headers that the packet has when the frame is divided. Identifications count up (RFC 6864; inet_gso_segment() of
 * Linux). */
static void put_segment(const struct capture_frame *f, uint8_t *ip, uint8_t *udp)
{
	uint16_t udp_len = (uint16_t)(f->len + ROCI_UDP_BYTES);

	roci_put_be16(udp + 4, udp_len);
	if (f->version == 4) {
		roci_put_be16(ip + 2, (uint16_t)(f->ip_bytes + udp_len));
		roci_put_be16(ip + 4, (uint16_t)(f->ip_id + f->segment));
	} else {
		roci_put_be16(ip + 4, (uint16_t)(f->ip_bytes - ROCI_IPV6_BYTES + udp_len));
	}
}

enum capture_icrc capture_frame_icrc(const struct capture_frame *f)
{
	uint8_t image[8 + 64 + ROCI_UDP_BYTES], computed[ROCI_ICRC_BYTES];
	uint32_t at = 8, covered = f->len - ROCI_ICRC_BYTES, crc;

	if (f->len < ROCI_MIN_PACKET_BYTES || f->len != f->original_len || f->first_fragment || f->ip_bytes > 64)
		return CAPTURE_ICRC_UNKNOWN;
	memset(image, 0xff, at); /* the LRH, which there is none of */
	mask_ip(f, image + at);
	at += f->ip_bytes;
	if (f->protocol == CAPTURE_ROCE_V2) {
		memcpy(image + at, f->udp, ROCI_UDP_BYTES);
		if (f->segment_bytes)
			put_segment(f, image + 8, image + at);
		image[at + 6] = image[at + 7] = 0xff; /* checksum */
		at += ROCI_UDP_BYTES;
	}
	crc = roci_icrc_update(0, image, at);
	crc = roci_icrc_headers(crc, f->bytes, ROCI_BTH_BYTES);
	crc = roci_icrc_update(crc, f->bytes + ROCI_BTH_BYTES, covered - ROCI_BTH_BYTES);
	roci_icrc_store(crc, computed);
	if (!memcmp(computed, f->bytes + covered, sizeof(computed)))
		return CAPTURE_ICRC_RIGHT;
	if (f->bytes[0] != (ROCI_TRANSPORT_RC | ROCI_OP_FLUSH))
		return CAPTURE_ICRC_WRONG;
	roci_icrc_store(roci_icrc_soft_roce_flush(crc, f->bytes, covered), computed);
	return memcmp(computed, f->bytes + covered, sizeof(computed)) ? CAPTURE_ICRC_WRONG : CAPTURE_ICRC_RIGHT;
}

/* ---- several packets in a frame ---- */

/* Whether a packet for the same QP, with the next PSN, begins at `at`. */
static bool follows(const struct capture_frame *f, uint32_t at, uint32_t count)
{
	const uint8_t *first = f->bytes, *bytes = f->bytes + at;

	return roci_opcode_info(bytes[0]) && !(bytes[1] & 0xf) && !memcmp(first + 5, bytes + 5, 3) &&
	       roci_get_be24(bytes + 9) == ((roci_get_be24(first + 9) + count) & ROCI_PSN_MASK);
}

/* All but the last have the same length. */
static bool divides(const struct capture_frame *f, uint32_t bytes)
{
	struct roci_packet pkt;
	uint32_t count = 0, at;

	for (at = 0; at < f->len; at += bytes, count++) {
		uint32_t len = f->len - at < bytes ? f->len - at : bytes;

		if (len < ROCI_MIN_PACKET_BYTES || !follows(f, at, count) ||
		    roci_packet_parse(&pkt, f->bytes + at, len) != ROCI_PARSE_OK)
			return false;
	}
	return count > 1;
}

void capture_frame_divide(struct capture_frame *f)
{
	if (f->protocol != CAPTURE_ROCE_V2 || f->len != f->original_len || f->first_fragment)
		return;
	/* The commonest frame has one packet, and its ICRC says so. */
	if (f->len < 2 * ROCI_MIN_PACKET_BYTES || capture_frame_icrc(f) == CAPTURE_ICRC_RIGHT)
		return;
	for (uint32_t bytes = ROCI_MIN_PACKET_BYTES; bytes <= f->len - ROCI_MIN_PACKET_BYTES; bytes += 4) {
		if (!follows(f, bytes, 1) || !divides(f, bytes))
			continue;
		f->segment_bytes = bytes;
		f->rest = f->len - bytes;
		f->len = f->original_len = bytes;
		return;
	}
}

bool capture_frame_next(struct capture_frame *f)
{
	if (!f->rest)
		return false;
	f->bytes += f->segment_bytes;
	f->segment++;
	f->len = f->original_len = f->rest < f->segment_bytes ? f->rest : f->segment_bytes;
	f->rest -= f->len;
	return true;
}
