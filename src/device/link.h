/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link carries packets between engines: `udp` speaks RoCEv2, others wrap a link.
 *
 *     engine -> frames ------------> [fault] ------------> pieces -> seal -> [capture] -> udp -> wire
 *     engine <- parse, check ICRC <- [fault] <- [delay] <- pieces <- seal <- [capture] <- udp <- wire
 *
 * Above `seal` a frame is a header and its payload. Below, it is what goes on the wire: it has its place in a run, its
 * IPv4 identification, and its ICRC. Each packet is sealed once.
 *
 * A link is driven under the device's lock. It closes what it wraps.
 */
#ifndef ROCI_DEVICE_LINK_H
#define ROCI_DEVICE_LINK_H

#include <string.h>

#include "engine/engine.h"
#include "wire/icrc.h"
#include "wire/nat.h"

#define ROCI_LINK_SEND_BATCH ROCI_TX_BATCH
#define ROCI_LINK_RECV_BATCH 4096 /* packets that one receive may yield */
#define ROCI_LINK_MAX_RUN    64   /* UDP_MAX_SEGMENTS of Linux before 6.9 */
#define ROCI_LINK_RUN_BYTES  ROCI_TX_RUN_BYTES

/* A packet on its way out: made by roci_frame_init(), completed by the seal link. The header, the spans and what they
 * point to are borrowed until the send returns. */
struct roci_frame {
	const struct roci_av *av;
	const uint8_t *header;
	const struct roci_span *spans;
	uint32_t payload_len;
	uint32_t len; /* bytes of UDP payload: header, payload, pad, ICRC */
	uint16_t span_count;
	uint8_t header_len;
	bool copy_payload, soft_roce; /* see struct roci_tx_packet */
	bool whole;                   /* lost where it is too long for one IP packet */
	uint32_t icrc_damage;         /* fault injection: bits to flip in the ICRC; 0: none */

	/* From the seal link on. */
	uint8_t run;    /* packets that go in one message with this one as the first; 0: not a first */
	uint16_t ip_id; /* IPv4 identification that the kernel will write: its place in the run */
	uint8_t trailer_len;
	uint8_t trailer[7]; /* pad and ICRC */
};

/* A frame whose payload is what `span_count` spans point to. Written in its place: copied as a whole, its fields would
 * be read before they have reached the cache, which takes 12 ns a packet. */
static inline void roci_frame_init(struct roci_frame *frame, const struct roci_av *av, const uint8_t *header,
				   unsigned header_len, const struct roci_span *spans, unsigned span_count)
{
	uint32_t payload_len = 0;

	for (unsigned i = 0; i < span_count; i++)
		payload_len += (uint32_t)spans[i].len;
	*frame = (struct roci_frame){
		.av = av,
		.header = header,
		.header_len = (uint8_t)header_len,
		.spans = spans,
		.span_count = (uint16_t)span_count,
		.payload_len = payload_len,
		.len = header_len + payload_len + roci_pad_bytes(payload_len) + ROCI_ICRC_BYTES,
	};
}

/* The same, for few frames. */
static inline struct roci_frame roci_frame(const struct roci_av *av, const uint8_t *header, unsigned header_len,
					   const struct roci_span *spans, unsigned span_count)
{
	struct roci_frame frame;

	roci_frame_init(&frame, av, header, header_len, spans, span_count);
	return frame;
}

/* Whether it goes in one IP packet. Otherwise the kernel cuts it into fragments, and it goes in no run. */
static inline bool roci_frame_fits(const struct roci_frame *frame)
{
	return !frame->av->max_datagram || frame->len <= frame->av->max_datagram;
}

/* Where datagrams came from and went to. */
struct roci_arrival {
	struct roci_flow flow; /* addresses in GID form; dst may be a multicast group */
	uint8_t traffic_class, hop_limit;
	bool congested; /* more than half of the socket's buffer was in use */
	bool forwarded; /* it came through the side door, and must not be forwarded again ... */
	bool offered;   /* ... except within this registry, where it came by the name of a port */
	bool delayed;   /* by the process that forwarded it (delay.h) */
	uint32_t uid;   /* of a forwarded one: the user whose process sent it there */
};

/* A received packet (BTH to ICRC, unchecked). Valid until the next receive of the link. */
struct roci_datagram {
	uint8_t *bytes;
	const struct roci_arrival *from;
	uint32_t len;
};

struct roci_link;

struct roci_link_ops {
	/* How many packets of equal length to `av` may go in one message: 1 or ROCI_LINK_MAX_RUN. The seal link asks;
	 * it and the links above have none (NULL). */
	unsigned (*max_run)(struct roci_link *link, const struct roci_av *av);
	/* Sends, or loses and counts. `count` <= ROCI_LINK_SEND_BATCH; below the seal link runs are whole. */
	void (*send)(struct roci_link *link, struct roci_frame *frames, unsigned count);
	/* Takes what has arrived, without waiting. Returns how many of the ROCI_LINK_RECV_BATCH places in out[] it
	 * filled. */
	unsigned (*recv)(struct roci_link *link, struct roci_datagram *out);
	void (*close)(struct roci_link *link);
};

struct roci_link {
	const struct roci_link_ops *ops;
};

static inline unsigned roci_link_max_run(struct roci_link *link, const struct roci_av *av)
{
	return link->ops->max_run(link, av);
}

static inline void roci_link_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	link->ops->send(link, frames, count);
}

static inline unsigned roci_link_recv(struct roci_link *link, struct roci_datagram *out)
{
	return link->ops->recv(link, out);
}

static inline void roci_link_close(struct roci_link *link)
{
	link->ops->close(link);
}

/* The flow of packets to `av`, as this host sends them. */
static inline void roci_av_flow(const struct roci_av *av, struct roci_flow *flow)
{
	memcpy(flow->src, av->sgid, sizeof(flow->src));
	memcpy(flow->dst, av->dgid, sizeof(flow->dst));
	flow->src_port = av->src_port;
	flow->dst_port = av->nat ? av->nat->port : ROCI_UDP_PORT;
}

/* The flow that their ICRC covers: as the receiver sees them. */
static inline void roci_av_icrc_flow(const struct roci_av *av, struct roci_flow *flow)
{
	if (av->nat)
		*flow = av->nat->flow;
	else
		roci_av_flow(av, flow);
}

/* The QPN that a packet is for; `header` holds at least its BTH. */
static inline uint32_t roci_dest_qpn(const uint8_t *header)
{
	return (uint32_t)header[5] << 16 | (uint32_t)header[6] << 8 | header[7];
}

#endif
