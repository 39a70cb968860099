/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/seal.h"

#include <string.h>

#include "device/registry.h"

#define SHORT 256 /* payload bytes that are copied sooner than thought about */

/* The packet's payload in one span, at `to`. */
static void copy_payload(const struct roci_tx_batch *batch, const struct roci_tx_packet *packet, uint8_t *to,
			 struct roci_span *span)
{
	*span = (struct roci_span){to, packet->payload_len};
	for (unsigned i = 0; i < packet->span_count; i++) {
		const struct roci_span *from = &batch->spans[packet->first_span + i];

		memcpy(to, from->base, from->len);
		to += from->len;
	}
}

unsigned roci_frames_from(const struct roci_tx_batch *batch, struct roci_copies *copies, struct roci_frame *frames)
{
	uint8_t *room = copies->bytes;

	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *packet = &batch->packets[i];

		frames[i] = (struct roci_frame){
			.av = packet->av,
			.header = packet->header,
			.header_len = packet->header_len,
			.soft_roce = packet->soft_roce,
			.spans = batch->spans + packet->first_span,
			.span_count = packet->span_count,
			.payload_len = packet->payload_len,
		};
		if (!packet->span_count || (!packet->copy_payload && packet->payload_len > SHORT))
			continue;
		copy_payload(batch, packet, room, &copies->spans[i]);
		room += packet->payload_len;
		frames[i].spans = &copies->spans[i];
		frames[i].span_count = 1;
	}
	return batch->count;
}

void roci_av_flow(const struct roci_av *av, struct roci_flow *flow)
{
	memcpy(flow->src, av->sgid, sizeof(flow->src));
	memcpy(flow->dst, av->dgid, sizeof(flow->dst));
	flow->src_port = av->src_port;
	flow->dst_port = ROCI_UDP_PORT;
}

static void seal(struct roci_frame *frame, const struct roci_flow *flow, uint16_t ip_id)
{
	unsigned pad = roci_pad_bytes(frame->payload_len);
	uint32_t crc;

	frame->ip_id = ip_id;
	crc = roci_icrc_begin(flow, ip_id, frame->len);
	crc = roci_icrc_headers(crc, frame->header, frame->header_len);
	for (unsigned i = 0; i < frame->span_count; i++)
		crc = roci_icrc_update(crc, frame->spans[i].base, frame->spans[i].len);
	memset(frame->trailer, 0, pad);
	if (pad)
		crc = roci_icrc_update(crc, frame->trailer, pad);
	if (frame->soft_roce)
		crc = roci_icrc_soft_roce_flush(crc, frame->header, frame->header_len);
	roci_icrc_store(crc, frame->trailer + pad);
	frame->trailer_len = (uint8_t)(pad + ROCI_ICRC_BYTES);
}

static uint32_t frame_len(const struct roci_frame *frame)
{
	return frame->header_len + frame->payload_len + roci_pad_bytes(frame->payload_len) + ROCI_ICRC_BYTES;
}

static bool same_av(const struct roci_av *a, const struct roci_av *b)
{
	return a == b || (!memcmp(a->dgid, b->dgid, 16) && !memcmp(a->sgid, b->sgid, 16) && a->ifindex == b->ifindex &&
			  a->src_port == b->src_port && a->sgid_index == b->sgid_index &&
			  a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit);
}

/* Packets of one message reach one socket: all must be for the same process. */
static bool same_way(const struct roci_frame *a, const struct roci_frame *b)
{
	return same_av(a->av, b->av) &&
	       roci_dest_qpn(a->header) >> ROCI_SLOT_SHIFT == roci_dest_qpn(b->header) >> ROCI_SLOT_SHIFT;
}

/* Packets that can go in one message with frames[0] as the first, at most `max`. Sets their len. */
static unsigned run_length(struct roci_frame *frames, unsigned count, unsigned max)
{
	uint32_t bytes = frames[0].len;
	unsigned n = 1;

	if (count > max)
		count = max;
	for (; n < count; n++) {
		frames[n].len = frame_len(&frames[n]);
		bytes += frames[n].len;
		if (frames[n].len > frames[0].len || bytes > ROCI_LINK_RUN_BYTES || !same_way(&frames[0], &frames[n]))
			return n;
		if (frames[n].len < frames[0].len)
			return n + 1;
	}
	return n;
}

void roci_frames_seal(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct roci_flow flow;
	unsigned run;

	for (unsigned i = 0; i < count; i += run) {
		frames[i].len = frame_len(&frames[i]);
		run = run_length(frames + i, count - i, roci_link_max_run(link, frames[i].av));
		roci_av_flow(frames[i].av, &flow);
		for (unsigned k = 0; k < run; k++) {
			frames[i + k].run = k ? 0 : (uint8_t)run;
			seal(&frames[i + k], &flow, (uint16_t)k);
		}
	}
}

void roci_frames_seal_singly(struct roci_frame *frames, unsigned count)
{
	struct roci_flow flow;

	for (unsigned i = 0; i < count; i++) {
		roci_av_flow(frames[i].av, &flow);
		frames[i].len = frame_len(&frames[i]);
		frames[i].run = 1;
		seal(&frames[i], &flow, 0);
	}
}
