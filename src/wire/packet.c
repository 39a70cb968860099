/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes to struct roci_packet and back (IBTA 9.2 BTH, 9.3 extended headers, A19 FETH). */
#include "wire/packet.h"

#include <assert.h>
#include <string.h>

#include "wire/bytes.h"

/* BTH byte 1 */
#define BTH_SOLICITED 0x80
#define BTH_MIG_REQ   0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK  0x3
#define BTH_TVER_MASK 0x0f
/* BTH byte 4 */
#define BTH_FECN 0x80
#define BTH_BECN 0x40
/* BTH byte 8 */
#define BTH_ACK_REQ 0x80

#define CNP_PAYLOAD_BYTES          16 /* IBTA A17.9.3 */
#define ATOMIC_WRITE_PAYLOAD_BYTES 8  /* IBTA A19 */

#define HAS(info, hdr) ((info)->headers & 1u << ROCI_HDR_##hdr)

static void parse_bth(struct roci_packet *pkt, const uint8_t *from)
{
	pkt->opcode = from[0];
	pkt->solicited = from[1] & BTH_SOLICITED;
	pkt->mig_req = from[1] & BTH_MIG_REQ;
	pkt->pkey = roci_get_be16(from + 2);
	pkt->fecn = from[4] & BTH_FECN;
	pkt->becn = from[4] & BTH_BECN;
	pkt->dest_qpn = roci_get_be24(from + 5);
	pkt->ack_req = from[8] & BTH_ACK_REQ;
	pkt->psn = roci_get_be24(from + 9);
}

/* Returns the end of the headers. */
static const uint8_t *parse_request_headers(struct roci_packet *pkt, const uint8_t *from)
{
	if (HAS(pkt->op, DETH)) {
		pkt->qkey = roci_get_be32(from);
		pkt->src_qpn = roci_get_be24(from + 5);
		from += 8;
	}
	if (HAS(pkt->op, FETH)) {
		pkt->feth = roci_get_be32(from);
		from += 4;
	}
	if (HAS(pkt->op, RETH)) {
		pkt->va = roci_get_be64(from);
		pkt->rkey = roci_get_be32(from + 8);
		pkt->dma_len = roci_get_be32(from + 12);
		from += 16;
	}
	if (HAS(pkt->op, ATOMICETH)) {
		pkt->va = roci_get_be64(from);
		pkt->rkey = roci_get_be32(from + 8);
		pkt->swap_add = roci_get_be64(from + 12);
		pkt->compare = roci_get_be64(from + 20);
		from += 28;
	}
	if (HAS(pkt->op, IMMDT)) {
		memcpy(&pkt->imm, from, 4);
		from += 4;
	}
	if (HAS(pkt->op, IETH)) {
		pkt->inv_rkey = roci_get_be32(from);
		from += 4;
	}
	return from;
}

static const uint8_t *parse_response_headers(struct roci_packet *pkt, const uint8_t *from)
{
	if (HAS(pkt->op, AETH)) {
		pkt->syndrome = from[0];
		pkt->msn = roci_get_be24(from + 1);
		from += 4;
	}
	if (HAS(pkt->op, ATOMICACKETH)) {
		pkt->atomic_orig = roci_get_be64(from);
		from += 8;
	}
	return from;
}

static bool payload_len_valid(const struct roci_opcode_info *info, size_t payload_len)
{
	switch (info->kind) {
	case ROCI_KIND_CNP: return payload_len == CNP_PAYLOAD_BYTES;
	case ROCI_KIND_ATOMIC_WRITE: return payload_len == ATOMIC_WRITE_PAYLOAD_BYTES;
	default: return info->payload || payload_len == 0;
	}
}

/* All behind the BTH. Returns their end. */
static const uint8_t *parse_headers(struct roci_packet *pkt, const uint8_t *bytes)
{
	const uint8_t *end = pkt->op->response ? parse_response_headers(pkt, bytes + ROCI_BTH_BYTES)
					       : parse_request_headers(pkt, bytes + ROCI_BTH_BYTES);

	assert(end == bytes + pkt->op->header_bytes);
	return end;
}

enum roci_parse_result roci_packet_parse(struct roci_packet *pkt, const uint8_t *bytes, size_t len)
{
	size_t pad, body_len;

	memset(pkt, 0, sizeof(*pkt));
	if (len < ROCI_MIN_PACKET_BYTES)
		return ROCI_PARSE_TOO_SHORT;
	if (bytes[1] & BTH_TVER_MASK)
		return ROCI_PARSE_BAD_TVER;
	pkt->op = roci_opcode_info(bytes[0]);
	if (!pkt->op)
		return ROCI_PARSE_BAD_OPCODE;

	pad = bytes[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	if (len < pkt->op->header_bytes + pad + ROCI_ICRC_BYTES)
		return ROCI_PARSE_TOO_SHORT;
	body_len = len - pkt->op->header_bytes - ROCI_ICRC_BYTES;
	if (body_len % 4 || body_len > UINT32_MAX || !payload_len_valid(pkt->op, body_len - pad))
		return ROCI_PARSE_BAD_LENGTH;

	parse_bth(pkt, bytes);
	pkt->payload = parse_headers(pkt, bytes);
	pkt->payload_len = (uint32_t)(body_len - pad);
	return ROCI_PARSE_OK;
}

enum roci_parse_result roci_packet_parse_headers(struct roci_packet *pkt, const uint8_t *bytes, size_t len,
						 uint32_t payload_len)
{
	memset(pkt, 0, sizeof(*pkt));
	if (len < ROCI_BTH_BYTES)
		return ROCI_PARSE_TOO_SHORT;
	if (bytes[1] & BTH_TVER_MASK)
		return ROCI_PARSE_BAD_TVER;
	pkt->op = roci_opcode_info(bytes[0]);
	if (!pkt->op)
		return ROCI_PARSE_BAD_OPCODE;
	if (len != pkt->op->header_bytes || !payload_len_valid(pkt->op, payload_len))
		return ROCI_PARSE_BAD_LENGTH;
	parse_bth(pkt, bytes);
	parse_headers(pkt, bytes);
	pkt->payload_len = payload_len;
	return ROCI_PARSE_OK;
}

bool roci_packet_parse_send(struct roci_packet *pkt, const uint8_t *bytes, size_t len)
{
	if (len != ROCI_BTH_BYTES || bytes[0] != (ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY) || (bytes[1] & BTH_TVER_MASK))
		return false;
	parse_bth(pkt, bytes);
	return roci_pkey_matches(pkt->pkey);
}

static void build_bth(const struct roci_packet *pkt, uint8_t *to)
{
	to[0] = pkt->opcode;
	to[1] = (uint8_t)((pkt->solicited ? BTH_SOLICITED : 0) | (pkt->mig_req ? BTH_MIG_REQ : 0) |
			  roci_pad_bytes(pkt->payload_len) << BTH_PAD_SHIFT);
	roci_put_be16(to + 2, pkt->pkey);
	to[4] = (uint8_t)((pkt->fecn ? BTH_FECN : 0) | (pkt->becn ? BTH_BECN : 0));
	roci_put_be24(to + 5, pkt->dest_qpn);
	to[8] = pkt->ack_req ? BTH_ACK_REQ : 0;
	roci_put_be24(to + 9, pkt->psn);
}

/* Returns the end of the headers. */
static uint8_t *build_request_headers(const struct roci_packet *pkt, const struct roci_opcode_info *info, uint8_t *to)
{
	if (HAS(info, DETH)) {
		roci_put_be32(to, pkt->qkey);
		roci_put_be32(to + 4, pkt->src_qpn & ROCI_QPN_MASK);
		to += 8;
	}
	if (HAS(info, FETH)) {
		roci_put_be32(to, pkt->feth);
		to += 4;
	}
	if (HAS(info, RETH)) {
		roci_put_be64(to, pkt->va);
		roci_put_be32(to + 8, pkt->rkey);
		roci_put_be32(to + 12, pkt->dma_len);
		to += 16;
	}
	if (HAS(info, ATOMICETH)) {
		roci_put_be64(to, pkt->va);
		roci_put_be32(to + 8, pkt->rkey);
		roci_put_be64(to + 12, pkt->swap_add);
		roci_put_be64(to + 20, pkt->compare);
		to += 28;
	}
	if (HAS(info, IMMDT)) {
		memcpy(to, &pkt->imm, 4);
		to += 4;
	}
	if (HAS(info, IETH)) {
		roci_put_be32(to, pkt->inv_rkey);
		to += 4;
	}
	return to;
}

static uint8_t *build_response_headers(const struct roci_packet *pkt, const struct roci_opcode_info *info, uint8_t *to)
{
	if (HAS(info, AETH)) {
		to[0] = pkt->syndrome;
		roci_put_be24(to + 1, pkt->msn);
		to += 4;
	}
	if (HAS(info, ATOMICACKETH)) {
		roci_put_be64(to, pkt->atomic_orig);
		to += 8;
	}
	return to;
}

unsigned roci_packet_build(const struct roci_packet *pkt, uint8_t *buf)
{
	const struct roci_opcode_info *info = roci_opcode_info(pkt->opcode);
	uint8_t *end;

	assert(info);
	build_bth(pkt, buf);
	if (info->response)
		end = build_response_headers(pkt, info, buf + ROCI_BTH_BYTES);
	else
		end = build_request_headers(pkt, info, buf + ROCI_BTH_BYTES);
	assert(end == buf + info->header_bytes);
	return info->header_bytes;
}
