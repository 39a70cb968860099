/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHORT 256 /* payload bytes that are always copied: that costs next to nothing */

struct seal {
	struct roci_link link;
	struct roci_link *inner;
	/* Copies of payload, in use until the inner link's send returns. */
	struct roci_span spans[ROCI_LINK_SEND_BATCH];
	uint8_t bytes[ROCI_LINK_SEND_BATCH * ROCI_MAX_PAYLOAD]; /* touched as needed */
};

/* Copies the payload to `to`. */
static void copy_payload(const struct roci_frame *frame, uint8_t *to)
{
	for (unsigned i = 0; i < frame->span_count; i++) {
		memcpy(to, frame->spans[i].base, frame->spans[i].len);
		to += frame->spans[i].len;
	}
}

static void copy_where_needed(struct seal *s, struct roci_frame *frames, unsigned count)
{
	uint8_t *room = s->bytes;

	for (unsigned i = 0; i < count; i++) {
		struct roci_frame *frame = &frames[i];

		if (!frame->span_count || (!frame->copy_payload && frame->payload_len > SHORT))
			continue;
		copy_payload(frame, room);
		s->spans[i] = (struct roci_span){room, frame->payload_len};
		room += frame->payload_len;
		frame->spans = &s->spans[i];
		frame->span_count = 1;
	}
}

/* Fills the trailer. */
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
	roci_icrc_store(crc ^ frame->icrc_damage, frame->trailer + pad);
	frame->trailer_len = (uint8_t)(pad + ROCI_ICRC_BYTES);
}

static bool same_av(const struct roci_av *a, const struct roci_av *b)
{
	return a == b || (!memcmp(a->dgid, b->dgid, 16) && !memcmp(a->sgid, b->sgid, 16) && a->ifindex == b->ifindex &&
			  a->src_port == b->src_port && a->nat == b->nat && a->sgid_index == b->sgid_index &&
			  a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit);
}

static bool is_rc(const struct roci_frame *frame)
{
	return (frame->header[0] & ROCI_TRANSPORT_MASK) == ROCI_TRANSPORT_RC;
}

/* Packets of one message reach one socket: all are to be for the same process. RC packets whose process is not known
 * yet are taken for such: they are the first of their QPs, and who gets others' packets passes them on. */
static bool same_way(const struct roci_frame *a, const struct roci_frame *b)
{
	if (!same_av(a->av, b->av))
		return false;
	if (roci_dest_qpn(a->header) == roci_dest_qpn(b->header))
		return true;
	if (!a->av->peer_port && !b->av->peer_port)
		return is_rc(a) && is_rc(b);
	/* A process has its own port, but for 4791, which they share. */
	return a->av->peer_port == b->av->peer_port && a->av->peer_port != ROCI_UDP_PORT;
}

/* How many packets can go in one message with frames[0] as the first, at most `max`: they have one length, but the last
 * may be shorter. A packet that goes in fragments, or must not, goes alone. */
static unsigned run_length(const struct roci_frame *frames, unsigned count, unsigned max)
{
	uint32_t bytes = frames[0].len;
	unsigned n = 1;

	if (!roci_frame_fits(&frames[0]) || frames[0].whole)
		return 1;
	if (count > max)
		count = max;
	for (; n < count; n++) {
		bytes += frames[n].len;
		if (frames[n].len > frames[0].len || bytes > ROCI_LINK_RUN_BYTES || !same_way(&frames[0], &frames[n]))
			return n;
		if (frames[n].len < frames[0].len)
			return n + 1;
	}
	return n;
}

/* An acknowledgement that comes first goes behind the packet that follows, so that both leave in one message and the
 * peer wakes once. It takes the acknowledgement first (udp_recv.c). Not where that packet begins a longer run. */
static void join_ack(struct roci_frame *frames, unsigned count, unsigned max)
{
	struct roci_frame ack = frames[0];

	if (count < 2 || max < 2 || ack.header[0] != ROCI_OP_ACKNOWLEDGE || frames[1].len <= ack.len ||
	    run_length(frames + 1, count - 1, max) > 1 || !roci_frame_fits(&frames[1]) || !same_way(&ack, &frames[1]))
		return;
	frames[0] = frames[1];
	frames[1] = ack;
}

static void seal_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct seal *s = (struct seal *)link;
	struct roci_flow flow;
	unsigned run;

	copy_where_needed(s, frames, count);
	for (unsigned i = 0; i < count; i += run) {
		unsigned max = roci_link_max_run(s->inner, frames[i].av);

		join_ack(frames + i, count - i, max);
		run = run_length(frames + i, count - i, max);
		roci_av_icrc_flow(frames[i].av, &flow);
		for (unsigned k = 0; k < run; k++) {
			frames[i + k].run = k ? 0 : (uint8_t)run;
			seal(&frames[i + k], &flow, (uint16_t)k);
		}
	}
	roci_link_send(s->inner, frames, count);
}

static unsigned seal_recv(struct roci_link *link, struct roci_datagram *out)
{
	return roci_link_recv(((struct seal *)link)->inner, out);
}

static void seal_close(struct roci_link *link)
{
	roci_link_close(((struct seal *)link)->inner);
	free(link);
}

struct roci_link *roci_seal_inner(const struct roci_link *link)
{
	return ((const struct seal *)link)->inner;
}

void roci_seal_wrap(struct roci_link *link, struct roci_link *inner)
{
	((struct seal *)link)->inner = inner;
}

int roci_seal_open(struct roci_link *inner, struct roci_link **out)
{
	static const struct roci_link_ops ops = {.send = seal_send, .recv = seal_recv, .close = seal_close};
	struct seal *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->link.ops = &ops;
	s->inner = inner;
	*out = &s->link;
	return 0;
}

void roci_seal_packet(const struct roci_frame *frame, uint8_t *bytes)
{
	struct roci_span copied = {bytes + frame->header_len, frame->payload_len};
	struct roci_frame sealed = *frame;
	struct roci_flow flow;

	roci_av_icrc_flow(frame->av, &flow);
	memcpy(bytes, frame->header, frame->header_len);
	copy_payload(frame, copied.base); /* first: the program may change it meanwhile */
	sealed.spans = &copied;
	sealed.span_count = copied.len ? 1 : 0;
	seal(&sealed, &flow, 0);
	memcpy(bytes + frame->header_len + frame->payload_len, sealed.trailer, sealed.trailer_len);
}
