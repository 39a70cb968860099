/* SPDX-License-Identifier: BSD-2-Clause */
/* What a packet means, in a line. */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "capture/cm_meaning.h"
#include "capture/event.h"
#include "capture/iwarp.h"
#include "capture/line.h"
#include "explain/explain.h"
#include "wire/mtu_probe.h"
#include "wire/piece.h"
#include "wire/plural.h"
#include "wire/print.h"

/* ---- requests ---- */

static void put_place(struct capture_line *line, const struct capture_message *m)
{
	if (!m->id || m->packets == 1)
		return;
	capture_put(line, ", packet %" PRIu32, m->packet);
	if (m->packets)
		capture_put(line, " of %" PRIu32, m->packets);
}

static void put_extras(struct capture_line *line, const struct roci_packet *pkt)
{
	if (pkt->op->headers & 1u << ROCI_HDR_IMMDT)
		capture_put(line, ", immediate 0x%08" PRIx32, be32toh(pkt->imm));
	if (pkt->op->headers & 1u << ROCI_HDR_IETH)
		capture_put(line, ", invalidates rkey 0x%08" PRIx32, pkt->inv_rkey);
}

/* "SEND 64 bytes", "WRITE 1 MiB, packet 3 of 256", "SEND, packet 3" */
static void put_transfer(struct capture_line *line, const struct capture_event *e, const char *name)
{
	const struct roci_packet *pkt = &e->packet;
	bool only = pkt->op->first && pkt->op->last;

	if (e->flags & CAPTURE_PROBE) {
		capture_put(line, "probe: a WRITE of nothing with an old PSN, which asks for an acknowledgement");
		return;
	}
	capture_put(line, "%s", name);
	if (only)
		capture_put_bytes(line, pkt->payload_len);
	else if (e->message.bytes)
		capture_put_bytes(line, e->message.bytes);
	if (!only && e->message.id)
		put_place(line, &e->message);
	else if (!only)
		capture_put(line, pkt->op->first  ? ", first packet"
				  : pkt->op->last ? ", last packet"
						  : ", a packet of it");
	put_extras(line, pkt);
}

static void put_read(struct capture_line *line, const struct capture_event *e)
{
	capture_put(line, "READ");
	capture_put_bytes(line, e->packet.dma_len);
	if (e->message.id && e->message.packet > 1)
		capture_put(line, ", the rest of %" PRIu64 " bytes, from packet %" PRIu32 " on", e->message.bytes,
			    e->message.packet);
	else if (e->message.packets)
		capture_put(line, ": asks for %" PRIu32 " packet%s", e->message.packets,
			    roci_plural(e->message.packets));
}

static void put_flush(struct capture_line *line, const struct capture_event *e)
{
	capture_put(line, "FLUSH");
	if ((e->packet.feth & ROCI_FETH_LEVEL_MASK) == ROCI_FETH_MR)
		capture_put(line, " the whole region");
	else
		capture_put_bytes(line, e->packet.dma_len);
	if (e->packet.feth & ROCI_FETH_PERSISTENT)
		capture_put(line, " until a loss of power cannot hurt it");
	else
		capture_put(line, " until all at the far end see it");
}

/* ---- answers ---- */

static void put_ack(struct capture_line *line, const struct capture_event *e)
{
	capture_put(line, "acknowledges up to PSN %" PRIu32, e->packet.psn);
	if (e->acknowledged > 1)
		capture_put(line, ", %" PRIu32 " requests", e->acknowledged);
	if (e->round_trip_ns) {
		capture_put(line, ", round trip ");
		capture_put_time(line, e->round_trip_ns);
	}
}

static void put_nak(struct capture_line *line, const struct capture_event *e)
{
	unsigned code = e->packet.syndrome & ROCI_AETH_VALUE_MASK;
	const struct explanation *row = explain_code(EXPLAIN_NAK, e->packet.syndrome);

	if (e->flags & CAPTURE_RNR) {
		capture_put(line, "RNR NAK: no receive is posted for PSN %" PRIu32 ", send again in ", e->packet.psn);
		capture_put_time(line, e->rnr_ns);
	} else if (code == ROCI_NAK_PSN_SEQUENCE) {
		capture_put(line, "NAK: PSN sequence error, expected %" PRIu32, e->packet.psn);
	} else {
		capture_put(line, "NAK: %s, at PSN %" PRIu32,
			    strncmp(roci_syndrome_str(e->packet.syndrome), "NAK ", 4)
				    ? roci_syndrome_str(e->packet.syndrome)
				    : roci_syndrome_str(e->packet.syndrome) + 4,
			    e->packet.psn);
		if (row)
			capture_put(line, ": %s", row->title);
	}
}

static void put_read_response(struct capture_line *line, const struct capture_event *e)
{
	const struct capture_message *m = &e->message;

	if (m->kind == ROCI_KIND_FLUSH || m->kind == ROCI_KIND_ATOMIC_WRITE) {
		capture_put(line, "%s is done", m->kind == ROCI_KIND_FLUSH ? "FLUSH" : "ATOMIC WRITE");
	} else if (m->id) {
		capture_put(line, "READ");
		capture_put_bytes(line, m->bytes);
		capture_put(line, ", response");
		if (m->packets != 1)
			capture_put(line, " packet %" PRIu32, m->packet);
		if (m->packets > 1)
			capture_put(line, " of %" PRIu32, m->packets);
	} else {
		capture_put(line, "READ, response with");
		capture_put_bytes(line, e->packet.payload_len);
	}
	if (e->round_trip_ns) {
		capture_put(line, ", round trip ");
		capture_put_time(line, e->round_trip_ns);
	}
}

static void put_atomic(struct capture_line *line, const struct roci_packet *pkt)
{
	if ((pkt->opcode & ROCI_OPERATION_MASK) == ROCI_OP_FETCH_ADD)
		capture_put(line, "FETCH AND ADD %" PRIu64, pkt->swap_add);
	else
		capture_put(line, "COMPARE AND SWAP: if it is 0x%" PRIx64 ", make it 0x%" PRIx64, pkt->compare,
			    pkt->swap_add);
}

static void put_atomic_ack(struct capture_line *line, const struct capture_event *e)
{
	capture_put(line, "atomic is done, it was 0x%" PRIx64, e->packet.atomic_orig);
	if (e->round_trip_ns) {
		capture_put(line, ", round trip ");
		capture_put_time(line, e->round_trip_ns);
	}
}

/* One that is longer than its fields is a probe, see engine/plpmtu.h. */
static void put_offer(struct capture_line *line, const struct roci_packet *pkt)
{
	if (pkt->payload_len > ROCI_MTU_PROBE_HEADER_BYTES)
		capture_put(line, "OFFER: do packets with %u bytes of payload arrive?",
			    pkt->payload_len - ROCI_MTU_PROBE_HEADER_BYTES);
	else
		capture_put(line, "OFFER: tell me in RANGES what is missing");
}

static void put_piece(struct capture_line *line, const struct capture_event *e)
{
	struct roci_piece piece;

	if (capture_payload(e) < ROCI_PIECE_HEAD)
		capture_put(line, "PIECE");
	else if (roci_piece_parse(&piece, e->packet.payload, e->packet.payload_len))
		capture_put(line, "PIECE %u of %u of a packet of %u bytes", piece.index + 1u,
			    roci_piece_count(piece.total), piece.total);
	else
		capture_put(line, "PIECE, malformed");
}

static void put_roce(struct capture_line *line, const struct capture_event *e)
{
	if (e->flags & (CAPTURE_NAK | CAPTURE_RNR)) {
		put_nak(line, e);
		return;
	}
	switch ((enum roci_kind)e->packet.op->kind) {
	case ROCI_KIND_SEND: put_transfer(line, e, "SEND"); break;
	case ROCI_KIND_WRITE: put_transfer(line, e, "WRITE"); break;
	case ROCI_KIND_READ_REQUEST: put_read(line, e); break;
	case ROCI_KIND_READ_RESPONSE: put_read_response(line, e); break;
	case ROCI_KIND_ACK: put_ack(line, e); break;
	case ROCI_KIND_ATOMIC_ACK: put_atomic_ack(line, e); break;
	case ROCI_KIND_ATOMIC: put_atomic(line, &e->packet); break;
	case ROCI_KIND_ATOMIC_WRITE: capture_put(line, "ATOMIC WRITE 8 bytes"); break;
	case ROCI_KIND_FLUSH: put_flush(line, e); break;
	case ROCI_KIND_CNP: capture_put(line, "CNP: packets were marked, send slower"); break;
	case ROCI_KIND_OFFER: put_offer(line, &e->packet); break;
	case ROCI_KIND_RANGES: capture_put(line, "RANGES: all up to this PSN has arrived, and what it names"); break;
	case ROCI_KIND_HELLO: capture_put(line, "HELLO: I am behind a NAT, answer to where this comes from"); break;
	case ROCI_KIND_CHALLENGE: capture_put(line, "CHALLENGE: prove that you get what is sent there"); break;
	case ROCI_KIND_MTU_PROBE:
		capture_put(line, "MTU PROBE: does the way bear packets with %u bytes of payload?",
			    roci_mtu_bytes(roci_mtu_probed(e->packet.payload_len)));
		break;
	case ROCI_KIND_PIECE: put_piece(line, e); break;
	}
}

/* ---- what the tracker noticed ---- */

static void put_again(struct capture_line *line, const struct capture_event *e)
{
	capture_put(line, ", sent again");
	if (e->flags & CAPTURE_AFTER_RNR) {
		capture_put(line, " after RNR ");
		capture_put_time(line, e->rnr_ns);
		capture_put(line, " (waited ");
		capture_put_time(line, e->waited_ns);
		capture_put(line, ")");
	} else if (e->flags & CAPTURE_AFTER_NAK) {
		capture_put(line, " after a NAK");
	} else if (e->flags & CAPTURE_AFTER_SILENCE) {
		capture_put(line, " after ");
		capture_put_time(line, e->waited_ns);
	}
}

static void put_flags(struct capture_line *line, const struct capture_event *e)
{
	if (e->flags & CAPTURE_SENT_AGAIN)
		put_again(line, e);
	if (e->flags & CAPTURE_DUPLICATE)
		capture_put(line, ", duplicate");
	if (e->flags & CAPTURE_OUT_OF_ORDER)
		capture_put(line, ", out of order: expected PSN %" PRIu32 ", %" PRIu32 " missing", e->expected_psn,
			    e->missing);
	if (e->flags & CAPTURE_LATE)
		capture_put(line, ", late: packets behind it came first");
	if (e->flags & CAPTURE_BAD_ICRC)
		capture_put(line, ", ICRC is wrong: damaged, its receiver drops it");
	if (e->packet.fecn)
		capture_put(line, ", marked as congested");
	if (e->flags & CAPTURE_CUT)
		capture_put(line, ", %" PRIu32 " of %" PRIu32 " bytes captured", e->frame->len, e->frame->original_len);
	if (e->record->made_up)
		capture_put(line, ", made up (local path)");
	if (e->sent_ns && e->record->time_ns >= e->sent_ns) {
		capture_put(line, ", %s", e->record->time_ns > e->sent_ns ? "under way for " : "arrives at once");
		if (e->record->time_ns > e->sent_ns)
			capture_put_time(line, e->record->time_ns - e->sent_ns);
	}
}

/* ---- what is no RoCE packet ---- */

static void put_not_understood(struct capture_line *line, const struct capture_event *e)
{
	static const char *const reasons[ROCI_PARSE_RESULTS] = {
		[ROCI_PARSE_TOO_SHORT] = "too short for its headers",
		[ROCI_PARSE_BAD_TVER] = "another version of the transport header",
		[ROCI_PARSE_BAD_OPCODE] = "the opcode is reserved, or of RD or XRC",
		[ROCI_PARSE_BAD_LENGTH] = "its length does not fit its opcode",
	};

	capture_put(line, "not understood: %s", reasons[e->parse]);
	if (e->flags & CAPTURE_CUT)
		capture_put(line, " (%" PRIu32 " of %" PRIu32 " bytes captured)", e->frame->len,
			    e->frame->original_len);
	else
		capture_put(line, ", %" PRIu32 " bytes", e->frame->len);
}

static void put_icmp(struct capture_line *line, const struct capture_event *e)
{
	uint8_t type = e->frame->bytes[0], code = e->frame->bytes[1];
	bool port = e->frame->version == 4 ? type == 3 && code == 3 : type == 1 && code == 4;

	if (port)
		capture_put(line, "ICMP: port unreachable: nothing listens on UDP port 4791 there");
	else
		capture_put(line, "ICMP error about a RoCE packet: type %u, code %u", type, code);
}

const char *capture_meaning(const struct capture_event *e, char text[CAPTURE_MEANING_CHARS])
{
	struct capture_line line = {text, CAPTURE_MEANING_CHARS, 0};
	char name[CAPTURE_NAME_CHARS];

	text[0] = 0;
	switch (e->sort) {
	case CAPTURE_SORT_ROCE:
		put_roce(&line, e);
		put_flags(&line, e);
		break;
	case CAPTURE_SORT_CM:
		capture_put_cm(&line, e->cm);
		put_flags(&line, e);
		break;
	case CAPTURE_SORT_NOT_UNDERSTOOD: put_not_understood(&line, e); break;
	case CAPTURE_SORT_IWARP: capture_put(&line, "iWARP, %s", capture_iwarp_name(e->frame)); break;
	case CAPTURE_SORT_ICMP: put_icmp(&line, e); break;
	case CAPTURE_SORT_FRAGMENT: capture_put(&line, "IP fragment: its packet is in an earlier line"); break;
	case CAPTURE_SORT_OTHER: capture_put(&line, "%s, no RDMA", capture_frame_name(e->frame, name)); break;
	}
	return text;
}
