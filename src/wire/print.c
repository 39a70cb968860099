/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/print.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "wire/rnr_timer.h"

/* A line that grows. As with snprintf(), `len` also counts what did not fit. */
struct line {
	char *buf;
	size_t size;
	int len;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
	bool room = (size_t)line->len < line->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(room ? line->buf + line->len : NULL, room ? line->size - (size_t)line->len : 0, format, args);
	va_end(args);
	if (n > 0)
		line->len += n;
}

static void print_bth(struct line *line, const struct roci_packet *pkt, const char *name)
{
	append(line, "%s qpn 0x%06" PRIx32 " psn %" PRIu32, name, pkt->dest_qpn, pkt->psn);
	if (pkt->solicited)
		append(line, " solicited");
	if (pkt->ack_req)
		append(line, " ack-req");
	if (pkt->mig_req)
		append(line, " mig-req");
	if (pkt->fecn)
		append(line, " fecn");
	if (pkt->becn)
		append(line, " becn");
	if (pkt->pkey != ROCI_PKEY_DEFAULT)
		append(line, " pkey 0x%04" PRIx16, pkt->pkey);
}

static void print_feth(struct line *line, uint32_t feth)
{
	static const char *const placements[16] = {"", " global", " persistent", " global persistent"};
	static const char *const selectivities[4] = {" range", " mr"};
	const char *placement = placements[feth & 0xf], *selectivity = selectivities[feth >> 4 & 3];

	append(line, " feth 0x%" PRIx32 "%s%s", feth, placement ? placement : "", selectivity ? selectivity : "");
}

static void print_aeth(struct line *line, const struct roci_packet *pkt)
{
	unsigned value = pkt->syndrome & ROCI_AETH_VALUE_MASK;

	append(line, " %s", roci_syndrome_str(pkt->syndrome));
	if ((pkt->syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_ACK && value != ROCI_AETH_UNLIMITED_CREDITS)
		append(line, " credit-code %u", value);
	append(line, " msn %" PRIu32, pkt->msn);
}

int roci_packet_print(const struct roci_packet *pkt, char *buf, size_t size)
{
	const struct roci_opcode_info *info = roci_opcode_info(pkt->opcode);
	unsigned headers = info ? info->headers : 0;
	struct line line = {buf, size, 0};

	print_bth(&line, pkt, info ? info->name : "unknown opcode");
	if (headers & 1u << ROCI_HDR_DETH)
		append(&line, " qkey 0x%08" PRIx32 " src-qpn 0x%06" PRIx32, pkt->qkey, pkt->src_qpn);
	if (headers & 1u << ROCI_HDR_FETH)
		print_feth(&line, pkt->feth);
	if (headers & (1u << ROCI_HDR_RETH | 1u << ROCI_HDR_ATOMICETH))
		append(&line, " va 0x%016" PRIx64 " rkey 0x%08" PRIx32, pkt->va, pkt->rkey);
	if (headers & 1u << ROCI_HDR_RETH)
		append(&line, " dma-len %" PRIu32, pkt->dma_len);
	if (pkt->opcode == (ROCI_TRANSPORT_RC | ROCI_OP_FETCH_ADD))
		append(&line, " add 0x%" PRIx64, pkt->swap_add);
	else if (headers & 1u << ROCI_HDR_ATOMICETH)
		append(&line, " swap 0x%" PRIx64 " compare 0x%" PRIx64, pkt->swap_add, pkt->compare);
	if (headers & 1u << ROCI_HDR_AETH)
		print_aeth(&line, pkt);
	if (headers & 1u << ROCI_HDR_ATOMICACKETH)
		append(&line, " original 0x%" PRIx64, pkt->atomic_orig);
	if (headers & 1u << ROCI_HDR_IMMDT)
		append(&line, " imm 0x%08" PRIx32, be32toh(pkt->imm));
	if (headers & 1u << ROCI_HDR_IETH)
		append(&line, " inv-rkey 0x%08" PRIx32, pkt->inv_rkey);
	if (info && info->payload)
		append(&line, " payload %" PRIu32, pkt->payload_len);
	return line.len;
}

static const char *nak_str(unsigned code)
{
	static const char *const texts[32] = {
		[ROCI_NAK_PSN_SEQUENCE] = "NAK PSN sequence error",
		[ROCI_NAK_INVALID_REQUEST] = "NAK invalid request",
		[ROCI_NAK_REMOTE_ACCESS] = "NAK remote access error",
		[ROCI_NAK_REMOTE_OPERATION] = "NAK remote operational error",
		[ROCI_NAK_INVALID_RD_REQUEST] = "NAK invalid RD request",
	};

	return texts[code] ? texts[code] : "NAK reserved code";
}

/* IBTA 9.7.5.1.1, table 44 */
const char *roci_syndrome_str(uint8_t syndrome)
{
	unsigned value = syndrome & ROCI_AETH_VALUE_MASK;

	switch (syndrome & ROCI_AETH_TYPE_MASK) {
	case ROCI_AETH_ACK: return "ACK";
	case ROCI_AETH_RNR_NAK: return roci_rnr_nak_str(value);
	case ROCI_AETH_NAK: return nak_str(value);
	default: return "reserved syndrome";
	}
}
