/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/fields.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "capture/cm_fields.h"
#include "capture/field_out.h"
#include "capture/line.h"
#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/print.h"

#define HAS(pkt, hdr) ((pkt)->op->headers & 1u << ROCI_HDR_##hdr)

/* ---- what is around the packet ---- */

static void put_link(struct capture_field_out *out, const struct capture_frame *f)
{
	if (f->ethernet) {
		capture_out_bytes(out, "eth", "dst", CAPTURE_FIELD_MAC, f->ethernet, 6);
		capture_out_bytes(out, "eth", "src", CAPTURE_FIELD_MAC, f->ethernet + 6, 6);
		capture_out_hex(out, "eth", "type", roci_get_be16(f->ethernet + 12), 4, NULL);
	}
	for (unsigned i = 0; i < f->vlan_count; i++) {
		static const char *const groups[CAPTURE_VLANS_MAX] = {"vlan", "vlan2", "vlan3"};

		capture_out_number(out, groups[i], "priority", f->vlan[i] >> 13, NULL);
		capture_out_number(out, groups[i], "id", f->vlan[i] & 0xfff, NULL);
	}
}

static void put_ip(struct capture_field_out *out, const struct capture_frame *f)
{
	const char *group = f->protocol == CAPTURE_ROCE_V1 ? "grh" : "ip";

	capture_out_number(out, group, "version", f->version, NULL);
	capture_out_bytes(out, group, "src", CAPTURE_FIELD_ADDRESS, f->flow.src, 16);
	capture_out_bytes(out, group, "dst", CAPTURE_FIELD_ADDRESS, f->flow.dst, 16);
	capture_out_number(out, group, "traffic_class", f->traffic_class, NULL);
	capture_out_number(out, group, "hop_limit", f->hop_limit, NULL);
	capture_out_number(out, group, "protocol", f->ip_proto, NULL);
	capture_out_number(out, group, "header_length", f->ip_bytes, NULL);
	if (f->version == 4) {
		uint16_t fragment = roci_get_be16(f->ip + 6);

		capture_out_number(out, group, "length", roci_get_be16(f->ip + 2), NULL);
		capture_out_hex(out, group, "id", f->ip_id, 4, NULL);
		capture_out_bool(out, group, "reserved_flag", fragment >> 15);
		capture_out_bool(out, group, "dont_fragment", f->dont_fragment);
		capture_out_bool(out, group, "more_fragments", fragment >> 13 & 1);
		capture_out_number(out, group, "fragment_offset", (fragment & 0x1fffu) * 8, NULL);
		capture_out_hex(out, group, "checksum", roci_get_be16(f->ip + 10), 4, NULL);
	} else {
		capture_out_number(out, group, "length", roci_get_be16(f->ip + 4), NULL);
		capture_out_hex(out, group, "flow_label", f->flow_label, 5, NULL);
	}
}

static void put_udp(struct capture_field_out *out, const struct capture_frame *f)
{
	capture_out_number(out, "udp", "src_port", f->flow.src_port, NULL);
	capture_out_number(out, "udp", "dst_port", f->flow.dst_port, NULL);
	capture_out_number(out, "udp", "length", roci_get_be16(f->udp + 4), NULL);
	capture_out_hex(out, "udp", "checksum", roci_get_be16(f->udp + 6), 4, NULL);
}

/* ---- the packet ---- */

static void put_bth(struct capture_field_out *out, const struct capture_event *e)
{
	const struct roci_packet *pkt = &e->packet;
	const uint8_t *bth = e->frame->bytes;

	capture_out_number(out, "bth", "opcode", pkt->opcode, pkt->op->name);
	capture_out_bool(out, "bth", "solicited", pkt->solicited);
	capture_out_bool(out, "bth", "mig_req", pkt->mig_req);
	capture_out_number(out, "bth", "pad", bth[1] >> 4 & 3, NULL);
	capture_out_number(out, "bth", "version", bth[1] & 0xf, NULL);
	capture_out_hex(out, "bth", "pkey", pkt->pkey, 4, NULL);
	capture_out_bool(out, "bth", "fecn", pkt->fecn);
	capture_out_bool(out, "bth", "becn", pkt->becn);
	capture_out_hex(out, "bth", "dest_qpn", pkt->dest_qpn, 6, NULL);
	capture_out_bool(out, "bth", "ack_req", pkt->ack_req);
	capture_out_number(out, "bth", "psn", pkt->psn, NULL);
}

static void put_request_headers(struct capture_field_out *out, const struct roci_packet *pkt)
{
	if (HAS(pkt, DETH)) {
		capture_out_hex(out, "deth", "qkey", pkt->qkey, 8, NULL);
		capture_out_hex(out, "deth", "src_qpn", pkt->src_qpn, 6, NULL);
	}
	if (HAS(pkt, FETH))
		capture_out_hex(out, "feth", "flags", pkt->feth, 8, NULL);
	if (HAS(pkt, RETH)) {
		capture_out_hex(out, "reth", "va", pkt->va, 16, NULL);
		capture_out_hex(out, "reth", "rkey", pkt->rkey, 8, NULL);
		capture_out_number(out, "reth", "dma_len", pkt->dma_len, NULL);
	}
	if (HAS(pkt, ATOMICETH)) {
		capture_out_hex(out, "atomiceth", "va", pkt->va, 16, NULL);
		capture_out_hex(out, "atomiceth", "rkey", pkt->rkey, 8, NULL);
		capture_out_hex(out, "atomiceth", "swap_add", pkt->swap_add, 16, NULL);
		capture_out_hex(out, "atomiceth", "compare", pkt->compare, 16, NULL);
	}
	if (HAS(pkt, IMMDT))
		capture_out_hex(out, "immdt", "imm", be32toh(pkt->imm), 8, NULL);
	if (HAS(pkt, IETH))
		capture_out_hex(out, "ieth", "rkey", pkt->inv_rkey, 8, NULL);
}

static void put_response_headers(struct capture_field_out *out, const struct roci_packet *pkt)
{
	if (HAS(pkt, AETH)) {
		capture_out_hex(out, "aeth", "syndrome", pkt->syndrome, 2, roci_syndrome_str(pkt->syndrome));
		capture_out_number(out, "aeth", "msn", pkt->msn, NULL);
	}
	if (HAS(pkt, ATOMICACKETH))
		capture_out_hex(out, "atomicacketh", "original", pkt->atomic_orig, 16, NULL);
}

static void put_end(struct capture_field_out *out, const struct capture_event *e)
{
	static const char *const icrcs[] = {[CAPTURE_ICRC_UNKNOWN] = NULL,
					    [CAPTURE_ICRC_RIGHT] = "right",
					    [CAPTURE_ICRC_WRONG] = "WRONG",
					    [CAPTURE_ICRC_BEHIND_NAT] = "right for the addresses behind the NAT"};
	const struct capture_frame *f = e->frame;

	capture_out_number(out, "payload", "length", e->packet.payload_len, NULL);
	if (e->packet.payload_len && !e->cm)
		capture_out_bytes(out, "payload", "bytes", CAPTURE_FIELD_BYTES, e->packet.payload, capture_payload(e));
	if (f->len == f->original_len)
		capture_out_hex(out, "icrc", "value", roci_get_be32(f->bytes + f->len - ROCI_ICRC_BYTES), 8,
				icrcs[e->icrc]);
}

void capture_fields(const struct capture_event *e, capture_field_fn *fn, void *context)
{
	struct capture_field_out out = {fn, context};
	const struct capture_frame *f = e->frame;

	put_link(&out, f);
	if (f->ip)
		put_ip(&out, f);
	if (f->protocol == CAPTURE_ROCE_V2)
		put_udp(&out, f);
	if (e->sort != CAPTURE_SORT_ROCE && e->sort != CAPTURE_SORT_CM) {
		capture_out_bytes(&out, "data", "bytes", CAPTURE_FIELD_BYTES, f->bytes, f->len);
		return;
	}
	put_bth(&out, e);
	put_request_headers(&out, &e->packet);
	put_response_headers(&out, &e->packet);
	if (e->cm)
		capture_cm_fields(&out, e->cm, e->packet.payload);
	put_end(&out, e);
}

/* ---- printing ---- */

static void print_address(struct capture_line *line, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (roci_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid + ROCI_GID_IPV4_AT, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid, text, sizeof(text));
	capture_put(line, "%s", text);
}

static void print_bytes(struct capture_line *line, const struct capture_field *field, const char *between)
{
	for (uint32_t i = 0; i < field->len && line->len + 8 < line->size; i++)
		capture_put(line, "%s%02x", i ? between : "", field->bytes[i]);
}

const char *capture_field_print(const struct capture_field *field, char *text, size_t size)
{
	struct capture_line line = {text, size, 0};

	text[0] = 0;
	switch (field->kind) {
	case CAPTURE_FIELD_NUMBER: capture_put(&line, "%" PRIu64, field->number); break;
	case CAPTURE_FIELD_HEX: capture_put(&line, "0x%0*" PRIx64, (int)field->digits, field->number); break;
	case CAPTURE_FIELD_BOOL: capture_put(&line, "%s", field->number ? "yes" : "no"); break;
	case CAPTURE_FIELD_ADDRESS: print_address(&line, field->bytes); break;
	case CAPTURE_FIELD_MAC: print_bytes(&line, field, ":"); break;
	case CAPTURE_FIELD_BYTES: print_bytes(&line, field, " "); break;
	}
	if (field->text)
		capture_put(&line, " (%s)", field->text);
	return text;
}
